#!/usr/bin/env bash
# torch.distributed.nn's all_reduce has a gradient for MAX, MIN and PRODUCT, but not theirs.
#
# Versions:  torch 2.13.0 (CPU), gloo, two ranks over loopback.
# Expected:  The differentiable all_reduce sends back the derivative of what it computed, or refuses operations
#            of which it knows none.
# Seen:      Backward applies the forward's operation to the ranks' gradients, which is right for SUM and AVG only.
#            With inputs 2 and 3 the larger one's rank should get 2 for MAX (each rank's loss counts once), the
#            other 0; both get 1. For PRODUCT they should get 6 and 4 and get 1. Where the two losses weigh
#            1 and 10, the gradient of MAX is 10 on both ranks instead of 0 and 11.
# Matters:   A scale or a clipping bound that is the maximum over ranks, learned or passed through, has a
#            gradient on each rank, and the training goes on with it. Finite differences show it at once.
# Source:    torch/distributed/nn/functional.py. Its successor, _functional_collectives.all_reduce, refuses such.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed._functional_collectives import all_reduce as successor
from torch.distributed.nn.functional import all_reduce

INPUTS = (2.0, 3.0)
WHOLE = {
    "SUM": torch.sum,
    "AVG": torch.mean,
    "MAX": torch.max,
    "MIN": torch.min,
    "PRODUCT": torch.prod,
}


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    for weights in ((1.0, 1.0), (1.0, 10.0)):
        for name, whole in WHOLE.items():
            mine = torch.tensor(INPUTS[number], requires_grad=True)
            (weights[number] * all_reduce(mine, op=getattr(dist.ReduceOp, name))).backward()
            seen = [torch.zeros(()) for _ in INPUTS]
            dist.all_gather(seen, mine.grad)
            inputs = torch.tensor(INPUTS, requires_grad=True)
            (sum(weights) * whole(inputs)).backward()
            if number == 0:
                gradients = [gradient.item() for gradient in seen]
                print(f"{name}, losses weigh {weights}: gradients {gradients}, right {inputs.grad.tolist()}")
    mine = torch.tensor(INPUTS[number], requires_grad=True)
    try:
        successor(mine, "max", dist.group.WORLD).backward()
    except RuntimeError as error:
        if number == 0:
            print("successor:", error)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
SUM, losses weigh (1.0, 1.0): gradients [2.0, 2.0], right [2.0, 2.0]
AVG, losses weigh (1.0, 1.0): gradients [1.0, 1.0], right [1.0, 1.0]
MAX, losses weigh (1.0, 1.0): gradients [1.0, 1.0], right [0.0, 2.0]
MIN, losses weigh (1.0, 1.0): gradients [1.0, 1.0], right [2.0, 0.0]
PRODUCT, losses weigh (1.0, 1.0): gradients [1.0, 1.0], right [6.0, 4.0]
SUM, losses weigh (1.0, 10.0): gradients [11.0, 11.0], right [11.0, 11.0]
AVG, losses weigh (1.0, 10.0): gradients [5.5, 5.5], right [5.5, 5.5]
MAX, losses weigh (1.0, 10.0): gradients [10.0, 10.0], right [0.0, 11.0]
MIN, losses weigh (1.0, 10.0): gradients [1.0, 1.0], right [11.0, 0.0]
PRODUCT, losses weigh (1.0, 10.0): gradients [10.0, 10.0], right [33.0, 22.0]
successor: all_reduce backward only supports 'sum' reduction, got 'max'
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" 2>"$work/errors" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
