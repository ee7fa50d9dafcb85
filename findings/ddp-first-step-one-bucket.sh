#!/usr/bin/env bash
# In DDP's first step there are no buckets: the hook gets all gradients at once, in forward order.
#
# Versions:  torch 2.13.0 (CPU), two ranks over loopback, gloo.
# Expected:  Buckets of bucket_cap_mb, in the reverse order of the parameters, from the first step on,
#            rebuilt in the order of arrival after it.
# Seen:      Step 1: one bucket with all twelve parameters, first to last, however small the cap.
#            Step 2 on: buckets, last parameter first. A bucket takes the tensor with which it passes
#            the cap: cap 2 MiB, tensors of 0.8 MB: three to a bucket, 2.4 MB. With
#            find_unused_parameters=True the cap holds from the first step on, nothing is rebuilt, and
#            within a bucket the parameters are in forward order.
# Matters:   Error feedback, PowerSGD's factors or a switch's slots that are sized by bucket index in
#            step 1 do not fit step 2. A traffic trace of one step shows a pattern that never returns.
# Source:    PyTorch's page on DistributedDataParallel (bucket_cap_mb) and its DDP design note.
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
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [200_000] * 12
        self.layers = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(n)) for n in sizes)

    def forward(self, x):
        return x + sum(layer.sum() for layer in self.layers)


def steps(**options):
    model, seen = DistributedDataParallel(Layers(), **options), []
    names = {id(layer): number for number, layer in enumerate(model.module.layers)}

    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen[-1].append([names[id(layer)] for layer in bucket.parameters()])
        return allreduce_hook(None, bucket)

    model.register_comm_hook(None, hook)
    for _ in range(3):
        seen.append([])
        model(torch.zeros(1)).sum().backward()
    return seen


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    for options in ({"bucket_cap_mb": 2}, {"bucket_cap_mb": 2, "find_unused_parameters": True}):
        for step, buckets in enumerate(steps(**options), 1):
            if number == 0:
                print(options, f"step {step}:", *buckets)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
{'bucket_cap_mb': 2} step 1: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
{'bucket_cap_mb': 2} step 2: [11, 10, 9] [8, 7, 6] [5, 4, 3] [2, 1, 0]
{'bucket_cap_mb': 2} step 3: [11, 10, 9] [8, 7, 6] [5, 4, 3] [2, 1, 0]
{'bucket_cap_mb': 2, 'find_unused_parameters': True} step 1: [9, 10, 11] [6, 7, 8] [3, 4, 5] [0, 1, 2]
{'bucket_cap_mb': 2, 'find_unused_parameters': True} step 2: [9, 10, 11] [6, 7, 8] [3, 4, 5] [0, 1, 2]
{'bucket_cap_mb': 2, 'find_unused_parameters': True} step 3: [9, 10, 11] [6, 7, 8] [3, 4, 5] [0, 1, 2]
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" 2>"$work/warnings" |
  tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
