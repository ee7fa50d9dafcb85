#!/usr/bin/env bash
# NumPy's mean of 4,096 ones is 0.0625 in ml_dtypes' bfloat16, and less or infinite in its 8-bit types.
#
# Versions:  ml_dtypes 0.6.0, numpy 2.4.6 from PyPI.
# Expected:  1, as in NumPy's own float16, which has fewer exponents and is summed pairwise, and as in torch's bfloat16.
# Seen:      The types bring an addition of their own, which NumPy repeats element by element in the type itself, without
#            pairwise sums: a sum of ones stops where 1 is half of the last digit, at 256 in bfloat16, 16 in
#            float8_e4m3fn and 8 in float8_e5m2; in float8_e3m4 it goes on to infinity. mean and var divide what
#            that gives. dot and norm are right, as they compute in float32.
# Matters:   The mean of recorded gradients or losses in bfloat16 depends on how many there are, while
#            a check by the norm of the same array passes. sum(dtype=np.float32) is right.
# Source:    ml_dtypes' README on its types as NumPy extensions; NumPy's notes on pairwise summation in numpy.sum.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import ml_dtypes
import numpy as np

names = "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e3m4"
for kind in (np.float16, *(getattr(ml_dtypes, name) for name in names)):
    ones = np.ones(4096, kind)
    print(
        f"{kind.__name__}: sum {float(ones.sum())}, mean {float(ones.mean())}, variance {float(ones.var())},"
        f" norm {float(np.linalg.norm(ones))}, sum in float32 {ones.sum(dtype=np.float32)}"
    )
PY
diff - "$work/seen" <<'TXT' && echo "as described"
float16: sum 4096.0, mean 1.0, variance 0.0, norm 64.0, sum in float32 4096.0
bfloat16: sum 256.0, mean 0.0625, variance 0.0625, norm 64.0, sum in float32 4096.0
float8_e5m2: sum 8.0, mean 0.001953125, variance 0.001953125, norm 64.0, sum in float32 4096.0
float8_e4m3fn: sum 16.0, mean 0.00390625, variance 0.00390625, norm 64.0, sum in float32 4096.0
float8_e3m4: sum inf, mean inf, variance inf, norm 64.0, sum in float32 4096.0
TXT
