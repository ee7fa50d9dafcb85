#!/usr/bin/env bash
# In NumPy arrays of ml_dtypes' bfloat16 a NaN leaves what is around it unsorted.
#
# Versions:  ml_dtypes 0.6.0, numpy 2.4.6 from PyPI.
# Expected:  Sorting puts NaN last and all else in order, as NumPy says of its floating-point types.
# Seen:      The types compare by < alone, which is false of a NaN either way: sort, argsort and partition stop at it.
#            [2, nan, 1, 3] is "sorted" as it is, the two smallest of [5, 4, nan, 1, 2] are 5 and 4, and unique finds 1
#            twice. The 8-bit types do the same. The maximum is NaN as it should be, in bfloat16 and the 8-bit
#            types; in float4_e2m1fn and both float6 types, which have none, a NaN has become -0 when the array was made.
# Matters:   A top-k by argpartition keeps the wrong gradients, and a quantile is another one, when one of a million
#            values is NaN; in 4 and 6 bits nothing shows it at all.
# Source:    NumPy's page on numpy.sort (order of NaN); OCP's Microscaling Formats 1.0, section 5.3 (no NaN in FP4 and FP6).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import ml_dtypes
import numpy as np

for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    four, five = np.array([2, np.nan, 1, 3], kind), np.array([5, 4, np.nan, 1, 2], kind)
    print(
        f"{kind.__name__}: sort {np.sort(four).astype(float).tolist()}, argsort {np.argsort(four).tolist()},"
        f" two smallest {np.partition(five, 1)[:2].astype(float).tolist()},"
        f" unique {np.unique(np.array([1, np.nan, 1], kind)).astype(float).tolist()}, maximum {four.max()}"
    )
for name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
    made = np.array([2, np.nan, 1, 3], getattr(ml_dtypes, name))
    print(f"{name}: {made.astype(float).tolist()}, maximum {made.max()}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
float16: sort [1.0, 2.0, 3.0, nan], argsort [2, 0, 3, 1], two smallest [1.0, 2.0], unique [1.0, nan], maximum nan
bfloat16: sort [2.0, nan, 1.0, 3.0], argsort [0, 1, 2, 3], two smallest [4.0, 5.0], unique [1.0, nan, 1.0], maximum nan
float8_e4m3fn: sort [2.0, nan, 1.0, 3.0], argsort [0, 1, 2, 3], two smallest [4.0, 5.0], unique [1.0, nan, 1.0], maximum nan
float4_e2m1fn: [2.0, -0.0, 1.0, 3.0], maximum 3.0
float6_e2m3fn: [2.0, -0.0, 1.0, 3.0], maximum 3.0
float6_e3m2fn: [2.0, -0.0, 1.0, 3.0], maximum 3.0
TXT
