"""The layout of values in native memory.

bit<W>, int<W>: an unsigned integer of 1, 2, 4 or 8 bytes, or of as many 8-byte words as needed;
the bits beyond W are zero. bool: a byte. varbit: length in bits (4 bytes), then at 8 the value.
header: its fields, then a byte that is 1 if valid; a large one begins with a line of the cache.
stack: next index (4 bytes), then its items.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.ir.types import (
    Bits,
    Bool,
    Fields,
    Header,
    Stack,
    Struct,
    Type,
    Varbit,
)
from gradplane.switch.runtime.shared_memory import LINE


@dataclass(frozen=True, slots=True)
class Place:
    """Size and alignment in bytes; of composites the offsets of the fields (or of item 0)."""

    size: int
    align: int
    offsets: tuple[int, ...] = ()
    valid: int = 0  # of a header: offset of its validity byte


def container(width: int) -> int:
    """Return the number of bits that hold a value of so many bits in memory."""
    for bits in (8, 16, 32, 64):
        if width <= bits:
            return bits
    return -(-width // 64) * 64


def scalar_width(t: Type) -> int:
    """Return the width of the LLVM integer for a Bits or Bool; bit<0> has one bit, always 0."""
    return max(t.width, 1) if isinstance(t, Bits) else 1


class Layouts:
    """The places of types, computed once each. Types are compared by identity, which is fast."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Type, Place]] = {}

    def of(self, t: Type) -> Place:
        """Return the places of a value's parts."""
        known = self._known.get(id(t))
        if known is None:
            known = self._known[id(t)] = (t, self._place(t))
        return known[1]

    def _place(self, t: Type) -> Place:
        match t:
            case Bits(width=width):
                size = container(width) // 8
                return Place(size, min(size, 8))
            case Bool():
                return Place(1, 1)
            case Varbit(width=width):
                return Place(8 + container(width) // 8 + (-container(width) // 8) % 8, 8)
            case Stack(element=element, size=count):
                item = self.of(element)
                start = max(4, item.align)
                align = max(4, item.align)
                return Place(_up(start + item.size * count, align), align, (start,))
            case Fields():
                return self._fields(t)
        raise AssertionError(t)

    def _fields(self, t: Fields) -> Place:
        end, align, offsets = 0, 1, []
        for field in t.fields:
            place = self.of(field.type)
            end = _up(end, place.align)
            offsets.append(end)
            end += place.size
            align = max(align, place.align)
        valid = end
        if isinstance(t, Header):
            end += 1
            if end > LINE:  # vectors that cross lines are slow
                align = LINE
        return Place(_up(end, align), align, tuple(offsets), valid)


def _up(number: int, align: int) -> int:
    return -(-number // align) * align


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Bits or Bool inside a header or struct: its offset in memory and its width."""

    type: Type
    offset: int
    width: int


def leaves(layouts: Layouts, types: list[Type], offsets: list[int]) -> list[Leaf]:
    """Return the scalars of some fields in order, those of structs included."""
    out: list[Leaf] = []
    for t, offset in zip(types, offsets, strict=True):
        match t:
            case Bits(width=width):
                out.append(Leaf(t, offset, width))
            case Bool():
                out.append(Leaf(t, offset, 1))
            case Struct(fields=fields):
                inner = [offset + o for o in layouts.of(t).offsets]
                out += leaves(layouts, [f.type for f in fields], inner)
            case _:
                raise AssertionError(t)
    return out
