#!/usr/bin/env bash
# bitsandbytes' 8-bit blocks shrink their largest negative value by 0.7 %, and have a number for a NaN.
#
# Versions:  bitsandbytes 0.50.2, torch 2.13.0 (CPU).
# Expected:  A block is scaled by its largest magnitude, so that this value comes back exactly, whatever its sign; a NaN
#            or infinity makes itself and perhaps its block unusable.
# Seen:      The table of codes has 1 but not -1: a block whose extreme is -1 has -0.99297 there, each time it is coded.
#            A NaN becomes the block's most negative number, finite like the rest. An infinity makes all 4096 values of
#            its block infinite, itself with the other sign. NF4 has both ends, and NaN fills its block of 64.
# Matters:   Gradients or moments that are coded each step drift towards positive; a step that should be skipped
#            for a NaN has only finite numbers behind the codec. Test with isfinite before.
# Source:    bitsandbytes' pages on 8-bit quantization; Dettmers et al., "8-bit Optimizers via Block-wise Quantization".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet bitsandbytes==0.50.2 torch==2.13.0 numpy==2.4.6

"$venv/bin/python" -W ignore - 2>"$work/errors" <<'PY' | tee "$work/seen"
import math

import torch
from bitsandbytes import functional


def coded(special):
    """Return two blocks of small values after coding, the first of them with one special value."""
    x = torch.linspace(-0.5, 0.5, 8192)
    x[7] = special
    codes, state = functional.quantize_blockwise(x)
    return functional.dequantize_blockwise(codes, state)


table = functional.create_dynamic_map()
print(f"table: {len(table)} codes from {table.min().item():.5f} to {table.max().item():.5f}")
for special in (1.0, -1.0, math.nan, math.inf):
    y = coded(special)
    print(f"{special} is {y[7].item():.5f}, finite values in its block:", y[:4096].isfinite().sum().item())
x = torch.linspace(-0.5, 0.5, 128)
for special in (-1.0, math.nan):
    x[7] = special
    codes, state = functional.quantize_4bit(x, quant_type="nf4", blocksize=64)
    y = functional.dequantize_4bit(codes, state).flatten()
    print(f"NF4: {special} is {y[7].item():.5f}, finite values in its block:", y[:64].isfinite().sum().item())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
table: 256 codes from -0.99297 to 1.00000
1.0 is 1.00000, finite values in its block: 4096
-1.0 is -0.99297, finite values in its block: 4096
nan is -0.49648, finite values in its block: 4096
inf is -inf, finite values in its block: 0
NF4: -1.0 is -1.00000, finite values in its block: 64
NF4: nan is nan, finite values in its block: 0
TXT
