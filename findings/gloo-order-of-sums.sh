#!/usr/bin/env bash
# On gloo an element's place in the tensor decides in which order the ranks' values are added.
#
# Versions:  torch 2.13.0 (CPU), four ranks over loopback.
# Expected:  all_reduce of a tensor that is constant on each rank gives a constant tensor; the sum is
#            that of rank 0, 1, 2, 3 in order, and reduce_scatter gives the parts of the same result.
# Seen:      A quarter of the tensor is summed in each of four orders: the first from rank 3 down to
#            rank 0, then 0 3 2 1, then 1 0 3 2, then 2 1 0 3. With float16 the four addends 60000,
#            60000, -60000, -60000 give three results in one tensor: -inf, inf and 0, though the sum
#            is 0; each partial sum is rounded to float16. A tensor of three elements has other cuts
#            than one of eight (two elements a piece), so padding a tensor changes its sums.
#            reduce_scatter_tensor sums as all_reduce of the whole does; reduce_scatter, given the same
#            values as a list, sums each part as if it were alone: here all from rank 3 down.
# Matters:   An in-network sum in worker order cannot equal gloo's bit for bit; a bucket of another
#            size, or a layer at another place in it, changes the last bits of the same gradients.
# Source:    PyTorch's page on reproducibility (says nothing of places); the ring all-reduce as the
#            papers have it explains the four orders, not that they start at the highest rank.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import itertools
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

VALUES = [1.0, 2.0**24, -(2.0**24), 0.5]
ORDERS = {"3210": (3, 2, 1, 0), "0321": (0, 3, 2, 1), "1032": (1, 0, 3, 2), "2103": (2, 1, 0, 3)}
HALVES = [60000.0, 60000.0, -60000.0, -60000.0]


def runs(values):
    groups = ((value, len(list(same))) for value, same in itertools.groupby(values))
    return ", ".join(f"{count} x {value}" for value, count in groups)


def folded(order):
    """Return the float32 sum in that order: 1, 2, 0 and 1.5 for the four."""
    total = np.float32(0)
    for number in order:
        total = total + np.float32(VALUES[number])
    return float(total)


def rank(number, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=4)
    mine = VALUES[number]
    names = {folded(order): name for name, order in ORDERS.items()}
    for size in (3, 8, 1000):
        x = torch.full((size,), mine)
        dist.all_reduce(x)
        if number == 0:
            print(f"all_reduce, {size}:", runs(names[v] for v in x.tolist()))
    part = torch.zeros(2)
    dist.reduce_scatter(part, [torch.full((2,), mine) for _ in range(4)])
    whole = torch.zeros(2)
    dist.reduce_scatter_tensor(whole, torch.full((8,), mine))
    found = [None] * 4
    dist.all_gather_object(found, (part.tolist(), whole.tolist()))
    half = torch.full((8,), HALVES[number], dtype=torch.float16)
    dist.all_reduce(half)
    if number == 0:
        for i, name in enumerate(("reduce_scatter", "reduce_scatter_tensor")):
            print(f"{name}:", runs(names[v] for f in found for v in f[i]))
        print("float16:", runs(half.tolist()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=4, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
all_reduce, 3: 2 x 3210, 1 x 0321
all_reduce, 8: 2 x 3210, 2 x 0321, 2 x 1032, 2 x 2103
all_reduce, 1000: 250 x 3210, 250 x 0321, 250 x 1032, 250 x 2103
reduce_scatter: 8 x 3210
reduce_scatter_tensor: 2 x 3210, 2 x 0321, 2 x 1032, 2 x 2103
float16: 2 x -inf, 2 x 0.0, 2 x inf, 2 x 0.0
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" -W ignore "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
