"""Whole programs on the JIT engine and the interpreter: equal in all that can be seen."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from jit_pair import Pair, random_packet

from gradplane.switch.compiler import compile_program

PROGRAMS = Path(__file__).parent / "programs"


def headers(rng: random.Random) -> bytes:
    kind = rng.choice([0, 1, 2, 2, 3, 4, 5, 6, 7, 9, 11, 0x81, 0x90, 0xFF, rng.randrange(256)])
    count = rng.choice([0, 3, 7, 8, 16, 40, 255, rng.randrange(256)])
    body = random_packet(rng, rng.choice([0, 1, 3, 9, 30, 60, 200]))
    if kind == 4:
        body = b"".join(rng.choice([b"\1abc", b"\2d", b"\3"]) for _ in range(rng.randrange(5)))
    return bytes([kind, count]) + body


def whole_bytes(rng: random.Random) -> bytes:
    kind = rng.choice([0x8847, 0x8847, 1, 1, 2, 3, 0])
    start = random_packet(rng, 10) + bytes([rng.randrange(256), rng.randrange(256)])
    return start + kind.to_bytes(2, "big") + random_packet(rng, rng.randrange(60))


def tables(rng: random.Random) -> bytes:
    return random_packet(rng, rng.choice([10, 75, 80, 90, 90, 120]))


def externs(rng: random.Random) -> bytes:
    what, index = rng.randrange(12), rng.choice([0, 1, 2, 3, 5, 7, 9, 200])
    return bytes([what, index]) + random_packet(rng, rng.choice([20, 34, 36, 60, 61, 62]))


def traffic(rng: random.Random) -> bytes:
    ingress, egress = rng.randrange(16) | 16 * rng.randrange(4), rng.randrange(8)
    left = rng.choice([0, 1, 2, 3, 4])
    return bytes([ingress, egress, left]) + random_packet(rng, rng.choice([2, 3, 9, 10, 40]))


CASES: list[tuple[str, Callable[[random.Random], bytes]]] = [
    ("headers", headers),
    ("bytes", whole_bytes),
    ("tables", tables),
    ("externs", externs),
    ("traffic", traffic),
]


@pytest.mark.parametrize(("name", "make"), CASES, ids=[name for name, _ in CASES])
def test_programs_agree(name: str, make: Callable[[random.Random], bytes]) -> None:
    pair = Pair(compile_program(PROGRAMS / f"{name}.p4"), seed=1, cpu_port=3)
    sent = pair.check([make(pair.rng) for _ in range(20)])
    for _ in range(6):
        pair.populate()
        for _ in range(4):
            sent += pair.check([make(pair.rng) for _ in range(100)])
            pair.disturb()
    assert sent > 500
