#!/usr/bin/env bash
# A NaN of one rank survives MAX and MIN on gloo in a quarter of the tensor, and vanishes elsewhere.
#
# Versions:  torch 2.13.0 (CPU), four ranks over loopback.
# Expected:  torch.maximum and torch.minimum propagate NaN; ReduceOp.MAX does, too, or drops NaN
#            everywhere. An element's place in the tensor plays no part.
# Seen:      Rank k gives 64 times k + 1, one rank NaN. 16 elements of the result are NaN and 48 are
#            numbers; which 16 depends on the rank with the NaN. What was compared before the NaN is
#            forgotten with it: some maxima are 1 where rank 3 has 4, some minima 4 where rank 1 has 2.
# Matters:   A norm or a "did it overflow" flag reduced by MAX as a float does not tell reliably that
#            some rank has a NaN. Reduce an integer flag instead.
# Source:    PyTorch's pages on torch.maximum (NaN is propagated) and on ReduceOp (silent on NaN).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import itertools
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def runs(values):
    named = ("nan" if v != v else f"{v:g}" for v in values)
    return ", ".join(f"{len(list(same))} x {name}" for name, same in itertools.groupby(named))


def rank(number, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=4)
    for ill in (0, 1):
        for op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN):
            x = torch.full((64,), float("nan") if number == ill else number + 1.0)
            dist.all_reduce(x, op=op)
            if number == 0:
                name = "MAX" if op == dist.ReduceOp.MAX else "MIN"
                print(f"NaN at rank {ill}, {name}:", runs(x.tolist()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=4, start_method="fork")
PY
cat >"$work/expected" <<'TXT'
NaN at rank 0, MAX: 16 x nan, 48 x 4
NaN at rank 0, MIN: 16 x nan, 16 x 2, 16 x 3, 16 x 4
NaN at rank 1, MAX: 16 x 1, 16 x nan, 32 x 4
NaN at rank 1, MIN: 16 x 1, 16 x nan, 32 x 1
TXT
"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
GLOO_SOCKET_IFNAME=lo "$venv/bin/python" "$work/finding.py" "$work/store" | tee "$work/seen"
diff "$work/expected" "$work/seen" && echo "as described"
