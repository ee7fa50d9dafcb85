#!/usr/bin/env bash
# Four ways to average gradients in PyTorch divide at three different moments; two overflow.
#
# Versions:  torch 2.13.0 (CPU), two ranks over loopback, gloo.
# Expected:  The mean of 70000 and 70000, or in float16 of 60000 and 60000, is that number, whichever
#            way it is averaged; halving the bytes rounds a value, it does not lose it.
# Seen:      DDP without a hook divides, then adds: 3e38 keeps its value.
#            all_reduce(AVG) of float16 or float32 adds, then divides: 60000 becomes inf, 3e38 as well.
#            fp16_compress_hook converts, then divides, then adds: 70000 becomes inf although half
#            of it fits, and 5e-8, which float16 can hold, becomes 0 as its half underflows.
# Matters:   A scheme that is compared with "PyTorch's average" is compared with one of these. Near the
#            ends of the range they differ by everything; for others they differ in the last bit.
# Source:    PyTorch's pages on ReduceOp.AVG ("divides values by the world size before summing") and on
#            DDP communication hooks.
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
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return (self.weights * x).sum()


def by_ddp(gradient, hook=None):
    model = DistributedDataParallel(Weighted())
    if hook is not None:
        model.register_comm_hook(None, hook)
    model(torch.tensor(gradient)).backward()
    return model.module.weights.grad.tolist()


def average(value, kind):
    x = torch.full((1,), value, dtype=kind)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    return x.item()


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    lines = [
        ("DDP, no hook", [f"{v:.3g}" for v in by_ddp([3e38, 70000.0, 5e-8])]),
        ("DDP, fp16_compress_hook",
         [f"{v:.3g}" for v in by_ddp([1.0, 70000.0, 5e-8], default_hooks.fp16_compress_hook)]),
        ("all_reduce AVG, float16 60000", average(60000.0, torch.float16)),
        ("all_reduce AVG, float32 3e38", average(3e38, torch.float32)),
    ]
    if number == 0:
        print("5e-8 in float16:", torch.tensor(5e-8).half().item())
        for what, value in lines:
            print(f"{what}: {value}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
5e-8 in float16: 5.960464477539063e-08
DDP, no hook: ['3e+38', '7e+04', '5e-08']
DDP, fp16_compress_hook: ['1', 'inf', '0']
all_reduce AVG, float16 60000: inf
all_reduce AVG, float32 3e38: inf
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
