#!/usr/bin/env bash
# hivemind's scaled 16-bit compression makes zeros non-zero and integers wrong that plain float16 keeps.
#
# Versions:  hivemind 1.1.12, torch 2.13.0 (CPU), numpy 2.4.6 from PyPI.
# Expected:  A compression with a scale of its own is nowhere worse than the one without, up to 65,504; zero stays zero.
# Seen:      The mean is taken away before the values are rounded and added after. Of 9,990 zeros beside ten fives each comes back
#            as -1.3e-06, all alike; of 0, 1, ..., 9999 the errors reach 1.4, and 0, 1 and 2 are all 1.248, where
#            plain float16 keeps all up to 2,048. Only values above 65,504 gain: plain float16 cuts them there in silence.
#            The two 8-bit compressions end with a TypeError under numpy 2.4, which no longer makes a number of an array of one.
# Matters:   Parameters without a gradient (unused embeddings, masked weights) drift all in one direction with each average, and
#            what is sparse is no longer sparse.
# Source:    hivemind/compression/floating.py and quantization.py; NumPy 2.4's release notes (conversion of arrays to scalars).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet hivemind==1.1.12 torch==2.13.0 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import torch
from hivemind.compression import (
    CompressionInfo,
    Float16Compression,
    Quantile8BitQuantization,
    ScaledFloat16Compression,
    Uniform8BitQuantization,
)

tensors = {
    "zeros and fives": torch.cat([torch.zeros(9990), torch.full((10,), 5.0)]),
    "0 to 9999": torch.arange(10000.0),
    "up to 200,000": torch.linspace(-2e5, 2e5, 10000),
}
for name, x in tensors.items():
    for kind in (Float16Compression, ScaledFloat16Compression):
        codec = kind()
        y = codec.extract(codec.compress(x, CompressionInfo.from_tensor(x)))
        first = ", ".join(f"{value:.4g}" for value in y[:3].tolist())
        print(f"{name}, {kind.__name__}: {first}, largest error {(y - x).abs().max():.2g}")
for kind in (Uniform8BitQuantization, Quantile8BitQuantization):
    x = torch.arange(1000.0)
    try:
        kind().extract(kind().compress(x, CompressionInfo.from_tensor(x)))
    except TypeError as error:
        print(f"{kind.__name__}: {error}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
zeros and fives, Float16Compression: 0, 0, 0, largest error 0
zeros and fives, ScaledFloat16Compression: -1.285e-06, -1.285e-06, -1.285e-06, largest error 0.00038
0 to 9999, Float16Compression: 0, 1, 2, largest error 4
0 to 9999, ScaledFloat16Compression: 1.248, 1.248, 1.248, largest error 1.4
up to 200,000, Float16Compression: -6.55e+04, -6.55e+04, -6.55e+04, largest error 1.3e+05
up to 200,000, ScaledFloat16Compression: -2e+05, -2e+05, -2e+05, largest error 56
Uniform8BitQuantization: only 0-dimensional arrays can be converted to Python scalars
Quantile8BitQuantization: only 0-dimensional arrays can be converted to Python scalars
TXT
