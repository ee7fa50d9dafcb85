"""Random schedules of jobs that share slots: `make fuzz`, or by hand.

    python tests/aggregations/fuzz_shared.py [--seconds 60] [--seed N]

One to four jobs of two to four workers have two to eight slots in `shared.p4` or `shared_tna.p4`;
packets, and what is between two passes, go on in any order, are lost or copied, the switch loses
its registers, jobs begin new lives or die (shared_network). Every job that lives must end, and
every result be the sum of all workers. `--seed N` repeats one schedule, which is printed when it
fails.
"""

import argparse
import random
import secrets
import sys
import time
import traceback
from typing import Any

from shared_network import Faults, deployment, play

RATES = (0.0, 0.02, 0.05, 0.1, 0.2)


def random_schedule(seed: int) -> tuple[tuple[Any, ...], Faults]:
    """Return the arguments of a deployment, and what may happen."""
    draw = random.Random(seed)
    jobs = draw.randint(1, 4)
    tree = jobs, draw.randint(2, 4), 1 << draw.randint(1, 3), draw.choice(["embedded", "tna"])
    losses, copies, timers = (draw.choice(RATES) for _ in range(3))
    lives = draw.choice([0, 1, 2]) if jobs > 1 else 0
    deaths = draw.choice([0, 0, 1]) if jobs > 1 else 0
    late, restarts = draw.random() < 0.5, draw.choice([0, 0, 1, 3])
    return tree, Faults(losses, copies, timers, late, restarts, lives, deaths)


def main() -> int:
    """Play schedules; return 1 at the first that fails."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seed", type=int, help="one schedule")
    given = options.parse_args()
    first = secrets.randbelow(10**9) if given.seed is None else given.seed
    until, seed, checked = time.monotonic() + given.seconds, first, 0
    while True:
        tree, faults = random_schedule(seed)
        try:
            checked += play(deployment(*tree), seed, faults).checked
        except Exception:
            traceback.print_exc()
            print(f"--seed {seed}: {tree} {faults}")
            return 1
        seed += 1
        if given.seed is not None or time.monotonic() > until:
            break
    print(f"{seed - first:,} schedules from seed {first}: {checked:,} results compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
