#!/usr/bin/env bash
# In NumPy the axis decides how a sum rounds: half the sum, or a mean of 0.84 over ones, along axis 0.
#
# Versions:  numpy 2.4.6 from PyPI.
# Expected:  NumPy sums pairwise, float16 in float32 steps, so that 4096 ones are 4096 along either axis.
# Seen:      Pairwise, and with wider steps, only where the values lie one behind the other in memory.
#            Along axis 0 of a C-ordered array rows are added one by one in the array's own type: float16
#            stands still at 2048, float32 at 2^24, and mean(axis=0) of 20 million float32 ones is
#            0.8388608. np.mean of float16 is right along both axes: it alone asks for float32.
#            Transposing the array first (a copy in the other order) changes the result.
# Matters:   Gradients stacked as (workers, values) or (samples, values) are summed along axis 0: at half
#            precision 2048 equal addends are the end. Pass dtype=np.float32 (or 64).
# Source:    NumPy's page on np.sum: partial pairwise summation along the fast axis "if no axis is given",
#            float16 not mentioned.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet numpy==2.4.6

"$venv/bin/python" - <<'PY' | tee "$work/seen"
import numpy as np

half = np.ones((4096, 2), np.float16)
print("float16, sum along axis 0:", half.sum(axis=0).tolist())
print("float16, the same, in the other order:", np.asfortranarray(half).sum(axis=0).tolist())
print("float16, mean along axis 0:", half.mean(axis=0).tolist())
single = np.ones((20_000_000, 2), np.float32)
print("float32, mean along axis 0:", [round(float(v), 7) for v in single.mean(axis=0)])
print("float32, mean of one column:", float(single[:, 0].mean()))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
float16, sum along axis 0: [2048.0, 2048.0]
float16, the same, in the other order: [4096.0, 4096.0]
float16, mean along axis 0: [1.0, 1.0]
float32, mean along axis 0: [0.8388608, 0.8388608]
float32, mean of one column: 1.0
TXT
