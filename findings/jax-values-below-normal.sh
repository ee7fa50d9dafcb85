#!/usr/bin/env bash
# In JAX 1e-40 is equal to 0 and its maximum with 0 is 0, though print, abs and a jitted product with 1 show 1e-40.
#
# Versions:  jax 0.10.2 (CPU), numpy 2.4.6; torch 2.13.0 (CPU) beside it.
# Expected:  float32's values below 1.2e-38 (subnormal ones) count on a CPU as in NumPy and torch, or are zeros once they
#            are in an array.
# Seen:      They stay in the array and are taken for zeros by arithmetic and comparisons: x == 0 is true, a sum of a
#            thousand 1e-39 is 0, x + 0 is 0. What moves bits keeps them: abs, conversion to NumPy, and under jit x * 1,
#            which is left out, so that jit changes the value.
# Matters:   A gradient of small values (float16 scaled back, late layers) has no nonzero elements for a sparsifier in JAX
#            and all of them in torch; error feedback that waits for small values to add up waits for ever.
# Source:    IEEE 754 on subnormal numbers; the array API standard, which leaves them open (its issue 339).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet jax==0.10.2 torch==2.13.0 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import jax
import jax.numpy as jnp
import numpy as np
import torch

x = np.full(1000, 1e-39, np.float32)
for name, values, library in (("NumPy", x, np), ("torch", torch.from_numpy(x), torch), ("JAX", jnp.asarray(x), jnp)):
    print(f"{name}: equal to 0: {bool(values[0] == 0)}, nonzero: {int((values != 0).sum())},", end=" ")
    print(f"sum: {float(values.sum()):.1e}, + 0: {float((values + 0)[0]):.1e}", end=", ")
    print(f"abs: {float(np.asarray(library.abs(values))[0]):.1e}")
one = jax.jit(lambda x: x * 1)
print(f"JAX, x * 1: {np.asarray(jnp.asarray(x) * 1)[0]:.1e}, with jit {np.asarray(one(x))[0]:.1e}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
NumPy: equal to 0: False, nonzero: 1000, sum: 1.0e-36, + 0: 1.0e-39, abs: 1.0e-39
torch: equal to 0: False, nonzero: 1000, sum: 1.0e-36, + 0: 1.0e-39, abs: 1.0e-39
JAX: equal to 0: True, nonzero: 0, sum: 0.0e+00, + 0: 0.0e+00, abs: 1.0e-39
JAX, x * 1: 0.0e+00, with jit 1.0e-39
TXT
