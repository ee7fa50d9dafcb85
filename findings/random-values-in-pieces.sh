#!/usr/bin/env bash
# From one seed, 17 normal values of torch share one with 16, and NumPy's 10 small integers are not 5 and 5.
#
# Versions:  torch 2.13.0 (CPU), numpy 2.4.6 from PyPI.
# Expected:  A generator is a stream: with the same seed, more values begin like fewer, and two calls give what one
#            call gives.
# Seen:      torch.randn(16) is the beginning of randn(32), but randn(15) and randn(17) share no more than one value with
#            it, and two calls of 20 four with one of 40. torch.rand is a stream, but not into a transposed tensor.
#            bernoulli_(0.5) draws other bits than bernoulli of a tensor of 0.5. NumPy's Generator is a stream for
#            int32, int64, float32 and normal values; integers of 8 and 16 bits and bool, and bytes, drop the rest of a
#            word at the end of each call.
# Matters:   Sender and receiver that draw a shared rotation, mask or dither from one seed differ once one of them works
#            by chunk, pads to a multiple, or is given the last, shorter bucket.
# Source:    PyTorch's "Reproducibility"; NumPy's Generator.integers and Generator.bytes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6

"$venv/bin/python" -W ignore - <<'PY' | tee "$work/seen"
import numpy as np
import torch


def drawn(draw, *sizes):
    torch.manual_seed(1)
    return torch.cat([draw(size).flatten() for size in sizes])


for few, many in ((16, 32), (15, 16), (16, 17)):
    same = (drawn(torch.randn, few) == drawn(torch.randn, many)[:few]).sum().item()
    print(f"randn({few}) and randn({many}) share {same} of {few}")
print("randn(40) and two of 20 share", (drawn(torch.randn, 40) == drawn(torch.randn, 20, 20)).sum().item())
print("rand(40) and two of 20 share", (drawn(torch.rand, 40) == drawn(torch.rand, 20, 20)).sum().item())
plain = drawn(lambda n: torch.empty(n, n).uniform_(), 8)
turned = drawn(lambda n: torch.empty(n, n).t().uniform_(), 8)
print("uniform_ into a tensor and a transposed one agree:", torch.equal(plain, turned))
number = drawn(lambda n: torch.empty(n).bernoulli_(0.5), 1000)
tensor = drawn(lambda n: torch.bernoulli(torch.full((n,), 0.5)), 1000)
print("bernoulli of a number and of a tensor agree:", torch.equal(number, tensor))

for name, draw in (
    ("bool", lambda random, n: random.integers(0, 2, n, dtype=bool)),
    ("uint8", lambda random, n: random.integers(0, 16, n, dtype=np.uint8)),
    ("uint16", lambda random, n: random.integers(0, 16, n, dtype=np.uint16)),
    ("uint32", lambda random, n: random.integers(0, 16, n, dtype=np.uint32)),
    ("int64", lambda random, n: random.integers(0, 16, n)),
    ("float32", lambda random, n: random.random(n, dtype=np.float32)),
    ("normal", lambda random, n: random.standard_normal(n)),
    ("bytes", lambda random, n: np.frombuffer(random.bytes(n), np.uint8)),
):
    random = np.random.default_rng(1)
    pieces = np.concatenate([draw(random, 5), draw(random, 5)])
    whole = draw(np.random.default_rng(1), 10)
    print(f"NumPy, {name}: two of 5 are one of 10: {np.array_equal(pieces, whole)}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
randn(16) and randn(32) share 16 of 16
randn(15) and randn(16) share 0 of 15
randn(16) and randn(17) share 1 of 16
randn(40) and two of 20 share 4
rand(40) and two of 20 share 40
uniform_ into a tensor and a transposed one agree: False
bernoulli of a number and of a tensor agree: False
NumPy, bool: two of 5 are one of 10: False
NumPy, uint8: two of 5 are one of 10: False
NumPy, uint16: two of 5 are one of 10: False
NumPy, uint32: two of 5 are one of 10: True
NumPy, int64: two of 5 are one of 10: True
NumPy, float32: two of 5 are one of 10: True
NumPy, normal: two of 5 are one of 10: True
NumPy, bytes: two of 5 are one of 10: False
TXT
