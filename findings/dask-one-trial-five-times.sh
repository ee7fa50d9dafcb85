#!/usr/bin/env bash
# Five trials of an experiment with Dask are one, and a task that adds to its argument changes it for later tasks.
#
# Versions:  distributed 2026.8.0 (dask 2026.8.0), numpy 2.4.6 from PyPI.
# Expected:  map(trial, [0.1] * 5) runs five trials, with five random results, as concurrent.futures and multiprocessing
#            do; what a task does to its argument stays in the task, as arguments were sent to another process.
# Seen:      Equal arguments are one task, run once, whose result comes five times (pure=True by default; so do calls of
#            submit whose futures are kept). Arrays of scatter, and results of other tasks, are given to a worker's tasks
#            without a copy: total += 1 gives 1, 2, 3, and the client gets the changed array. An array that is passed
#            itself is a copy each time.
# Matters:   The spread over repetitions is 0, or an average of one run; a step that adds a residual in place makes results
#            depend on which worker ran how many tasks before. Give each trial its seed, and copy.
# Source:    Dask's pages on Client.submit (pure) and "Best practices" (do not change inputs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet distributed==2026.8.0 dask==2026.8.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from distributed import Client, LocalCluster


def trial(loss):
    return random.random()


def added(total, value):
    total += value
    return float(total[0])


if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        print("concurrent.futures, different results:", len(set(pool.map(trial, [0.1] * 5))))
        total = np.zeros(3)
        print("concurrent.futures, added:", *pool.map(added, [total] * 3, [1, 1, 1]))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print("map:", len(set(client.gather(client.map(trial, [0.1] * 5)))))
        print("submit:", len(set(client.gather([client.submit(trial, 0.2) for _ in range(3)]))))
        print("map, pure=False:", len(set(client.gather(client.map(trial, [0.1] * 5, pure=False)))))
        given = {"scattered": client.scatter(total), "a task's result": client.submit(np.zeros, 3), "passed": total}
        for name, argument in given.items():
            print(f"{name}, added:", *(client.submit(added, argument, 1, pure=False).result() for _ in range(3)))
        print("the scattered array now:", *given["scattered"].result())
PY
"$venv/bin/python" -W ignore "$work/finding.py" | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
concurrent.futures, different results: 5
concurrent.futures, added: 1.0 1.0 1.0
map: 1
submit: 1
map, pure=False: 5
scattered, added: 1.0 2.0 3.0
a task's result, added: 1.0 2.0 3.0
passed, added: 1.0 1.0 1.0
the scattered array now: 3.0 3.0 3.0
TXT
