#!/usr/bin/env bash
# The gradient of mse_loss over a sharded DTensor is twice too large on two ranks, four times on four.
#
# Versions:  torch 2.13.0 (CPU), gloo over loopback.
# Expected:  A DTensor computes what the whole tensor would: the placement of its shards changes neither a loss
#            nor a gradient.
# Seen:      Eight predictions and targets, sharded along the batch: mse_loss, smooth_l1_loss, huber_loss and
#            binary_cross_entropy have the right loss and gradients that are too large by the number of ranks;
#            l1_loss, binary_cross_entropy_with_logits and ((x - y) ** 2).mean() are right. Each rank divides
#            by its own number of elements, and nothing divides by the ranks. reduction="sum" is right.
#            Of five predictions, three on one rank and two on the other, the loss is wrong as well: the mean
#            of two means.
# Matters:   Training goes on at a learning rate that grows with the number of ranks, for some losses only, and the
#            loss that is shown is right while the shards are of equal size.
# Source:    PyTorch's page on torch.distributed.tensor (DTensor keeps single-device semantics).
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
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
from torch.nn import functional as F

LOSSES = {
    "mse_loss": F.mse_loss,
    "mse_loss, sum": lambda x, y: F.mse_loss(x, y, reduction="sum"),
    "((x - y) ** 2).mean()": lambda x, y: ((x - y) ** 2).mean(),
    "l1_loss": F.l1_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss,
    "binary_cross_entropy": F.binary_cross_entropy,
    "... with_logits": F.binary_cross_entropy_with_logits,
}


def ratios(loss, x, y, mesh):
    """Return a sharded loss and its gradient in units of those of whole tensors."""
    results = []
    for place in (lambda t: t, lambda t: distribute_tensor(t, mesh, [Shard(0)])):
        leaf = place(x.clone()).requires_grad_()
        value = loss(leaf, place(y))
        value.backward()
        results.append([t.full_tensor() if hasattr(t, "full_tensor") else t for t in (value, leaf.grad)])
    (value, grad), (sharded_value, sharded_grad) = results
    return sharded_value / value, sharded_grad / grad


def rank(number, store, ranks):
    dist.init_process_group("gloo", init_method=f"file://{store}{ranks}", rank=number, world_size=ranks)
    mesh = init_device_mesh("cpu", (ranks,))
    predictions = torch.tensor([0.9, 0.8, 0.7, 0.3, 0.2, 0.6, 0.5, 0.4])
    for name, loss in LOSSES.items():
        of_loss, of_grad = ratios(loss, predictions, torch.full((8,), 0.1), mesh)
        if number == 0:
            seen = sorted({f"{ratio:.2f}" for ratio in of_grad})
            print(f"{ranks} ranks, {name}: loss x {of_loss:.2f}, gradient x", *seen)
    if ranks == 2:
        of_loss, of_grad = ratios(F.mse_loss, predictions[:5], torch.full((5,), 0.1), mesh)
        if number == 0:
            print(f"5 elements: loss x {of_loss:.2f}, gradient x", *(f"{ratio:.2f}" for ratio in of_grad))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    for ranks in (2, 4):
        mp.start_processes(rank, args=(sys.argv[1], ranks), nprocs=ranks, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
2 ranks, mse_loss: loss x 1.00, gradient x 2.00
2 ranks, mse_loss, sum: loss x 1.00, gradient x 1.00
2 ranks, ((x - y) ** 2).mean(): loss x 1.00, gradient x 1.00
2 ranks, l1_loss: loss x 1.00, gradient x 1.00
2 ranks, smooth_l1_loss: loss x 1.00, gradient x 2.00
2 ranks, huber_loss: loss x 1.00, gradient x 2.00
2 ranks, binary_cross_entropy: loss x 1.00, gradient x 2.00
2 ranks, ... with_logits: loss x 1.00, gradient x 1.00
5 elements: loss x 0.85, gradient x 1.67 1.67 1.67 2.50 2.50
4 ranks, mse_loss: loss x 1.00, gradient x 4.00
4 ranks, mse_loss, sum: loss x 1.00, gradient x 1.00
4 ranks, ((x - y) ** 2).mean(): loss x 1.00, gradient x 1.00
4 ranks, l1_loss: loss x 1.00, gradient x 1.00
4 ranks, smooth_l1_loss: loss x 1.00, gradient x 4.00
4 ranks, huber_loss: loss x 1.00, gradient x 4.00
4 ranks, binary_cross_entropy: loss x 1.00, gradient x 4.00
4 ranks, ... with_logits: loss x 1.00, gradient x 1.00
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" 2>"$work/errors" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
