#!/usr/bin/env bash
# A sharded DTensor's sum().item() is one rank's part, and what is written into its slices is lost.
#
# Versions:  torch 2.13.0 (CPU), gloo, two ranks over loopback.
# Expected:  A DTensor behaves as the whole tensor. Where that is not done, it is refused, as most in-place operations
#            on sums that are still to be reduced are ("in-place operations that require placement changes").
# Seen:      Of ten numbers, sharded, whose sum is 45, sum().item() and float(sum()) are 10 on one rank and 35 on the
#            other, max() and mean() are each rank's own as well; print(sum().full_tensor()) says 45, and
#            bool(sum() > 40) is right. fill_(3) makes such a sum 6.
#            x[2:8].zero_() and x[7].fill_(1) change nothing: the slice of a sharded dimension is a copy. On a
#            replicated tensor they work, and x[2:8] = 0 is refused on both.
# Matters:   Logged losses and gradient norms are one rank's, and a program that decides by them (stop, skip, lower
#            the rate) does so differently on each rank. Masks and bias corrections that are written
#            into parts of parameters under FSDP2 do nothing.
# Source:    PyTorch's page on torch.distributed.tensor (DTensor keeps single-device semantics);
#            its issues 144054 ("intentional") and 139735.
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
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh


def zero(x):
    x[2:8].zero_()


def fill(x):
    x[7].fill_(1)


def assign(x):
    x[2:8] = 0


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    mesh = init_device_mesh("cpu", (2,))

    def show(text, value):
        values = [None, None]
        dist.all_gather_object(values, value)
        if number == 0:
            print(f"{text}:", *values)

    x = distribute_tensor(torch.arange(10.0), mesh, [Shard(0)])
    show("sum().full_tensor()", x.sum().full_tensor().item())
    show("sum().item()", x.sum().item())
    show("float(sum())", float(x.sum()))
    show("bool(sum() > 40)", bool(x.sum() > 40))
    show("max().item()", x.max().item())
    show("mean().item()", x.mean().item())
    show("sum().fill_(3)", x.sum().fill_(3).full_tensor().item())
    for placement in (Replicate(), Shard(0)):
        for change in (zero, fill, assign):
            x = distribute_tensor(torch.arange(10.0), mesh, [placement])
            try:
                change(x)
                text = "".join(f"{value:.0f}" for value in x.full_tensor().tolist())
            except (NotImplementedError, RuntimeError) as error:
                text = type(error).__name__
            show(f"{placement}, {change.__name__}", text)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
sum().full_tensor(): 45.0 45.0
sum().item(): 10.0 35.0
float(sum()): 10.0 35.0
bool(sum() > 40): True True
max().item(): 4.0 9.0
mean().item(): 2.0 7.0
sum().fill_(3): 6.0 6.0
R, zero: 0100000089 0100000089
R, fill: 0123456189 0123456189
R, assign: NotImplementedError NotImplementedError
S(0), zero: 0123456789 0123456789
S(0), fill: 0123456789 0123456789
S(0), assign: NotImplementedError NotImplementedError
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" 2>"$work/errors" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
