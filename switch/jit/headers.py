"""Headers from and to the bytes of a packet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir.types import Fields, Header, Stack, Type, Varbit
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.layout import Leaf, leaves
from gradplane.switch.jit.text import Function, Operand


@dataclass(frozen=True, slots=True)
class Chunk:
    """Leaves that begin and end at a byte's border; the last may be filled up with `pad` bits."""

    start: int  # bytes
    size: int
    pad: int
    leaves: tuple[Leaf, ...]


def chunks(parts: Sequence[Leaf]) -> list[Chunk]:
    """Cuts a run of leaves at every byte border they share."""
    out: list[Chunk] = []
    start = end = 0  # bits
    pending: list[Leaf] = []
    for i, leaf in enumerate(parts):
        if leaf.width:
            pending.append(leaf)
        end += leaf.width
        if pending and (not end & 7 or i == len(parts) - 1):
            pad = -end % 8
            out.append(Chunk(start // 8, (end + pad - start) // 8, pad, tuple(pending)))
            pending, start = [], end
    if pending:
        pad = -end % 8
        out.append(Chunk(start // 8, (end + pad - start) // 8, pad, tuple(pending)))
    return out


class Codec:
    """Writes the code that moves leaves between memory and big-endian bytes."""

    def __init__(self, unit: Unit, function: Function) -> None:
        self.f = function
        self.code = Expressions(unit, function, {})

    def decode(self, parts: Sequence[Leaf], source: Operand, target: Operand) -> None:
        """From left-aligned bytes at `source` to the leaves' places behind `target`."""
        for leaf in parts:
            if not leaf.width:
                self.code.put(leaf.type, "0", self.f.add(target, leaf.offset))
        for chunk in chunks(parts):
            number = self.big_endian(self.f.add(source, chunk.start), chunk.size)
            bits, shift = chunk.size * 8, chunk.size * 8
            for leaf in chunk.leaves:
                shift -= leaf.width
                value = self.f.binary("lshr", f"i{bits}", number, shift) if shift else number
                value = self.f.resize(value, bits, leaf.width)
                self.code.put(leaf.type, value, self.f.add(target, leaf.offset))

    def encode(self, parts: Sequence[Leaf], source: Operand, target: Operand) -> None:
        """The reverse; bits beyond the last leaf become zero."""
        for chunk in chunks(parts):
            values = [
                (leaf.width, self.code.load(leaf.type, self.f.add(source, leaf.offset)))
                for leaf in chunk.leaves
            ]
            number = self.joined(values, chunk.size * 8)
            self.put_big_endian(number, self.f.add(target, chunk.start), chunk.size)

    def joined(self, values: Sequence[tuple[int, Operand]], bits: int) -> Operand:
        """(width, number) pairs one after the other, left-aligned in one number of `bits`."""
        shift = bits
        number: Operand = "0"
        for width, operand in values:
            shift -= width
            value = self.f.resize(operand, width, bits)
            if shift:
                value = self.f.binary("shl", f"i{bits}", value, shift)
            number = value if number == "0" else self.f.binary("or", f"i{bits}", number, value)
        return number

    def big_endian(self, source: Operand, size: int) -> Operand:
        """`size` bytes as a number of as many bits."""
        bits = size * 8
        loaded = self.f.load(f"i{bits}", source, 1)
        return self._swap(loaded, bits)

    def put_big_endian(self, value: Operand, target: Operand, size: int) -> None:
        self.f.store(f"i{size * 8}", self._swap(value, size * 8), target, 1)

    def _swap(self, value: Operand, bits: int) -> Operand:
        if bits == 8:
            return value
        if bits % 16 == 0:
            return self.f.intrinsic(f"llvm.bswap.i{bits}", f"i{bits}", (f"i{bits}", value))
        more = bits + 8  # bswap wants an even number of bytes
        wide = self.f.binary("shl", f"i{more}", self.f.resize(value, bits, more), 8)
        swapped = self.f.intrinsic(f"llvm.bswap.i{more}", f"i{more}", (f"i{more}", wide))
        return self.f.resize(swapped, more, bits)


@dataclass(frozen=True, slots=True)
class Wire:
    """A header's wire form: fixed fields, with at most one varbit between them."""

    front: tuple[Leaf, ...]
    back: tuple[Leaf, ...]
    varbit: int | None  # its offset in memory
    limit: int  # most bits of the varbit
    fixed: int  # bits of the rest

    @property
    def most(self) -> int:
        """The greatest size in bits."""
        return self.fixed + self.limit

    @property
    def aligned(self) -> bool:
        """Whether every part is whole bytes."""
        widths = [sum(leaf.width for leaf in part) for part in (self.front, self.back)]
        return all(not w & 7 for w in (*widths, self.fixed))


def wire(unit: Unit, t: Fields) -> Wire:
    """The wire form of a header (or of a struct of fixed fields)."""
    types = [f.type for f in t.fields]
    offsets = list(unit.layouts.of(t).offsets)
    at = next((i for i, f in enumerate(types) if isinstance(f, Varbit)), None)
    split = len(types) if at is None else at
    front = leaves(unit.layouts, types[:split], offsets[:split])
    back = leaves(unit.layouts, types[split + 1 :], offsets[split + 1 :])
    fixed = sum(leaf.width for leaf in (*front, *back))
    varbit = types[at] if at is not None else None
    limit = varbit.width if isinstance(varbit, Varbit) else 0
    return Wire(tuple(front), tuple(back), None if at is None else offsets[at], limit, fixed)


def emitted(t: Type) -> list[Header]:
    """The header types that emit of a value may write, as often as it may."""
    if isinstance(t, Header):
        return [t]
    if isinstance(t, Stack):
        return emitted(t.element) * t.size
    assert isinstance(t, Fields), t
    return [header for field in t.fields for header in emitted(field.type)]


# -- bits at any position -----------------------------------------------------------------------


def bit_copy(unit: Unit) -> str:
    """A function that copies `count` bits from bit `from` of a source to bit `to` of a target.

    The target's other bits in the bytes touched stay.
    """
    name = "copy_bits"
    if unit.module.has(name):
        return name
    params = [("ptr", "%target"), ("i64", "%to"), ("ptr", "%source"), ("i64", "%from"),
              ("i64", "%count")]  # fmt: skip
    f = unit.module.function(name, "void", params, attributes="noinline ")
    with f.count("%count") as i:
        bit = _bit(f, "%source", f.binary("add", "i64", "%from", i))
        at = f.binary("add", "i64", "%to", i)
        address = f.add("%target", f.binary("lshr", "i64", at, 3))
        shift = f.resize(f.binary("xor", "i64", f.binary("and", "i64", at, 7), 7), 64, 8)
        mask = f.binary("xor", "i8", f.op(f"shl i8 1, {shift}"), -1)
        kept = f.binary("and", "i8", f.load("i8", address), mask)
        f.store("i8", f.binary("or", "i8", kept, f.binary("shl", "i8", bit, shift)), address)
    f.ret()
    return name


def _bit(f: Function, source: Operand, at: Operand) -> Operand:
    """One bit as i8."""
    byte = f.load("i8", f.add(source, f.binary("lshr", "i64", at, 3)))
    shift = f.resize(f.binary("xor", "i64", f.binary("and", "i64", at, 7), 7), 64, 8)
    return f.binary("and", "i8", f.binary("lshr", "i8", byte, shift), 1)


def copy_bits(
    unit: Unit, f: Function, target: Operand, to: Operand | int, source: Operand,
    start: Operand | int, count: Operand | int,
) -> None:  # fmt: skip
    """Calls bit_copy."""
    args = (("ptr", target), ("i64", to), ("ptr", source), ("i64", start), ("i64", count))
    f.call("void", bit_copy(unit), *args)
