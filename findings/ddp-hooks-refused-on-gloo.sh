#!/usr/bin/env bash
# Three of DDP's compression hooks do not run on gloo, for reasons that gloo's abilities do not give.
#
# Versions:  torch 2.13.0 (CPU), two ranks over loopback, gloo.
# Expected:  gloo sums bfloat16 and gathers any type, so that bf16_compress_hook and both quantization
#            hooks, which only need an all_reduce of bfloat16 and all_gathers, run on CPUs.
# Seen:      bf16_compress_hook is refused at registration: it asks for NCCL (or XCCL), although
#            all_reduce of bfloat16 works on the same group (256 + 1 gives 256: rounded to bfloat16).
#            quantization_pertensor_hook and _perchannel_hook are accepted; the first backward pass
#            raises IndexError from a callback, on a scale and zero point taken for a list of them.
#            fp16_compress_hook works.
# Matters:   A CPU test bed cannot check such a job before it goes to the cluster; a comparison of
#            compression schemes on gloo needs hooks of one's own.
# Source:    PyTorch's page on DDP communication hooks (a note on NCCL for bfloat16; none at the
#            quantization hooks).
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
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, quantization_hooks
from torch.nn.parallel import DistributedDataParallel


def tried(hook):
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    try:
        model.register_comm_hook(None, hook)
    except TypeError as error:
        return f"refused at registration, {type(error).__name__}"
    try:
        model(torch.ones(1, 4)).sum().backward()
    except RuntimeError as error:
        return "backward raises, from IndexError: " + str("IndexError" in str(error))
    return "runs"


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    x = torch.tensor([256.0 if number == 0 else 1.0], dtype=torch.bfloat16)
    dist.all_reduce(x)
    if number == 0:
        print("all_reduce of bfloat16: 256 + 1 =", x.item())
    for hook in (
        default_hooks.fp16_compress_hook,
        default_hooks.bf16_compress_hook,
        quantization_hooks.quantization_pertensor_hook,
        quantization_hooks.quantization_perchannel_hook,
    ):
        result = tried(hook)
        if number == 0:
            print(f"{hook.__name__}: {result}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
all_reduce of bfloat16: 256 + 1 = 256.0
fp16_compress_hook: runs
bf16_compress_hook: refused at registration, TypeError
quantization_pertensor_hook: backward raises, from IndexError: True
quantization_perchannel_hook: backward raises, from IndexError: True
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
