#!/usr/bin/env bash
# NumPy's expressions, compiled by Numba, have other sums and other types.
#
# Versions:  numba 0.68.1, numpy 2.4.6 from PyPI.
# Expected:  A function on NumPy arrays gives under @njit what it gives without: the same pairwise sum,
#            and NumPy 2's types (a Python number takes the type of the array's scalar).
# Seen:      The mean of 20 million float32 ones is 1.0 in NumPy and 0.8388608 in Numba: its sum adds one
#            by one in float32 and stands still at 2^24. uint8 200 + uint8 100 is 44 in NumPy and 300 in
#            Numba, 200 << 4 is 128 and 3200; float32 * 0.1 is float32 in NumPy and float64 in Numba.
# Matters:   A codec's kernel that is checked without @njit wraps and rounds differently with it: codes
#            that should wrap at 8 bits do not, a norm has another last bit, a mean of a large gradient
#            is off by 16 %.
# Source:    Numba's pages on supported NumPy features and on integer width; NumPy's NEP 50 and np.sum.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet numba==0.68.1 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import numba
import numpy as np


def mean(x):
    return x.mean()


def add(a, b):
    return a + b


def shift(a, b):
    return a << b


def tenth(a):
    return a * 0.1


ones = np.ones(20_000_000, np.float32)
calls = [
    (mean, (ones,)),
    (add, (np.uint8(200), np.uint8(100))),
    (shift, (np.uint8(200), np.uint8(4))),
    (tenth, (np.float32(1),)),
]
for function, arguments in calls:
    plain, compiled = function(*arguments), numba.njit(function)(*arguments)
    print(f"{function.__name__}: NumPy {plain:.7g}, Numba {compiled:.7g};", end=" ")
    print(np.asarray(plain).dtype, "and", np.asarray(compiled).dtype)
PY
diff - "$work/seen" <<'TXT' && echo "as described"
mean: NumPy 1, Numba 0.8388608; float32 and float64
add: NumPy 44, Numba 300; uint8 and int64
shift: NumPy 128, Numba 3200; uint8 and int64
tenth: NumPy 0.1, Numba 0.1; float32 and float64
TXT
