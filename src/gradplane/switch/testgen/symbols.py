"""Values with a z3 term beside the number, and the meaning of each operator on terms.

A symbolic value is an int (0 or 1 for a bool), so that the interpreter's code takes it for the
number that it is; what does not know about terms gives plain numbers, and so fixes the value.
bit<W> and int<W> are bit vectors of W bits, bool is a Boolean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import z3

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue, Value
from gradplane.switch.ir.ops import BINARY, UNARY
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Struct, Type, Varbit

Term = Any  # z3's expressions have no useful types


class Symbol(int):
    """A number, or a bool as 0 or 1, with its term."""

    term: Term

    def __new__(cls, value: int, term: Term) -> Symbol:
        made = super().__new__(cls, value)
        made.term = term
        return made


def term(t: Type, value: Value) -> Term:
    """Return a scalar's term, a constant for a plain number."""
    if isinstance(value, Symbol):
        return value.term
    if isinstance(t, Bool):
        return z3.BoolVal(bool(value))
    assert isinstance(t, Bits), t
    return z3.BitVecVal(int(value), t.width)


def is_symbolic(*values: Value) -> bool:
    return any(isinstance(value, Symbol) for value in values)


# -- the operators --------------------------------------------------------------------------------

Meaning = Callable[[Type, Type, Term, Term], Term]


def _plain(operation: Callable[[Term, Term], Term]) -> Meaning:
    return lambda left, right, a, b: operation(a, b)


def _by_sign(
    unsigned: Callable[[Term, Term], Term], signed: Callable[[Term, Term], Term]
) -> Meaning:
    return lambda left, right, a, b: (signed if _signed(left) else unsigned)(a, b)


def _divided(operation: Meaning) -> Meaning:
    """Division by zero gives 0."""

    def meaning(left: Type, right: Type, a: Term, b: Term) -> Term:
        return z3.If(b == 0, z3.BitVecVal(0, a.size()), operation(left, right, a, b))

    return meaning


def _saturated(operation: Callable[[Term, Term], Term]) -> Meaning:
    def meaning(left: Type, right: Type, a: Term, b: Term) -> Term:
        width, signed = a.size(), _signed(left)
        wide = operation(resized(a, width + 2, signed), resized(b, width + 2, signed))
        low, high = (-(1 << width >> 1), (1 << width >> 1) - 1) if signed else (0, (1 << width) - 1)
        limited = z3.If(wide < low, low, z3.If(wide > high, z3.BitVecVal(high, width + 2), wide))
        return z3.Extract(width - 1, 0, limited)

    return meaning


def _shifted(shift: Meaning) -> Meaning:
    """The amount may have any width; beyond the value's width nothing is left but the sign."""

    def meaning(left: Type, right: Type, a: Term, b: Term) -> Term:
        width = max(a.size(), b.size())
        signed = _signed(left)
        whole = shift(left, right, resized(a, width, signed), resized(b, width, False))
        return z3.Extract(a.size() - 1, 0, whole)

    return meaning


def _signed(t: Type) -> bool:
    return isinstance(t, Bits) and t.signed


SYMBOLIC: dict[str, Meaning] = {
    "+": _plain(lambda a, b: a + b),
    "-": _plain(lambda a, b: a - b),
    "*": _plain(lambda a, b: a * b),
    "/": _divided(_by_sign(z3.UDiv, lambda a, b: a / b)),
    "%": _divided(_by_sign(z3.URem, z3.SRem)),
    "|+|": _saturated(lambda a, b: a + b),
    "|-|": _saturated(lambda a, b: a - b),
    "&": _plain(lambda a, b: a & b),
    "|": _plain(lambda a, b: a | b),
    "^": _plain(lambda a, b: a ^ b),
    "<<": _shifted(_plain(lambda a, b: a << b)),
    ">>": _shifted(_by_sign(z3.LShR, lambda a, b: a >> b)),
    "==": _plain(lambda a, b: a == b),
    "!=": _plain(lambda a, b: a != b),
    "<": _by_sign(z3.ULT, lambda a, b: a < b),
    "<=": _by_sign(z3.ULE, lambda a, b: a <= b),
    ">": _by_sign(z3.UGT, lambda a, b: a > b),
    ">=": _by_sign(z3.UGE, lambda a, b: a >= b),
    "&&": _plain(z3.And),
    "||": _plain(z3.Or),
    "++": _plain(z3.Concat),
}

SYMBOLIC_UNARY: dict[str, Callable[[Term], Term]] = {
    "-": lambda a: -a,
    "~": lambda a: ~a,
    "+": lambda a: a,
    "!": z3.Not,
}

_missing = (BINARY.keys() ^ SYMBOLIC.keys()) | (UNARY.keys() ^ SYMBOLIC_UNARY.keys())
if _missing:
    raise TypeError(f"operators without a meaning on terms, or the reverse: {sorted(_missing)}")


def resized(a: Term, width: int, signed: bool) -> Term:
    """Cut a bit vector to a width, or extend it by zeros or its sign."""
    if width < a.size():
        return z3.Extract(width - 1, 0, a)
    if width == a.size():
        return a
    return (z3.SignExt if signed else z3.ZeroExt)(width - a.size(), a)


def cast(to: Type, source: Type, a: Term) -> Term:
    """Return the term of a cast: between Bits, and between bit<1> and bool."""
    if isinstance(to, Bool):
        return a if isinstance(source, Bool) else a == 1
    assert isinstance(to, Bits), to
    if isinstance(source, Bool):
        return z3.If(a, z3.BitVecVal(1, to.width), z3.BitVecVal(0, to.width))
    return resized(a, to.width, _signed(source))


def as_bits(t: Type, value: Value) -> Term:
    """Return a scalar's bits."""
    return cast(Bits(1), t, term(t, value)) if isinstance(t, Bool) else term(t, value)


def with_slice(a: Term, hi: int, lo: int, value: Term) -> Term:
    """Return `a` with a[hi:lo] replaced."""
    parts = [z3.Extract(a.size() - 1, hi + 1, a)] if hi + 1 < a.size() else []
    parts += [value] + ([z3.Extract(lo - 1, 0, a)] if lo else [])
    return z3.Concat(*parts) if len(parts) > 1 else parts[0]


# -- the bits of packets --------------------------------------------------------------------------

Piece = tuple[int, Term | None]
"""A width in bits, and their term; None: they are fixed."""


class PacketBits:
    """The terms of a packet's bytes: pieces from the first bit on."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = list(pieces)
        self._starts = [0, *accumulate(size for size, _ in self.pieces)]
        self._wholes: dict[tuple[int, int], Term] = {}

    def slice(self, start: int, width: int) -> list[Piece]:
        """Return the pieces of some bits; what is beyond the end is fixed."""
        found, end = [], start + width
        for i in range(max(bisect_right(self._starts, start) - 1, 0), len(self.pieces)):
            (size, piece), at = self.pieces[i], self._starts[i]
            if at >= end:
                break
            low, high = max(start, at), min(end, at + size)
            if low < high:
                whole = piece is None or high - low == size
                part = piece if whole else z3.Extract(at + size - low - 1, at + size - high, piece)
                found.append((high - low, part))
        return found

    def term(self, start: int, width: int, number: int) -> Term | None:
        """Return the term of some bits, which are `number` now; None if all of them are fixed."""
        if (known := self._wholes.get((start, width))) is not None:
            return known
        pieces, found, left = self.slice(start, width), [], width
        if all(piece is None for _, piece in pieces):
            return None
        for size, piece in pieces:
            left -= size
            fixed = number >> left & ((1 << size) - 1)
            found.append(z3.BitVecVal(fixed, size) if piece is None else piece)
        whole = z3.Concat(*found) if len(found) > 1 else found[0]
        if all(piece is not None for _, piece in pieces):
            self._wholes[start, width] = whole
        return whole


@lru_cache(maxsize=64)
def initial(name: str, size: int) -> PacketBits:
    """Return the bits of a packet of which each byte is a variable."""
    return PacketBits((8, variable(f"{name}[{i}]", 8)) for i in range(size))


@cache
def variable(name: str, width: int) -> Term:
    """Return the variable of a name; width 0: a Boolean one."""
    return z3.BitVec(name, width) if width else z3.Bool(name)


def symbolic(t: Type, value: Value, bits: PacketBits, at: int) -> Value:
    """Return a value as read from a packet's bit `at` on, with terms; a varbit stays as it is."""
    if isinstance(t, Header):
        return HeaderValue(value.valid, _members(t, value, bits, at))
    if isinstance(t, Struct | Array):
        return _members(t, value, bits, at)
    if isinstance(t, Varbit):
        return value
    width = width_of(t, value)
    whole = bits.term(at, width, int(value) & ((1 << width) - 1))
    if whole is None:
        return value
    return Symbol(int(value), whole == 1 if isinstance(t, Bool) else whole)


def _members(t: Fields | Array, value: Value, bits: PacketBits, at: int) -> list[Value]:
    made = []
    for kind, one in _parts(t, value):
        made.append(symbolic(kind, one, bits, at))
        at += width_of(kind, one)
    return made


def _parts(t: Fields | Array, value: Value) -> Iterator[tuple[Type, Value]]:
    """Yield the fields or elements of a value, with their types."""
    if isinstance(t, Array):
        items = value.items if isinstance(value, StackValue) else value
        yield from ((t.element, item) for item in items)
    else:
        values = value.fields if isinstance(t, Header) else value
        yield from ((f.type, one) for f, one in zip(t.fields, values, strict=True))


def width_of(t: Type, value: Value) -> int:
    """Return the bits that a value takes in a packet."""
    return sum(width for width, _ in pieces(t, value))


def pieces(t: Type, value: Value) -> Iterator[Piece]:
    """Yield the pieces of a value as it is emitted: those of invalid headers are left out."""
    if isinstance(t, Varbit):
        yield value[0], None
    elif isinstance(t, Fields | Array):
        if not isinstance(t, Header) or value.valid:
            for kind, one in _parts(t, value):
                yield from pieces(kind, one)
    else:
        width = 1 if isinstance(t, Bool) else t.width if isinstance(t, Bits) else 0
        yield width, as_bits(t, value) if is_symbolic(value) else None


def checksum(t: Type, value: Value) -> Term | None:
    """Return the internet checksum of a value's bits; None where a length is not fixed."""
    found = list(_all_bits(t, value))
    parts = [part for part in found if part is not None]
    if not parts or len(parts) < len(found):
        return None
    width = sum(part.size() for part in parts)
    parts += [z3.BitVecVal(0, -width % 16)] if width % 16 else []
    whole = z3.Concat(*parts) if len(parts) > 1 else parts[0]
    total = z3.BitVecVal(0, 32)
    for low in range(0, whole.size(), 16):
        total = total + z3.ZeroExt(16, z3.Extract(low + 15, low, whole))
    for _ in range(2):
        total = (total & 0xFFFF) + z3.LShR(total, 16)
    return ~z3.Extract(15, 0, total)


def _all_bits(t: Type, value: Value) -> Iterator[Term | None]:
    """Yield the terms of a value's bits, fixed ones too; None for a varbit."""
    if isinstance(t, Fields | Array):
        if not isinstance(t, Header) or value.valid:
            for kind, one in _parts(t, value):
                yield from _all_bits(kind, one)
    else:
        yield as_bits(t, value) if isinstance(t, Bits | Bool) else None


def symbols(t: Type, value: Value) -> Iterator[tuple[Type, Symbol]]:
    """Yield the symbolic scalars in a value, with their types."""
    if isinstance(t, Fields | Array):
        for kind, one in _parts(t, value):
            yield from symbols(kind, one)
    elif isinstance(value, Symbol):
        yield t, value
