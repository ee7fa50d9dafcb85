"""Decoding and encoding of headers.

All in numbers of at most 64 bits, however wide the fields: LLVM handles those well, and wide ones
badly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradplane.switch.ir.types import Fields, Header, Stack, Type, Varbit
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.field_runs import WORD, Piece, Vector, in_vectors, pieces
from gradplane.switch.jit.llvm_text import Function, Module, Operand
from gradplane.switch.jit.value_layout import Leaf, leaves


@dataclass(frozen=True, slots=True)
class Number:
    """A number of at most 64 bits at a bit position; `value` is an i64."""

    start: int
    width: int
    value: Operand


class NativeHeaderCodec:
    """Writes the code that moves numbers between memory and big-endian bytes."""

    def __init__(self, unit: Unit, function: Function) -> None:
        self.f = function
        self.code = Expressions(unit, function, {})

    # -- from bytes -----------------------------------------------------------------------------

    def decode(self, parts: Sequence[Leaf], source: Operand, target: Operand) -> None:
        """Decode left-aligned bytes at `source` to the leaves' places from `target` on."""
        for leaf in parts:
            if not leaf.width:
                self.code.put(leaf.type, "0", self.f.add(target, leaf.offset))
        for part in in_vectors(pieces(parts)):
            if isinstance(part, Vector):
                part.decode(self.f, source, target)
                continue
            for piece in part:
                value = self._bits(source, piece.start, piece.width)
                kind, address = f"i{piece.bits}", self.f.add(target, piece.at)
                self.f.store(kind, self.f.resize(value, WORD, piece.bits), address, piece.bits // 8)

    def _bits(self, source: Operand, start: int, width: int) -> Operand:
        """Return up to 64 bits at a bit position, as i64."""
        f, first, last = self.f, start // 8, (start + width + 7) // 8
        size, after = last - first, 8 * last - start - width
        if size <= 8:
            number = self.big_endian(f.add(source, first), size)
            number = f.binary("lshr", "i64", number, after) if after else number
        else:  # nine bytes
            high = f.binary("shl", "i64", self.big_endian(f.add(source, first), 8), 8 - after)
            low = f.binary("lshr", "i64", self.big_endian(f.add(source, last - 1), 1), after)
            number = f.binary("or", "i64", high, low)
        if width == min(size, 8) * 8 - after:
            return number
        return f.binary("and", "i64", number, (1 << width) - 1 if width < WORD else -1)

    def big_endian(self, source: Operand, size: int) -> Operand:
        """Return 1 to 8 big-endian bytes as an i64."""
        bits = size * 8
        return self.f.resize(self._swap(self.f.load(f"i{bits}", source, 1), bits), bits, WORD)

    # -- to bytes -------------------------------------------------------------------------------

    def encode(self, parts: Sequence[Leaf], source: Operand, target: Operand) -> None:
        """Encode the leaves, the reverse of decode; bits beyond the last leaf become zero."""
        for part in in_vectors(pieces(parts)):
            if isinstance(part, Vector):
                part.encode(self.f, source, target)
            else:
                self.pack([self._number(piece, source) for piece in part], target)

    def _number(self, piece: Piece, source: Operand) -> Number:
        value = self.f.load(f"i{piece.bits}", self.f.add(source, piece.at), piece.bits // 8)
        return Number(piece.start, piece.width, self.f.resize(value, piece.bits, WORD))

    def numbers(self, values: Sequence[tuple[int, Operand]]) -> list[Number]:
        """Lay out (width, operand) pairs one after the other, wide ones split into words."""
        f, out, at = self.f, [], 0
        for width, operand in values:
            for number in reversed(range(-(-width // WORD))):
                part = operand
                if number:
                    part = f.binary("lshr", f"i{width}", operand, WORD * number)
                size = min(WORD, width - WORD * number)
                out.append(Number(at, size, f.resize(part, width, WORD)))
                at += size
        return out

    def pack(self, numbers: Sequence[Number], target: Operand) -> None:
        """Write numbers that follow each other, zeros up to the next byte."""
        for start, end, members in _runs(numbers):
            for at in range(start, end, WORD):
                self._pack_word(members, at, min(end - at, WORD), target)

    def _pack_word(self, members: Sequence[Number], at: int, width: int, target: Operand) -> None:
        """Write the bytes of bits `at` to `at + width`."""
        f, size = self.f, (width + 7) // 8
        word: Operand = "0"
        for number in members:
            if number.start >= at + width or number.start + number.width <= at:
                continue
            shift = at + 8 * size - number.start - number.width
            part = number.value
            if shift:
                part = f.binary("shl" if shift > 0 else "lshr", "i64", part, abs(shift))
            word = part if word == "0" else f.binary("or", "i64", word, part)
        self.put_big_endian(word, f.add(target, at // 8), size)

    def put_big_endian(self, value: Operand, target: Operand, size: int) -> None:
        """Write the low 1 to 8 bytes of an i64, big-endian."""
        bits = size * 8
        swapped = self._swap(self.f.resize(value, WORD, bits), bits)
        self.f.store(f"i{bits}", swapped, target, 1)

    def _swap(self, value: Operand, bits: int) -> Operand:
        if bits == 8:
            return value
        if bits % 16 == 0:
            return self.f.intrinsic(f"llvm.bswap.i{bits}", f"i{bits}", (f"i{bits}", value))
        more = bits + 8  # bswap needs an even number of bytes
        wide = self.f.binary("shl", f"i{more}", self.f.resize(value, bits, more), 8)
        swapped = self.f.intrinsic(f"llvm.bswap.i{more}", f"i{more}", (f"i{more}", wide))
        return self.f.resize(swapped, more, bits)

    def reverse(self, source: Operand, target: Operand, size: int) -> None:
        """Copy 1, 2, 4 or a multiple of 8 bytes in reverse order."""
        step = min(size, 8)
        for at in range(0, size, step):
            word = self.big_endian(self.f.add(source, size - step - at), step)
            part = self.f.resize(word, WORD, 8 * step)
            self.f.store(f"i{8 * step}", part, self.f.add(target, at), 1)


def _runs(numbers: Sequence[Number]) -> Iterator[tuple[int, int, list[Number]]]:
    """Split at the byte boundaries that numbers share: (first bit, end, numbers)."""
    members: list[Number] = []
    for i, number in enumerate(numbers):
        members.append(number)
        end = number.start + number.width
        if not end & 7 or i == len(numbers) - 1:
            yield members[0].start, end, members
            members = []


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
        """Return whether every part has whole bytes."""
        widths = [sum(leaf.width for leaf in part) for part in (self.front, self.back)]
        return all(not w & 7 for w in (*widths, self.fixed))


def wire(unit: Unit, t: Fields) -> Wire:
    """Return the wire form of a header (or of a struct of fixed fields)."""
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
    """Return the header types that emit of a value may write, each as often as it may."""
    if isinstance(t, Header):
        return [t]
    if isinstance(t, Stack):
        return emitted(t.element) * t.size
    assert isinstance(t, Fields), t
    return [header for field in t.fields for header in emitted(field.type)]


# -- bits at any position -----------------------------------------------------------------------


def copy_bits(
    f: Function, target: Operand, to: Operand | int, source: Operand, start: Operand | int,
    count: Operand | int,
) -> None:  # fmt: skip
    """Copy `count` bits from bit `start` of a source to bit `to` of a target.

    The target's other bits in the bytes touched stay.
    """
    if not f.module.has("copy_bits"):
        _copy_bits(f.module)
    args = (("ptr", target), ("i64", to), ("ptr", source), ("i64", start), ("i64", count))
    f.call("void", "copy_bits", *args)


def _copy_bits(module: Module) -> None:
    """Copy 64 bits at a time if the target is at a whole byte, else what its byte has room for."""
    params = [("ptr", "%target"), ("i64", "%to"), ("ptr", "%source"), ("i64", "%from"),
              ("i64", "%count")]  # fmt: skip
    f = module.function("copy_bits", "void", params, attributes="noinline ")
    to, start, left = (f.variable("i64", x) for x in ("%to", "%from", "%count"))
    with f.loop() as end:
        bits, more = left.get(), f.label()
        f.branch(f.compare("eq", "i64", bits, 0), end, more)
        f.at(more)
        at, begin = to.get(), start.get()
        offset, shift = f.binary("and", "i64", at, 7), f.binary("and", "i64", begin, 7)
        room = f.binary("sub", "i64", 8, offset)
        whole = f.compare("eq", "i64", offset, 0)
        whole = f.binary("and", "i1", whole, f.compare("uge", "i64", bits, 64))
        part = f.intrinsic("llvm.umin.i64", "i64", ("i64", room), ("i64", bits))
        size = f.select(whole, "i64", 64, part)
        address = f.add("%target", f.binary("lshr", "i64", at, 3))
        first = f.add("%source", f.binary("lshr", "i64", begin, 3))
        # The byte of the last bit: the first one's, or the one behind what is loaded there.
        last = f.binary("sub", "i64", f.binary("add", "i64", begin, size), 1)
        behind = f.resize(f.load("i8", f.add("%source", f.binary("lshr", "i64", last, 3))), 8, 64)
        low = f.binary("lshr", "i64", behind, f.binary("sub", "i64", 8, shift))
        word, byte, after = f.label(), f.label(), f.label()
        f.branch(whole, word, byte)
        f.at(word)
        value = f.intrinsic("llvm.bswap.i64", "i64", ("i64", f.load("i64", first, 1)))
        value = f.binary("or", "i64", f.binary("shl", "i64", value, shift), low)
        f.store("i64", f.intrinsic("llvm.bswap.i64", "i64", ("i64", value)), address, 1)
        f.go(after)
        f.at(byte)
        value = f.binary("shl", "i64", f.resize(f.load("i8", first), 8, 64), shift)
        value = f.binary("lshr", "i64", f.binary("or", "i64", value, low), offset)
        above = f.binary("lshr", "i64", 0xFF, offset)
        below = f.binary("lshr", "i64", above, size)
        mask = f.binary("xor", "i64", above, below)
        value = f.binary("and", "i64", value, mask)
        kept = f.resize(f.load("i8", address), 8, 64)
        kept = f.binary("and", "i64", kept, f.binary("xor", "i64", mask, -1))
        f.store("i8", f.resize(f.binary("or", "i64", kept, value), 64, 8), address)
        f.go(after)
        f.at(after)
        to.increase(size)
        start.increase(size)
        left.set(f.binary("sub", "i64", bits, size))
    f.ret()


def clear_rest(f: Function, target: Operand, bits: Operand) -> None:
    """Fill up the last byte with zeros."""
    odd = f.binary("and", "i64", bits, 7)
    with f.when(f.compare("ne", "i64", odd, 0)):
        last = f.add(target, f.binary("lshr", "i64", bits, 3))
        shift = f.resize(f.binary("sub", "i64", odd, 1), 64, 8)
        mask = f.binary("ashr", "i8", -128, shift)
        f.store("i8", f.binary("and", "i8", f.load("i8", last), mask), last)
