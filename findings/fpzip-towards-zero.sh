#!/usr/bin/env bash
# fpzip cuts every value towards zero, keeps the bits that its help says it cuts, and swaps axes with the wrong order.
#
# Versions:  fpzip 1.2.5, numpy 2.4.6 from PyPI.
# Expected:  precision is the "number of bits to truncate", as help(fpzip.compress) says, so that 8 loses less than 16; values
#            are rounded, so that errors cancel in a mean; NumPy arrays come back in the order in which NumPy shows them.
# Seen:      precision is the number of bits that stay. All errors make values smaller: the mean error is the mean size of
#            errors, 0.3 % at 16 bits, half of the value at 8, where -1.5 is -0.5 and infinity and NaN are one finite number.
#            w.T comes back as w, in w.T's shape, with order="C", the default; order="F" is right for it, for w "C", and
#            nothing looks at the array's strides (w[:, ::2] is right).
# Matters:   Gradients shrink at each hop, which no averaging over workers repairs, and a square weight's gradient that is held
#            transposed is added in the wrong places. Pass np.ascontiguousarray.
# Source:    help(fpzip.compress); Lindstrom and Isenburg, "Fast and Efficient Compression of Floating-Point Data".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet fpzip==1.2.5 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import fpzip
import numpy as np


def coded(x, precision=0, order="C"):
    return fpzip.decompress(fpzip.compress(x, precision=precision, order=order), order=order).reshape(x.shape)


x = np.linspace(-2, 2, 10_000, dtype=np.float32)
for precision in (0, 8, 16):
    shrunk = np.abs(x) - np.abs(coded(x, precision))
    size = np.abs(coded(x, precision) - x).mean()
    print(f"precision {precision}: mean error {size:.5f}, mean loss of magnitude {shrunk.mean():.5f}")
special = np.array([-1.5, np.inf, np.nan, 1.5], np.float32)
for precision in (16, 8):
    print(f"precision {precision}:", *special, "are", *coded(special, precision))
w = np.arange(64, dtype=np.float32).reshape(8, 8)
print("w.T is w.T:", np.array_equal(coded(w.T), w.T), "- w.T is w:", np.array_equal(coded(w.T), w))
print('order="F", w.T is w.T:', np.array_equal(coded(w.T, order="F"), w.T))
print("w[:, ::2] is right:", np.array_equal(coded(w[:, ::2]), w[:, ::2]))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
precision 0: mean error 0.00000, mean loss of magnitude 0.00000
precision 8: mean error 0.59979, mean loss of magnitude 0.59979
precision 16: mean error 0.00261, mean loss of magnitude 0.00261
precision 16: -1.5 inf nan 1.5 are -1.5 inf nan 1.5
precision 8: -1.5 inf nan 1.5 are -0.5 1.7014118e+38 1.7014118e+38 0.5
w.T is w.T: False - w.T is w: True
order="F", w.T is w.T: True
w[:, ::2] is right: True
TXT
