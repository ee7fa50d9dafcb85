#!/usr/bin/env bash
# Compiled by torch, a conversion to bfloat16 and back rounds nothing: x.to(bfloat16).float() - x is 0.
#
# Versions:  torch 2.13.0 (CPU; g++ compiles); beside it jax 0.10.2.
# Expected:  torch.compile changes the speed of a function and perhaps last bits: rounding that is written down as two
#            conversions is the function.
# Seen:      Eager, the residual of float32 ones and a bit after bfloat16 or float16 is what was rounded off. Compiled it
#            is exactly 0 for both (not for float8), and so is the rounding of what is returned. Conversions in two
#            compiled functions round, as does inductor's option emulate_precision_casts. jax.jit rounds as written.
# Matters:   A codec that is tried out as quantise and dequantise has no error and no residual to feed back, and reaches
#            the accuracy of float32, until it runs without the compiler or really sends the bytes.
# Source:    PyTorch's pages on torch.compile; torch/_inductor/config.py (emulate_precision_casts).
set -euo pipefail
command -v g++ >/dev/null || { echo "needs Debian's package g++"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 jax==0.10.2

TORCHINDUCTOR_CACHE_DIR=$work/cache "$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import jax
import jax.numpy as jnp
import torch


def rounded(x, kind):
    return x.to(kind).float()


def residual(x, kind):
    return x.to(kind).float() - x


def largest(x):
    return f"{x.abs().max().item():.7f}"


x = 1 + torch.arange(100) / 2**20
compiled, rounding = torch.compile(residual), torch.compile(rounded)
careful = torch.compile(lambda x, kind: x.to(kind).float() - x, options={"emulate_precision_casts": True})
narrow, wide = torch.compile(lambda x: x.to(torch.bfloat16)), torch.compile(lambda x: x.float())
for kind in (torch.bfloat16, torch.float16, torch.float8_e4m3fn):
    print(kind, "eager:", largest(residual(x, kind)), "compiled:", largest(compiled(x, kind)))
print("returned, compiled:", largest(rounding(x, torch.bfloat16) - x))
print("in two functions:", largest(wide(narrow(x)) - x))
print("emulate_precision_casts:", largest(careful(x, torch.bfloat16)))
jitted = jax.jit(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32) - x)
print(f"jax.jit: {abs(jitted(x.numpy())).max():.7f}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
torch.bfloat16 eager: 0.0000944 compiled: 0.0000000
torch.float16 eager: 0.0000944 compiled: 0.0000000
torch.float8_e4m3fn eager: 0.0000944 compiled: 0.0000944
returned, compiled: 0.0000000
in two functions: 0.0000944
emulate_precision_casts: 0.0000944
jax.jit: 0.0000944
TXT
