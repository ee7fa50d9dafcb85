"""The layout of values in native memory.

bit<W>, int<W>: an unsigned integer of 1, 2, 4 or 8 bytes, or of as many 8-byte words as needed;
the bits beyond W are zero. bool: a byte. varbit: length in bits (4 bytes), then at 8 the value.
header: its fields, then a byte that is 1 if valid; a large one begins with a line of the cache.
array: its items. stack: next index (4 bytes), then its items.

And the layout of one packet's memory (`Context`): the input and the parser's position, notes for
the traffic manager, and the values that pass from block to block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Stack, Struct, Type, Varbit
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.runtime.shared_memory import LINE


class Place(NamedTuple):
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
            case Array(element=element, size=count):
                item = self.of(element)
                return Place(item.size * count, item.align, (0,))
            case Fields():
                return self._fields(t)
        raise AssertionError(t)

    def _fields(self, t: Fields) -> Place:
        end, align, offsets = 0, 1, []
        for one in t.fields:
            place = self.of(one.type)
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


class Leaf(NamedTuple):
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
            case Array(element=element, size=count):
                size = layouts.of(element).size
                out += leaves(layouts, [element] * count, [offset + i * size for i in range(count)])
            case _:
                raise AssertionError(t)
    return out


NONE = -1  # in a note: not called


class Slot(NamedTuple):
    kind: str
    offset: int


# In the order of the memory. `bits`: of the input; `position`: of the parser, in bits; `grown`:
# bits by which setValid and setInvalid made the packet longer. Behind them all is zero at first.
_SLOTS = {"data": "ptr", "bits": "i64", "position": "i64", "grown": "i64"}
_START = 8 * len(_SLOTS)


Parts = Sequence[Operand]
"""The addresses of the parts of a packet's memory, in order."""


@dataclass(slots=True)
class Context:
    """The offsets in a packet's memory.

    slots: by name, the architecture's `notes` among them. direct: 8 bytes for each direct counter
    or meter, with the result of the last lookup. values: by name; the last ends at `end`. fields:
    of the values in parts, by their names. starts: of the parts. unread: spans of the values (first
    byte, end) that are never read before they are written. shared: variables that stand for values
    in every block.

    The memory is in one piece where packets wait. Where a function runs a packet its parts lie by
    themselves: small ones in the frame, where LLVM makes registers of their fields, writes no zeros
    that are not read, and takes a field from the packet where it is used."""

    slots: dict[str, Slot]
    direct: dict[str, int]
    values: dict[str, int]
    end: int
    fields: dict[str, list[int]]
    starts: list[int]
    unread: Sequence[tuple[int, int]] = ()
    shared: dict[ir.Var, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the whole, in whole lines of the cache."""
        return _up(self.end, LINE)

    @property
    def given(self) -> Parts:
        """The parameters of a function that takes the parts."""
        return [f"%c{i}" for i in range(len(self.starts))]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First byte and end of each part."""
        return list(pairwise([*self.starts, self.end]))

    def local(self, f: Function, name: str) -> Parts:
        """Allot the parts for a function: the large ones in memory of a name, which may be read in
        whole vectors."""
        return [
            f.alloca(size)
            if size <= LINE
            else f.module.memory(f"{f.name}: {name} {start}", size + LINE)
            for start, size in ((start, end - start) for start, end in self.spans)
        ]

    def whole(self, f: Function, address: Operand) -> Parts:
        """Return the parts of memory in one piece."""
        return [f.add(address, start) for start in self.starts]

    def copy(self, f: Function, target: Parts, source: Parts) -> None:
        for (start, end), to, part in zip(self.spans, target, source, strict=True):
            f.copy(to, part, end - start)

    def at(self, f: Function, c: Parts, offset: int) -> Operand:
        """Return the address of what has this offset."""
        part = bisect_right(self.starts, offset) - 1
        return f.add(c[part], offset - self.starts[part])

    def get(self, f: Function, c: Parts, name: str) -> Operand:
        slot = self.slots[name]
        return f.load(slot.kind, self.at(f, c, slot.offset), 8)

    def set(self, f: Function, c: Parts, name: str, value: Operand | int) -> None:
        slot = self.slots[name]
        f.store(slot.kind, value, self.at(f, c, slot.offset), 8)

    def begin(self, f: Function, c: Parts, data: Operand, size: Operand) -> None:
        """Begin with a packet of `size` bytes, which is not parsed: all values are zero."""
        start = _START
        for first, end in (*self.unread, (self.end, self.end)):
            self._clear(f, c, start, first)
            start = end
        self.set(f, c, "data", data)
        self.set(f, c, "bits", f.binary("shl", "i64", size, 3))
        self.set(f, c, "position", 0)
        self.set(f, c, "grown", 0)

    def _clear(self, f: Function, c: Parts, first: int, end: int) -> None:
        for start, stop in self.spans:
            low, high = max(first, start), min(end, stop)
            if low < high:
                f.clear(self.at(f, c, low), high - low)


def make_context(
    layouts: Layouts, types: Mapping[str, Type], notes: Sequence[str], direct: Sequence[str],
    in_parts: Collection[str] = (),
) -> Context:  # fmt: skip
    """Lay out a packet's memory: small values first, which share lines of the cache. in_parts: the
    structs whose fields are parts."""
    slots, end = {}, 0
    for name, kind in {**_SLOTS, **dict.fromkeys(notes, "i64")}.items():
        slots[name] = Slot(kind, end)
        end += 8
    found = {name: end + 8 * i for i, name in enumerate(direct)}
    end += 8 * len(found)
    values = {}
    for name, t in sorted(types.items(), key=lambda item: layouts.of(item[1]).size > LINE):
        place = layouts.of(t)
        end = _up(end, place.align)
        if end // LINE != (end + place.size - 1) // LINE:
            end = _up(end, LINE)
        values[name] = end
        end += place.size
    fields = {
        name: [values[name] + offset for offset in layouts.of(types[name]).offsets]
        for name in in_parts
    }
    starts = {0, *values.values(), *(start for own in fields.values() for start in own)}
    return Context(slots, found, values, end, fields, sorted(starts - {end}))
