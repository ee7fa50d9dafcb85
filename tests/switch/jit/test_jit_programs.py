"""Whole programs on the JIT engine and the interpreter: equal in all that can be seen."""

from pathlib import Path

import pytest
from jit_packets import PACKETS
from jit_pair import Pair

from gradplane.switch.compiler import compile_program

PROGRAMS = Path(__file__).parent / "programs"
COUNTS = {"traffic": 120}  # packets a round, of which each becomes many


@pytest.mark.parametrize("name", PACKETS)
def test_programs_agree(name: str) -> None:
    make, count = PACKETS[name], COUNTS.get(name, 700)
    pair = Pair(compile_program(PROGRAMS / f"{name}.p4"), seed=1, cpu_port=3)
    sent = pair.check([make(pair.rng) for _ in range(20)])
    for _ in range(8):
        pair.populate()
        for _ in range(4):
            sent += pair.check([make(pair.rng) for _ in range(count)])
            pair.disturb()
    assert sent > 500
