#!/usr/bin/env bash
# torch's 15 largest of 1000 equal values are none of its 16 largest.
#
# Versions:  torch 2.13.0 (CPU), jax 0.10.2, numpy 2.4.6.
# Expected:  Any rule for equal values, but one rule: the sixteen largest contain the fifteen largest.
# Seen:      Up to k = length / 64 torch.topk takes the first of equal values; from k = 16 on, of 1000, another algorithm
#            takes others, none of the first ones, also for k=100. jax.lax.top_k takes the first ones.
# Matters:   Gradients of signs, of few levels or clipped have many equal magnitudes. Which of them a sparsifier sends
#            depends on k beside the tensor's length: a schedule that raises k sends other places, and the codec in another
#            library has other bytes.
# Source:    PyTorch's page on torch.topk (no order is promised); JAX's on lax.top_k.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 jax==0.10.2

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import jax
import numpy as np
import torch

x = np.ones(1000, np.float32)


def by_torch(x, k):
    return set(torch.topk(torch.from_numpy(x), k).indices.tolist())


def by_jax(x, k):
    return set(np.asarray(jax.lax.top_k(x, k)[1]).tolist())


for k in (5, 10, 15, 16, 50, 100):
    print(f"torch's 5 among its {k}: {len(by_torch(x, 5) & by_torch(x, k))}, JAX's 5 among its {k}:", end=" ")
    print(f"{len(by_jax(x, 5) & by_jax(x, k))}, torch's {k} among JAX's {k}: {len(by_torch(x, k) & by_jax(x, k))}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
torch's 5 among its 5: 5, JAX's 5 among its 5: 5, torch's 5 among JAX's 5: 5
torch's 5 among its 10: 5, JAX's 5 among its 10: 5, torch's 10 among JAX's 10: 10
torch's 5 among its 15: 5, JAX's 5 among its 15: 5, torch's 15 among JAX's 15: 15
torch's 5 among its 16: 0, JAX's 5 among its 16: 5, torch's 16 among JAX's 16: 0
torch's 5 among its 50: 0, JAX's 5 among its 50: 5, torch's 50 among JAX's 50: 0
torch's 5 among its 100: 0, JAX's 5 among its 100: 5, torch's 100 among JAX's 100: 0
TXT
