"""How values lie in native memory, and reading and writing them from Python.

bit<W>, int<W>: an unsigned integer of 1, 2, 4 or 8 bytes, or of as many 8-byte words as needed;
the bits beyond W are zero. bool: a byte. varbit: length in bits (4 bytes), then at 8 the value.
header: its fields, then a byte that is 1 if valid; a large one begins with a line of the cache.
stack: next index (4 bytes), then its items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradplane.switch.interp.values import HeaderValue, StackValue
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
from gradplane.switch.runtime.cells import LINE


@dataclass(frozen=True, slots=True)
class Place:
    """Size and alignment in bytes; of composites the offsets of the fields (or of item 0)."""

    size: int
    align: int
    offsets: tuple[int, ...] = ()
    valid: int = 0  # of a header: offset of its validity byte


def container(width: int) -> int:
    """Bits that hold a value of so many bits in memory."""
    for bits in (8, 16, 32, 64):
        if width <= bits:
            return bits
    return -(-width // 64) * 64


def scalar_width(t: Type) -> int:
    """Width of the LLVM integer that stands for a Bits or Bool; bit<0> has one bit, always 0."""
    return max(t.width, 1) if isinstance(t, Bits) else 1


class Layouts:
    """Places of types, computed once each. Types are compared by identity: that is fast."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Type, Place]] = {}

    def of(self, t: Type) -> Place:
        """Where the parts of a value lie."""
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

    def read(self, t: Type, data: bytes, at: int = 0) -> Any:
        """The interpreter's value of what lies in `data` at an offset."""
        place = self.of(t)
        match t:
            case Bits(width=width, signed=signed):
                return _number(data, at, width, signed)
            case Bool():
                return bool(data[at])
            case Varbit(width=width):
                length = int.from_bytes(data[at : at + 4], "little")
                return length, _number(data, at + 8, width, False)
            case Stack(element=element, size=count):
                size, start = self.of(element).size, at + place.offsets[0]
                items = [self.read(element, data, start + i * size) for i in range(count)]
                return StackValue(items, int.from_bytes(data[at : at + 4], "little"))
            case Fields(fields=fields):
                pairs = zip(fields, place.offsets, strict=True)
                values = [self.read(f.type, data, at + offset) for f, offset in pairs]
                if isinstance(t, Header):
                    return HeaderValue(bool(data[at + place.valid]), values)
                return values
        raise AssertionError(t)

    def write(self, t: Type, value: Any) -> bytes:
        """The bytes of one of the interpreter's values."""
        data = bytearray(self.of(t).size)
        self._write(t, value, data, 0)
        return bytes(data)

    def _write(self, t: Type, value: Any, data: bytearray, at: int) -> None:
        place = self.of(t)
        match t:
            case Bits(width=width):
                size = place.size
                data[at : at + size] = (value & ((1 << width) - 1)).to_bytes(size, "little")
            case Bool():
                data[at] = value
            case Varbit(width=width):
                length, number = value
                data[at : at + 4] = length.to_bytes(4, "little")
                size = container(width) // 8
                data[at + 8 : at + 8 + size] = number.to_bytes(size, "little")
            case Stack(element=element):
                data[at : at + 4] = value.next.to_bytes(4, "little")
                size, start = self.of(element).size, at + place.offsets[0]
                for i, item in enumerate(value.items):
                    self._write(element, item, data, start + i * size)
            case Fields(fields=fields):
                if isinstance(t, Header):
                    data[at + place.valid] = value.valid
                    value = value.fields
                for f, v, offset in zip(fields, value, place.offsets, strict=True):
                    self._write(f.type, v, data, at + offset)


def _number(data: bytes, at: int, width: int, signed: bool) -> int:
    value = int.from_bytes(data[at : at + container(width) // 8], "little")
    if signed and width and value >> (width - 1):
        value -= 1 << width
    return value


def _up(number: int, align: int) -> int:
    return -(-number // align) * align


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Bits or Bool inside a header or struct: its offset in memory and its width."""

    type: Type
    offset: int
    width: int


def leaves(layouts: Layouts, types: list[Type], offsets: list[int]) -> list[Leaf]:
    """The scalars of some fields in order, those of structs included."""
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
