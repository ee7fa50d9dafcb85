#!/usr/bin/env bash
# Three packages that keep fewer bits of a float32 make -0, 0 or infinity of a NaN.
#
# Versions:  torchao 0.18.0, torch 2.13.0 (CPU), numcodecs 0.16.6, blosc2 4.14.1, numpy 2.4.6 from PyPI.
# Expected:  NaN stays NaN, as in a conversion to bfloat16.
# Seen:      The NaN that NumPy and torch make on a CPU (0x7fc00000) stays. But rounding adds to the bits as to an integer:
#            0x7fffffff, the NaN of NVIDIA's GPUs, becomes -0 in torchao's stochastic rounding (of its optimizers with
#            bf16_stochastic_round) and in numcodecs' BitRound, and 0xffffffff 0. BitRound(0) makes -0 of 0x7fc00000 too.
#            0x7f800001 becomes infinity in all three, also where blosc2 only cuts. The largest finite number becomes infinite.
# Matters:   A weight that is NaN after a step on a GPU is -0 after it was rounded: the loss is finite again, and the
#            check for NaN finds nothing to skip.
# Source:    CUDA's programming guide on floating point (the canonical NaN 0x7fffffff); torchao's page on
#            low-bit optimizers; numcodecs' page on BitRound; blosc2's on TRUNC_PREC.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 torchao==0.18.0 numcodecs==0.16.6 blosc2==4.14.1 numpy==2.4.6

"$venv/bin/python" -W ignore - 2>"$work/errors" <<'PY' | tee "$work/seen"
import blosc2
import numpy as np
import torch
from numcodecs import BitRound
from torchao.optim.quant_utils import _fp32_to_bf16_sr

bits = np.array([0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7F7FFFFF], np.uint32)
values = bits.view(np.float32)
torch.manual_seed(0)


def bit_rounded(kept):
    codec = BitRound(kept)
    return codec.decode(codec.encode(values.copy())).view(np.float32)


def cut(kept):
    filters = blosc2.CParams(
        filters=[blosc2.Filter.TRUNC_PREC, blosc2.Filter.SHUFFLE], filters_meta=[kept, 0], typesize=4
    )
    return blosc2.asarray(np.tile(values, 1000), cparams=filters)[:5]  # a few values are not filtered


print("bits:", *(f"{number:#x}" for number in bits))
print("bfloat16:", *torch.from_numpy(values).bfloat16().tolist())
print("torchao, stochastic:", *_fp32_to_bf16_sr(torch.from_numpy(values)).tolist())
print("numcodecs, BitRound(7):", *bit_rounded(7).tolist())
print("numcodecs, BitRound(0):", *bit_rounded(0).tolist())
print("blosc2, TRUNC_PREC 7:", *cut(7).tolist())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
bits: 0x7fc00000 0x7fffffff 0xffffffff 0x7f800001 0x7f7fffff
bfloat16: nan nan nan nan inf
torchao, stochastic: nan -0.0 0.0 inf inf
numcodecs, BitRound(7): nan -0.0 0.0 inf inf
numcodecs, BitRound(0): -0.0 -0.0 0.0 inf inf
blosc2, TRUNC_PREC 7: nan nan nan inf 3.3895313892515355e+38
TXT
