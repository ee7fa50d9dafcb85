#!/usr/bin/env bash
# dist.reduce on gloo overwrites the tensors of the ranks that are not to receive the result.
#
# Versions:  torch 2.13.0 (CPU), four ranks over loopback.
# Expected:  "Only the process with rank dst is going to receive the final result": the other ranks'
#            gradients stay as they were.
# Seen:      Ranks 1 to 3 hold partial sums afterwards, different ones in different places: rank 2's
#            tensor of 100s holds 100, 1100, 1101 and, in a quarter, the full sum 1111.
# Matters:   A parameter server by dist.reduce destroys the workers' gradients, so that error feedback
#            or a second reduce of "the same" tensor works on something else. Reduce a clone.
# Source:    PyTorch's page on torch.distributed.reduce.
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
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=4)
    x = torch.full((64,), 10.0**number)
    dist.reduce(x, dst=0)
    found = [torch.zeros(64) for _ in range(4)]
    dist.all_gather(found, x)
    if number == 0:
        for k, tensor in enumerate(found):
            print(f"rank {k}, before {10**k}, after:", sorted(set(tensor.int().tolist())))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=4, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
rank 0, before 1, after: [1111]
rank 1, before 10, after: [10, 110, 1110, 1111]
rank 2, before 100, after: [100, 1100, 1101, 1111]
rank 3, before 1000, after: [1000, 1001, 1011, 1111]
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
