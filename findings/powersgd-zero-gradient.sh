#!/usr/bin/env bash
# A layer whose gradient is zero once gets NaN or zero for ever from PyTorch's PowerSGD; its batched hook fails.
#
# Versions:  torch 2.13.0 (CPU), gloo, two ranks over loopback.
# Expected:  A low-rank approximation of zeros is zeros, and of the next step's gradient what it is otherwise;
#            orthogonalization_epsilon, "to prevent div-by-zero error", repairs what is not so. A documented hook
#            works, or refuses its arguments when it is registered.
# Seen:      A layer's gradient is zero until the first compressed step, then it is not. With rank 1 or 2 all its
#            later gradients are NaN; with epsilon 1e-8 all are zero, and nothing says so: the matrix
#            kept for the warm start is zero, and so is each product with it. Without error feedback one
#            step of zeros at any time does it. Rank 3, which another algorithm orthogonalizes, and
#            warm_start=False with an epsilon go on.
#            batched_powerSGD_hook runs plain all_reduce for start_powerSGD_iter steps (1000, if not said) and dies
#            in the next with an AssertionError without text, whatever its rank and dtype: it hands one matrix
#            to a function that wants a batch of them.
# Matters:   Layers without a gradient for a step are common: frozen, an expert that was not chosen, behind a dead
#            ReLU. With the epsilon that the page recommends such a layer stops learning unseen.
# Source:    PyTorch's page on DDP communication hooks; Vogels et al., PowerSGD (2019), for the warm start.
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
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel


def steps(hook, zero_steps, dtype=torch.float32, **options):
    """Train seven steps, compressed from the third on; return what a layer's gradient is in each."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 32).to(dtype)
    parallel = DistributedDataParallel(layer)
    state = powersgd.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=1, **options)
    parallel.register_comm_hook(state, hook)
    norms = []
    for step in range(7):
        inputs = torch.randn(8, 16, dtype=dtype) * (step not in zero_steps)
        parallel.zero_grad()
        try:
            parallel(inputs).pow(2).mean().backward()
        except AssertionError as error:
            return [*norms, f"AssertionError {str(error)!r}"]
        norm = layer.weight.grad.float().norm().item()
        norms.append("nan" if norm != norm else "0" if norm == 0 else "fine")
    return norms


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)

    def show(text, *arguments, **options):
        seen = steps(*arguments, **options)
        if number == 0:
            print(f"{text}:", *seen)

    start = range(3)
    for columns in (1, 2, 3):
        for epsilon in (0, 1e-8):
            options = {"matrix_approximation_rank": columns, "orthogonalization_epsilon": epsilon}
            show(f"rank {columns}, epsilon {epsilon}", powersgd.powerSGD_hook, start, **options)
    cold = {"matrix_approximation_rank": 1, "orthogonalization_epsilon": 1e-8, "warm_start": False}
    show("rank 1, epsilon 1e-08, no warm start", powersgd.powerSGD_hook, start, **cold)
    for epsilon in (0, 1e-8):
        plain = {"matrix_approximation_rank": 1, "orthogonalization_epsilon": epsilon, "use_error_feedback": False}
        show(f"rank 1, epsilon {epsilon}, no feedback, zero once", powersgd.powerSGD_hook, [4], **plain)
    show("rank 1, zero once", powersgd.powerSGD_hook, [4], matrix_approximation_rank=1)
    for columns in (1, 3):
        for dtype in (torch.float32, torch.bfloat16):
            options = {"matrix_approximation_rank": columns}
            show(f"batched, rank {columns}, {str(dtype)[6:]}", powersgd.batched_powerSGD_hook, [], dtype, **options)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
rank 1, epsilon 0: 0 0 nan nan nan nan nan
rank 1, epsilon 1e-08: 0 0 0 0 0 0 0
rank 2, epsilon 0: 0 0 nan nan nan nan nan
rank 2, epsilon 1e-08: 0 0 0 0 0 0 0
rank 3, epsilon 0: 0 0 0 fine fine fine fine
rank 3, epsilon 1e-08: 0 0 0 fine fine fine fine
rank 1, epsilon 1e-08, no warm start: 0 0 0 fine fine fine fine
rank 1, epsilon 0, no feedback, zero once: fine fine fine fine nan nan nan
rank 1, epsilon 1e-08, no feedback, zero once: fine fine fine fine 0 0 0
rank 1, zero once: fine fine fine fine fine fine fine
batched, rank 1, float32: fine fine AssertionError ''
batched, rank 1, bfloat16: fine fine AssertionError ''
batched, rank 3, float32: fine fine AssertionError ''
batched, rank 3, bfloat16: fine fine AssertionError ''
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" 2>"$work/errors" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
