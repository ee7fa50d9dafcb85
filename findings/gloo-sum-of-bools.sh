#!/usr/bin/env bash
# gloo adds bools as bytes: after enough sums True is False.
#
# Versions:  torch 2.13.0 (CPU), two ranks over loopback.
# Expected:  The sum of bools is "or": True stays True, however many ranks and steps. (The NCCL back end turns
#            a SUM of bools into a MAX, and Tensor.sum counts them as integers.)
# Seen:      The bytes are added, and the tensor holds 2, then 4, ... 128, and after the eighth all_reduce in
#            place 0: True has become False on both ranks. 256 ranks would see it in one step.
#            Until then nothing shows: torch takes each byte but 0 as True.
#            With MAX or BOR instead of SUM True stays.
# Matters:   "Did any rank overflow, or stop?" is kept as a bool and reduced each step; the answer is
#            forgotten on gloo, where such programs are tested.
# Source:    PyTorch's page on torch.distributed (no word on bools); ProcessGroupNCCL.cpp (SUM of bools).
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


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    flag = torch.tensor([True])
    bytes_held = []
    for _ in range(8):
        dist.all_reduce(flag)
        bytes_held.append(flag.view(torch.uint8).item())
    kept = {}
    for name in ("MAX", "BOR"):
        kept[name] = torch.tensor([True])
        for _ in range(8):
            dist.all_reduce(kept[name], op=getattr(dist.ReduceOp, name))
    if number == 0:
        print("SUM:", *bytes_held, flag.item())
        print(*(f"{name}: {value.item()}" for name, value in kept.items()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
SUM: 2 4 8 16 32 64 128 0 False
MAX: True BOR: True
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
