"""The meaning of operators on terms is that on numbers."""

import random

import pytest

z3 = pytest.importorskip("z3")

from gradplane.switch.ir.ops import BINARY, UNARY, caster, limits, result_type  # noqa: E402
from gradplane.switch.ir.types import BOOL, Bits, Type  # noqa: E402
from gradplane.switch.testgen.symbols import (  # noqa: E402
    SYMBOLIC,
    SYMBOLIC_UNARY,
    PacketBits,
    cast,
    initial,
    term,
    with_slice,
)

WIDTHS = (1, 2, 7, 8, 33)
UNSIGNED_RIGHT = ("<<", ">>")


def samples(t: Type, rng: random.Random) -> list[int]:
    if not isinstance(t, Bits):
        return [False, True]
    low, high = limits(t)
    inner = [rng.randint(low, high) for _ in range(3)]
    return sorted({low, min(low + 1, high), min(max(0, low), high), high, *inner})


def number(t: Type, found: z3.ExprRef) -> int:
    value = z3.simplify(found)
    if not isinstance(t, Bits):
        return z3.is_true(value)
    return value.as_signed_long() if t.signed else value.as_long()


@pytest.mark.parametrize("op", sorted(BINARY))
def test_binary_operators(op: str) -> None:
    rng = random.Random(op)
    bits = [Bits(w, signed) for w in WIDTHS for signed in (False, True)]
    for left in [BOOL] if op in ("&&", "||") else bits:
        right = left
        if op in UNSIGNED_RIGHT:
            right = Bits(rng.choice(WIDTHS), False)
        if op in ("/", "%") and left.signed:
            continue  # P4 has none
        apply, made = BINARY[op].make(left, right), SYMBOLIC[op]
        result = result_type(op, left, right)
        for a in samples(left, rng):
            for b in samples(right, rng):
                found = made(left, right, term(left, a), term(right, b))
                assert number(result, found) == apply(a, b), (left, right, a, b)


@pytest.mark.parametrize("op", sorted(UNARY))
def test_unary_operators(op: str) -> None:
    for t in [BOOL] if op == "!" else [Bits(8, False), Bits(5, True), Bits(1, False)]:
        for a in samples(t, random.Random(op)):
            assert number(t, SYMBOLIC_UNARY[op](term(t, a))) == UNARY[op].make(t)(a)


def test_casts() -> None:
    kinds = [Bits(w, signed) for w in (1, 5, 12) for signed in (False, True)]
    pairs = [(to, source) for to in kinds for source in kinds]
    for to, source in [*pairs, (BOOL, Bits(1, False)), (Bits(1, False), BOOL)]:
        for a in samples(source, random.Random(1)):
            assert number(to, cast(to, source, term(source, a))) == caster(to, source)(a)


def test_slices() -> None:
    whole, part = z3.BitVecVal(0xABCD, 16), z3.BitVecVal(5, 4)
    for lo, expected in ((0, 0xABC5), (4, 0xAB5D), (12, 0x5BCD)):
        assert number(Bits(16, False), with_slice(whole, lo + 3, lo, part)) == expected


def test_the_bits_of_a_packet() -> None:
    bits = PacketBits([*initial("p", 2).pieces, (4, None), *initial("q", 1).pieces])
    found = bits.slice(4, 18)
    assert [(width, None if piece is None else str(piece)) for width, piece in found] == [
        (4, "Extract(3, 0, p[0])"),
        (8, "p[1]"),
        (4, None),
        (2, "Extract(7, 6, q[0])"),
    ]
