"""Random schedules over random trees of switches: `make fuzz`, or by hand.

    python tests/aggregations/fuzz_levels.py [--seconds 60 | --schedules N] [--seed N]

A tree is a star, two to four racks under one to three spines, three levels, or a fat-tree; its
switches run `thc.p4` or `thc_tna.p4`, at a full or smaller quorums, with sums of 8, 16 or 32 bits
of codes of 1 to 8, all-reduces or reduce-scatters. In a schedule any frame under way may be the
next, be lost or arrive twice, timers run out, workers begin late, switches lose their state between
any two events. Every reduce must end at every worker, every result that a worker takes must be the
sum of the workers that it names, and at a full quorum all workers must have the flat sum. `--seed
N` repeats one schedule, which is printed when it fails.
"""

import argparse
import random
import secrets
import sys
import time
import traceback
from collections import Counter
from functools import cache
from typing import Any

from levels_loop import CompiledNetwork
from levels_network import Faults, deployment, discard, play

from gradplane.experiment.deployment import Deployment
from gradplane.hosts.protocols.results import CUT

RATES = (0.0, 0.02, 0.05, 0.1, 0.2)
ONE_TREE = 100  # schedules, as another tree's switches have to be made
STAR, LEVELS, FAT_TREE = "star", "three levels", "fat-tree"


@cache
def _flat(workers: int, sum_bits: int, tensor: int, bits: int) -> list[list[str]]:
    """Return the digests of each worker's sums, by ticket, in one switch without faults."""
    alone = deployment(workers, 1, sum_bits=sum_bits, bits=bits)
    network = play(alone, 0, Faults(), tensor=tensor)
    return _sums(network)


def _sums(network: Any) -> list[list[str]]:
    return [[found[ticket].sums for ticket in range(2)] for found in network.results]


def random_tree(draw: random.Random) -> tuple[dict[str, Any], int]:
    """Return the arguments of a deployment, and a tensor's number: CUT for a reduce-scatter."""
    kind = draw.choice([STAR, "racks", "racks", LEVELS, FAT_TREE])
    keys: dict[str, Any] = {"workers": 4, "leaves": 1, "sum_bits": draw.choice([8, 8, 16, 32])}
    if kind == STAR:
        keys["workers"] = draw.randint(2, 6)
    elif kind == "racks":
        leaves = draw.randint(2, 4)
        workers, spines = leaves * draw.randint(1, 2), draw.randint(1, 3)
        keys |= {"workers": workers, "leaves": leaves, "spines": spines}
        if draw.random() < 0.3:
            keys["quorums"] = (1, draw.randint(1, leaves))
    elif kind == LEVELS:
        keys["leaves"] = 0
    else:
        keys |= {"workers": 8, "leaves": 0, "placement": draw.choice(["packed", "spread"])}
        keys["roots"] = draw.randint(1, 4)
    keys["target"] = draw.choice(["embedded", "embedded", "tna"])
    if draw.random() < 0.2:
        keys["bits"] = draw.choice([1, 2, 8])
        keys["sum_bits"] = max(keys["sum_bits"], 2 * keys["bits"])
    if draw.random() < 0.3:
        quorums = tuple(draw.randint(1, fewest) for fewest in _children(kind, keys))
        keys |= {"quorum": quorums[0]} if kind == STAR else {"quorums": quorums}
    return keys, draw.choice([0, CUT])


def _children(kind: str, keys: dict[str, Any]) -> tuple[int, ...]:
    """Return how many children the switches of each level have, at least."""
    if kind == STAR:
        return (keys["workers"],)
    if kind == "racks":
        return keys["workers"] // keys["leaves"], keys["leaves"]
    if kind == LEVELS:
        return 1, 1, 2
    return (2, 2, 2) if keys["placement"] == "packed" else (1, 2, 4)


def random_faults(draw: random.Random) -> Faults:
    """Return how likely what is."""
    losses, copies, timers = (draw.choice(RATES) for _ in range(3))
    restarts = draw.choice([0, 0, 1, 3])
    late, passes = draw.random() < 0.5, draw.random() < 0.2
    cuts = draw.choice([0.0, 0.02]) if passes else 0.0
    return Faults(losses, copies, timers, restarts, late, passes, cuts)


def attempt(seed: int) -> tuple[dict[str, Any], int]:
    """Play one schedule; return its tree, and how many results were compared."""
    keys, tensor = random_tree(random.Random(seed // ONE_TREE))
    tree: Deployment = deployment(**keys)
    faults = random_faults(random.Random(seed))
    smaller = keys.keys() & {"quorum", "quorums"}
    if keys["target"] == "tna" and smaller:
        faults = faults._replace(cuts=0.0)  # docs/tofino.md
    network = play(tree, seed, faults, tensor=tensor, kind=CompiledNetwork)
    if not smaller:
        flat = keys["workers"], keys["sum_bits"], tensor, keys.get("bits", 4)
        assert _sums(network) == _flat(*flat)
    return keys, network.check()


def main() -> int:
    """Play schedules; return 1 at the first that fails."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--schedules", type=int, help="instead of seconds")
    options.add_argument("--seed", type=int, help="one schedule")
    options.add_argument("--from", type=int, dest="first", help="the first seed")
    given = options.parse_args()
    first = secrets.randbelow(10**9) if given.first is None else given.first
    seeds = iter([given.seed]) if given.seed is not None else iter(range(first, first + 10**9))
    until, played, results, kinds = time.monotonic() + given.seconds, 0, 0, Counter[str]()
    for seed in seeds:
        if seed % ONE_TREE == 0:
            discard()
        try:
            keys, compared = attempt(seed)
        except Exception:
            traceback.print_exc()
            print(f"--seed {seed}: {random_tree(random.Random(seed // ONE_TREE))}"
                  f" {random_faults(random.Random(seed))}")  # fmt: skip
            return 1
        played, results = played + 1, results + compared
        kinds[keys["target"]] += 1
        over = played >= given.schedules if given.schedules else time.monotonic() > until
        if over:
            break
    print(f"{played:,} schedules from seed {first}, {dict(kinds)}: {results:,} results compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
