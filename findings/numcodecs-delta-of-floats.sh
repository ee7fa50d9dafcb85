#!/usr/bin/env bash
# numcodecs' Delta changes 99 of 100 float32 values, zeros the one after a large value, and loses all after a NaN.
#
# Versions:  numcodecs 0.16.6, numpy 2.4.6 from PyPI.
# Expected:  A filter that stores "the difference between adjacent values" is undone by decode, as for integers; where it is
#            not, the error is the last bit's.
# Seen:      Both directions compute in float32: differences are rounded, and decode adds up the roundings. Of a
#            hundred thousand values 99 % change, by up to 24 last bits. After 1e10 the next value is 0, and those behind it
#            are off by as much as it was, to the end. After a NaN everything is NaN.
# Matters:   Zarr's filters are taken for lossless: recorded gradients or losses that are compared with a rerun
#            are different ones, and a bad value ruins what comes after it.
# Source:    numcodecs' page on Delta.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet numcodecs==0.16.6 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import numpy as np
from numcodecs import Delta


def through(x):
    codec = Delta(x.dtype.str)
    return codec.decode(codec.encode(x))


integers = np.arange(100_000, dtype=np.int32) ** 2
print("int32, changed:", np.count_nonzero(through(integers) != integers))
x = np.sin(np.arange(100_000), dtype=np.float32)
error = np.abs(through(x) - x)
bits = error.max() / np.spacing(np.float32(1))
print(f"float32, changed: {np.mean(error > 0):.2f} of the values, up to {bits:.0f} last bits of 1")
x[3] = 1e10
print("beside 1e10:", *(f"{before:.3f} is {after:.3f}," for before, after in zip(x[4:7], through(x)[4:7], strict=True)))
x[3] = np.nan
print("behind a NaN, NaN:", np.isnan(through(x)[3:]).all())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
int32, changed: 0
float32, changed: 0.99 of the values, up to 24 last bits of 1
beside 1e10: -0.757 is 0.000, -0.959 is -0.202, -0.279 is 0.477,
behind a NaN, NaN: True
TXT
