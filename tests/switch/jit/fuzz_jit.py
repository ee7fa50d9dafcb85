"""Millions of random packets through both engines: python tests/switch/jit/fuzz_jit.py.

Random programs (as IR, and as source for v1model, PSA and TNA), the programs in programs/, and
every other program of the tests, with random table contents, until the time is over. The first
difference ends it, with the seed that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import tempfile
import time
from pathlib import Path

from jit_packets import PACKETS, frame
from jit_pair import Pair, random_packet
from jit_random_programs import random_program
from source_psa import psa_program
from source_tna import tna_program
from source_v1model import v1model_program

from gradplane.switch.compiler import compile_program
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import CompileError

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
LENGTHS = (20, 40, 70, 110, 150, 250)


def random_case(seed: int) -> int:
    """Run one random program; return the number of packets."""
    rng = random.Random(seed)
    pair = Pair(random_program(rng, rng.randrange(4, 40)), seed)
    for _ in range(4):
        pair.check([random_packet(rng, rng.choice(LENGTHS)) for _ in range(500)])
    return 2000


def source_case(seed: int) -> int:
    """Run one random program of an architecture, as text in two spellings; return the number of
    packets."""
    rng = random.Random(seed)
    text = rng.choice([v1model_program, psa_program, tna_program])(rng)
    spelled_out = compile_program("random.p4", defines=["SPELLED_OUT"], text=text)
    pair = Pair(compile_program("random.p4", text=text), seed, cpu_port=3, other=spelled_out)
    for _ in range(3):
        pair.populate()
        pair.check([random_packet(rng, rng.choice(LENGTHS)) for _ in range(200)])
        pair.disturb()
    return 600


def program_case(seed: int) -> int:
    """Run one of the written programs; return the number of packets."""
    name = sorted(PACKETS)[seed % len(PACKETS)]
    count = 100 if name == "traffic" else 1000
    pair = Pair(compile_program(PROGRAMS / f"{name}.p4"), seed, cpu_port=3)
    for _ in range(4):
        pair.populate(pair.rng.randrange(1, 60))
        pair.check([PACKETS[name](pair.rng) for _ in range(count)])
        pair.disturb()
        pair.check([PACKETS[name](pair.rng) for _ in range(count)])
    return 8 * count


def any_program_case(seed: int) -> int:
    """Run one of all programs in this repository; return the number of packets."""
    files = sorted(p for f in ("tests", "p4") for p in (ROOT / f).rglob("*.p4"))
    try:
        pair = Pair(compile_program(files[seed % len(files)]), seed)
    except (CompileError, SwitchError):  # it is to be rejected, or lacks externs
        return 0
    for _ in range(2):
        pair.populate()
        pair.check([frame(pair.rng) for _ in range(200)])
        pair.disturb()
    return 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        run(options.seconds, seed)


def run(seconds: float, first: int) -> None:
    """Run all cases, seed by seed."""
    end, seed, packets = time.monotonic() + seconds, first, 0
    while time.monotonic() < end:
        for case in (random_case, source_case, program_case, any_program_case):
            print(f"\r{packets} packets equal; {case.__name__} {seed} ", end="", flush=True)
            packets += case(seed)
        seed += 1
    print(f"\r{packets} packets, seeds {first} to {seed - 1}: no difference")


if __name__ == "__main__":
    main()
