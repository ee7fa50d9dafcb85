#!/usr/bin/env bash
# Triton's interpreter rounds to bfloat16 and float8 by other rules than torch: 500 is 256, NaN 384, a sum of ones 0.
#
# Versions:  triton 3.9.0, torch 2.13.0 (CPU).
# Expected:  TRITON_INTERPRET=1, which runs kernels in NumPy to find errors in them, converts as tl's documentation says
#            (to nearest, ties to even), as torch and NumPy's ml_dtypes do.
# Seen:      To bfloat16 it cuts: 1.01171875 is 1.0078125, and 1e-40, below float32's normal range, becomes 4.4e-39.
#            To float8e5 500 is 256, to float8e4nv NaN is 384 and infinity 256, all finite. float16 is right.
#            tl.sum of 4096 bfloat16 ones is 0: arithmetic in bfloat16, which the documentation says is not supported,
#            is not refused.
# Matters:   A kernel of a codec, tested where there is no GPU, fails against its reference or, worse, passes where the
#            reference went through the same interpreter; a NaN that should be kept is a number. Convert through
#            integers (bitcast), or accumulate in float32.
# Source:    Triton's documentation, "Debugging Triton" and tl.cast (fp_downcast_rounding).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet triton==3.9.0 torch==2.13.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import torch
import triton
import triton.language as tl


@triton.jit
def converted(x, out, n: tl.constexpr, kind: tl.constexpr):
    place = tl.arange(0, n)
    tl.store(out + place, tl.load(x + place).to(kind).to(tl.float32))


@triton.jit
def total(x, out, n: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, n))))


x = torch.tensor([1.01171875, 1e-40, 500.0, 70_000.0, 0.001, 3.4e38, float("inf"), float("nan")])
print("values:", *(f"{value:.9g}" for value in x.tolist()))
for kind, same in (
    (tl.float16, torch.float16),
    (tl.bfloat16, torch.bfloat16),
    (tl.float8e5, torch.float8_e5m2),
    (tl.float8e4nv, torch.float8_e4m3fn),
):
    out = torch.zeros_like(x)
    converted[(1,)](x, out, len(x), kind)
    print(same, "Triton:", *(f"{value:.9g}" for value in out.tolist()))
    print(same, "torch: ", *(f"{value:.9g}" for value in x.to(same).float().tolist()))
for kind in (torch.float32, torch.float16, torch.bfloat16):
    out = torch.zeros(1)
    total[(1,)](torch.ones(4096, dtype=kind), out, 4096)
    print("sum of 4096 ones in", kind, out.item())
PY
TRITON_INTERPRET=1 "$venv/bin/python" -W ignore "$work/finding.py" | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
values: 1.01171875 9.9999461e-41 500 70000 0.00100000005 3.39999995e+38 inf nan
torch.float16 Triton: 1.01171875 0 500 inf 0.00100040436 inf inf nan
torch.float16 torch:  1.01171875 0 500 inf 0.00100040436 inf inf nan
torch.bfloat16 Triton: 1.0078125 4.40810382e-39 500 69632 0.000999450684 3.38953139e+38 inf nan
torch.bfloat16 torch:  1.015625 9.18354962e-41 500 70144 0.000999450684 inf inf nan
torch.float8_e5m2 Triton: 1 0 256 65536 0.0009765625 65536 65536 98304
torch.float8_e5m2 torch:  1 0 512 inf 0.0009765625 inf inf nan
torch.float8_e4m3fn Triton: 1 0.001953125 256 288 0 256 256 384
torch.float8_e4m3fn torch:  1 0 448 448 0.001953125 448 448 nan
sum of 4096 ones in torch.float32 4096.0
sum of 4096 ones in torch.float16 4096.0
sum of 4096 ones in torch.bfloat16 0.0
TXT
