"""Every operator at every width: against bit strings and arithmetic on unbounded integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.ir.ops import (
    BINARY,
    binary,
    cast,
    limits,
    result_type,
    slice_bits,
    unary,
    with_slice,
)
from gradplane.switch.ir.types import BOOL, INTEGER, Bits, SerEnum

TYPES = [Bits(w, s) for w in (*range(1, 18), 31, 32, 33, 63, 64, 65, 127, 128, 129) for s in (0, 1)]


def edges(t: Bits) -> list[int]:
    """Return values for which an operator is likely to go wrong."""
    low, high = limits(t)
    return sorted({v for v in (low, low + 1, -1, 0, 1, 2, high // 2, high - 1, high)
                   if low <= v <= high})  # fmt: skip


def fit(t: Bits, value: int) -> int:
    """Return the value whose bits are the low ones of `value`, by way of a string."""
    bits = format(value % (1 << t.width), f"0{t.width}b")
    negative = t.signed and bits[0] == "1"
    return int(bits, 2) - (1 << t.width) * negative


def clamp(t: Bits, value: int) -> int:
    low, high = limits(t)
    return low if value < low else high if value > high else value


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


MEANINGS = {
    "+": lambda t, a, b: fit(t, a + b),
    "-": lambda t, a, b: fit(t, a - b),
    "*": lambda t, a, b: fit(t, a * b),
    "/": lambda t, a, b: fit(t, truncated(a, b)) if b else 0,
    "%": lambda t, a, b: fit(t, a - b * truncated(a, b)) if b else 0,
    "|+|": lambda t, a, b: clamp(t, a + b),
    "|-|": lambda t, a, b: clamp(t, a - b),
    "&": lambda t, a, b: fit(t, (a % (1 << t.width)) & (b % (1 << t.width))),
    "|": lambda t, a, b: fit(t, (a % (1 << t.width)) | (b % (1 << t.width))),
    "^": lambda t, a, b: fit(t, (a % (1 << t.width)) ^ (b % (1 << t.width))),
    "==": lambda t, a, b: a == b,
    "!=": lambda t, a, b: a != b,
    "<": lambda t, a, b: a < b,
    "<=": lambda t, a, b: a <= b,
    ">": lambda t, a, b: a > b,
    ">=": lambda t, a, b: a >= b,
    "++": lambda t, a, b: fit(
        Bits(2 * t.width, t.signed), (a % (1 << t.width)) * (1 << t.width) + b % (1 << t.width)
    ),
}


@pytest.mark.parametrize("op", MEANINGS)
def test_operators_at_the_edges_of_every_type(op: str) -> None:
    for t in TYPES:
        for a in edges(t):
            for b in edges(t):
                assert binary(op, t, t, a, b) == MEANINGS[op](t, a, b), (op, t, a, b)


def test_shifts_by_any_amount() -> None:
    for t in TYPES:
        for a in edges(t):
            for amount in (0, 1, t.width - 1, t.width, t.width + 1, (1 << 64) - 1):
                n = min(amount, t.width + 2)
                assert binary("<<", t, Bits(64), a, amount) == fit(t, a << n)
                assert binary(">>", t, Bits(64), a, amount) == fit(t, a >> n)


def test_unary_operators() -> None:
    for t in TYPES:
        for a in edges(t):
            assert unary("-", t, a) == fit(t, -a)
            assert unary("~", t, a) == fit(t, -a - 1)
            assert unary("+", t, a) == a
    assert [unary("!", BOOL, a) for a in (False, True)] == [True, False]


def test_operators_on_truth_values() -> None:
    tables = {
        "&&": [False, False, False, True],
        "||": [False, True, True, True],
        "==": [True, False, False, True],
        "!=": [False, True, True, False],
    }
    for op, table in tables.items():
        found = [binary(op, BOOL, BOOL, a, b) for a in (False, True) for b in (False, True)]
        assert found == table, op


def test_casts_between_all_types() -> None:
    for source in TYPES:
        for target in TYPES:
            for a in edges(source):
                assert cast(target, source, a) == fit(target, a)
    assert (cast(BOOL, Bits(1), 1), cast(Bits(1), BOOL, True)) == (True, 1)
    assert cast(Bits(8), SerEnum("E", Bits(16), {}), 0x1FF) == 0xFF


def test_unbounded_integers_never_wrap() -> None:
    big = 1 << 200
    assert binary("+", INTEGER, INTEGER, big, big) == 2 * big
    assert binary("<<", INTEGER, INTEGER, 3, 100) == 3 << 100
    assert binary("%", INTEGER, INTEGER, big + 5, 7) == (big + 5) % 7
    assert cast(Bits(8, True), INTEGER, -129) == 127


def test_every_row_states_its_result() -> None:
    for op in BINARY:
        t, other = (BOOL, BOOL) if op in ("&&", "||") else (Bits(5, True), Bits(5, True))
        value = binary(op, t, other, True if t == BOOL else 3, False if t == BOOL else 2)
        wanted = result_type(op, t, other)
        assert isinstance(value, bool) == (wanted == BOOL), op
        assert op != "++" or wanted == Bits(10, True)


@given(st.integers(0, 2**40 - 1), st.integers(0, 39), st.integers(0, 39), st.integers(0, 2**40))
def test_slices(value: int, one: int, two: int, new: int) -> None:
    lo, hi = sorted((one, two))
    text = format(value, "040b")[::-1]
    assert slice_bits(value, hi, lo) == int(text[lo : hi + 1][::-1], 2)
    changed = with_slice(value, hi, lo, new % (1 << (hi - lo + 1)))
    assert slice_bits(changed, hi, lo) == new % (1 << (hi - lo + 1))
    assert with_slice(changed, hi, lo, slice_bits(value, hi, lo)) == value
