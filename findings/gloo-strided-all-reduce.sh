#!/usr/bin/env bash
# all_reduce of a strided view on gloo sums the wrong elements, and raises nothing.
#
# Versions:  torch 2.13.0 (CPU), two ranks over loopback.
# Expected:  `dist.all_reduce(x[::2])` adds up the four elements of the view, or is refused, since a
#            collective wants contiguous tensors (the NCCL back end refuses such a view).
# Seen:      The first four elements in *memory* are added up: two elements of the view are summed,
#            two elements that are not in the view are changed, the rest is left as it was.
#            A column of a matrix of gradients (`g[:, 0]`) meets the same. A transposed matrix comes
#            out right, because its elements fill their memory without gaps.
# Matters:   Sums of slices of a gradient (one layer's columns, every second value) are wrong without
#            a word. Pass `x[::2].contiguous()` and copy back.
# Source:    PyTorch's page on torch.distributed ("tensor should have the same size on all ranks and
#            be contiguous" stands at some collectives only; all_reduce says nothing of strides).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    base = torch.arange(8.0)
    dist.all_reduce(base[::2])
    matrix = torch.arange(6.0).view(2, 3)
    dist.all_reduce(matrix[:, 0])
    turned = torch.arange(6.0).view(2, 3)
    dist.all_reduce(turned.t())
    if number == 0:
        print("base of [::2]:", base.tolist())
        print("base of [:, 0]:", matrix.tolist())
        print("base of .t():", turned.tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import sys

    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
base of [::2]: [0.0, 2.0, 4.0, 6.0, 4.0, 5.0, 6.0, 7.0]
base of [:, 0]: [[0.0, 2.0, 2.0], [3.0, 4.0, 5.0]]
base of .t(): [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
