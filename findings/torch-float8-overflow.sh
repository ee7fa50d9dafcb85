#!/usr/bin/env bash
# torch makes 448 of an infinity in float8_e4m3fn; each of its other float8 types keeps it or makes it a NaN.
#
# Versions:  torch 2.13.0 (CPU), ml_dtypes 0.6.0.
# Expected:  One rule for the four types, in torch as in ml_dtypes: what is too large, and infinity above all,
#            becomes infinity, or NaN in a type without one.
# Seen:      e5m2 has infinity, e4m3fnuz and e5m2fnuz NaN, in both libraries. e4m3fn, the most used of them, is 448
#            for 1000 and for infinity in torch, NaN in ml_dtypes. The scale type e8m0fnu drops a sign in torch
#            (-1 is 1) and takes 0 for 2^-127, where ml_dtypes has NaN for both. NaN itself stays NaN everywhere.
# Matters:   A gradient that overflowed arrives as a finite 448: isfinite after the exchange finds nothing, and no
#            step is skipped. Two ends of one wire, in torch and in JAX, read different numbers out of
#            the same ones.
# Source:    OCP 8-bit Floating Point Specification 1.0 (a conversion saturates or does not, as a mode);
#            PyTorch's pull request 178817, before which e4m3fn gave NaN.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 ml_dtypes==0.6.0

"$venv/bin/python" - <<'PY' | tee "$work/seen"
import ml_dtypes
import numpy as np
import torch

for name, values in (
    ("float8_e4m3fn", [1000, np.inf, -np.inf, np.nan]),
    ("float8_e5m2", [1e6, np.inf, -np.inf, np.nan]),
    ("float8_e4m3fnuz", [1000, np.inf, -np.inf, np.nan]),
    ("float8_e5m2fnuz", [1e6, np.inf, -np.inf, np.nan]),
    ("float8_e8m0fnu", [-1, 0, np.inf, np.nan]),
):
    values = np.array(values, np.float32)
    print(name, "torch:", *torch.from_numpy(values).to(getattr(torch, name)).float().tolist())
    with np.errstate(invalid="ignore"):
        converted = values.astype(getattr(ml_dtypes, name)).astype(np.float32)
    print(name, "ml_dtypes:", *converted.tolist())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
float8_e4m3fn torch: 448.0 448.0 -448.0 nan
float8_e4m3fn ml_dtypes: nan nan nan nan
float8_e5m2 torch: inf inf -inf nan
float8_e5m2 ml_dtypes: inf inf -inf nan
float8_e4m3fnuz torch: nan nan nan nan
float8_e4m3fnuz ml_dtypes: nan nan nan nan
float8_e5m2fnuz torch: nan nan nan nan
float8_e5m2fnuz ml_dtypes: nan nan nan nan
float8_e8m0fnu torch: 1.0 5.877471754111438e-39 nan nan
float8_e8m0fnu ml_dtypes: nan nan nan nan
TXT
