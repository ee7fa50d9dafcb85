"""Decoding and encoding of headers.

All in numbers of at most 64 bits, however wide the fields: LLVM handles those well, and wide ones
badly.

One function for each header type and direction: void get(source, target, varying), put(...).

Runs of fields of equal width are moved as vectors between memory and big-endian bytes.

128 fields of bit<32> are 8 loads of 64 bytes, 8 shuffles and 8 stores, not 128 of each; a
bit<1024> is such a run of words, the highest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Fields, Header, Type, Varbit
from gradplane.switch.ir.walk import statements
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.llvm_text import Function, Module, Operand
from gradplane.switch.jit.value_layout import Leaf, container, leaves

WORD = 64
SIZES = (8, 16, 32, 64)  # bits of what is loaded and stored at once
VECTORS = (64, 32, 16)  # bytes


class Piece(NamedTuple):
    """At most 64 bits of a leaf: their place in the run of bits, and in the leaf's memory."""

    start: int
    width: int
    leaf: Leaf
    number: int  # of the 64-bit word, the lowest is 0

    @property
    def bits(self) -> int:
        """The bits of the number in memory."""
        return min(container(self.leaf.width), WORD)

    @property
    def at(self) -> int:
        """The offset in memory."""
        return self.leaf.offset + 8 * self.number

    @property
    def whole(self) -> bool:
        """True when it has the same bytes in the packet, in any order."""
        return not self.start & 7 and self.width == self.bits


def pieces(parts: Sequence[Leaf]) -> list[Piece]:
    """Split a run of leaves into pieces, wide ones into words, in order of the bits."""
    out, at = [], 0
    for leaf in parts:
        for number in reversed(range(-(-leaf.width // WORD))):
            width = min(WORD, leaf.width - WORD * number)
            out.append(Piece(at, width, leaf, number))
            at += width
    return out


@dataclass(frozen=True, slots=True)
class Vector:
    """A run of `count` whole pieces.

    start: offset in the packet. at: offset in memory, in bytes. falling: the first piece in the
    packet is the last in memory."""

    start: int
    at: int
    bits: int
    count: int
    falling: bool

    def decode(self, f: Function, source: Operand, target: Operand) -> None:
        """Write the code that copies from the packet to memory."""
        value = f.load(self._kind, f.add(source, self.start), 1)
        f.store(self._kind, self._turned(f, value), f.add(target, self.at), self.bits // 8)

    def encode(self, f: Function, source: Operand, target: Operand) -> None:
        """Write the code that copies from memory to the packet."""
        value = f.load(self._kind, f.add(source, self.at), self.bits // 8)
        f.store(self._kind, self._turned(f, value), f.add(target, self.start), 1)

    @property
    def _kind(self) -> str:
        return f"<{self.count} x i{self.bits}>"

    def _turned(self, f: Function, value: Operand) -> Operand:
        if self.bits > 8:
            name = f"llvm.bswap.v{self.count}i{self.bits}"
            value = f.intrinsic(name, self._kind, (self._kind, value))
        if self.falling:
            order = ", ".join(f"i32 {i}" for i in reversed(range(self.count)))
            mask = f"<{self.count} x i32> <{order}>"
            value = f.op(f"shufflevector {self._kind} {value}, {self._kind} poison, {mask}")
        return value


def in_vectors(found: Sequence[Piece]) -> Iterator[Vector | list[Piece]]:
    """Group pieces, in order, into vectors where possible, the others into lists."""
    single: list[Piece] = []
    for run in _same_runs(found):
        size, i = run[0].bits // 8, 0
        for length in VECTORS if run[0].whole else ():
            while (len(run) - i) * size >= length and length > size:
                if single:
                    yield single
                    single = []
                yield _vector(run[i : i + length // size])
                i += length // size
        single += run[i:]
    if single:
        yield single


def _vector(run: Sequence[Piece]) -> Vector:
    first, last = run[0], run[-1]
    at = min(first.at, last.at)
    return Vector(first.start // 8, at, first.bits, len(run), last.at < first.at)


def _same_runs(found: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Split where the next piece is not of the same size, whole, and next to the last in memory."""
    run: list[Piece] = []
    step = 0
    for piece in found:
        if run:
            last = run[-1]
            fits = piece.whole and last.whole and piece.bits == last.bits
            distance = piece.at - last.at
            if not fits or abs(distance) != piece.bits // 8 or (step and distance != step):
                yield run
                run, step = [], 0
            else:
                step = distance
        run.append(piece)
    if run:
        yield run


class Number(NamedTuple):
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
            for start, end, run in _words(part):
                word: Operand = ""
                if end - start in SIZES and len(run) > 1:
                    word = self.big_endian(self.f.add(source, start // 8), (end - start) // 8)
                for piece in run:
                    if word:
                        value = self._part(word, end - piece.start - piece.width, piece.width)
                    else:
                        value = self._bits(source, piece.start, piece.width)
                    kind, address = f"i{piece.bits}", self.f.add(target, piece.at)
                    number = self.f.resize(value, WORD, piece.bits)
                    self.f.store(kind, number, address, piece.bits // 8)

    def _part(self, word: Operand, low: int, width: int) -> Operand:
        """Return bits of an i64 from `low` on."""
        shifted = self.f.binary("lshr", "i64", word, low) if low else word
        return self.f.binary("and", "i64", shifted, (1 << width) - 1)

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
        for start, end, members in _words(numbers):
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


Placed = TypeVar("Placed", Piece, Number)
Run = tuple[int, int, list[Placed]]


def _words(numbers: Sequence[Placed]) -> Iterator[Run[Placed]]:
    """Split into runs of whole bytes, as many of a word's size as there are: (first bit, end,
    numbers). LLVM sees that numbers which are not changed are put together as they were."""
    runs = list(_runs(numbers))
    while runs:
        start = runs[0][0]
        sizes = [end - start for _, end, _ in runs[:8]]
        count = max((i for i, size in enumerate(sizes, 1) if size in SIZES), default=1)
        yield start, runs[count - 1][1], [number for run in runs[:count] for number in run[2]]
        del runs[:count]


def _runs(numbers: Sequence[Placed]) -> Iterator[Run[Placed]]:
    """Split at the byte boundaries that numbers share."""
    members: list[Placed] = []
    for i, number in enumerate(numbers):
        members.append(number)
        end = number.start + number.width
        if not end & 7 or i == len(numbers) - 1:
            yield members[0].start, end, members
            members = []


class Wire(NamedTuple):
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
    if isinstance(t, Array):
        return emitted(t.element) * t.size
    assert isinstance(t, Fields), t
    return [header for field in t.fields for header in emitted(field.type)]


def aligned(unit: Unit, block: ir.Parser | ir.Control) -> bool:
    """Return whether all headers that a block extracts or emits are whole bytes; then its position
    is at a byte boundary before each."""
    return all(wire(unit, header).aligned for s in statements(block) for header in _moved(s))


def _moved(stmt: ir.Stmt) -> list[Header]:
    if isinstance(stmt, ir.Extract):
        return [stmt.target.type] if isinstance(stmt.target.type, Header) else []
    return emitted(stmt.value.type) if isinstance(stmt, ir.Emit) else []


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


FEW = 8  # fields in vectors
_GET = [("ptr", "%source"), ("ptr noalias", "%target"), ("i64", "%varying")]
_PUT = [("ptr", "%source"), ("ptr noalias", "%target")]


class HeaderCodecs:
    """Writes calls of the functions, and each function on its first use."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def decode(
        self, f: Function, t: Header, source: Operand, target: Operand, varying: Operand | int
    ) -> None:
        """Decode fields from byte-aligned `source`; validity is not changed."""
        name = self._name("get", t)
        if not self.unit.module.has(name):
            form = wire(self.unit, t)
            made = self.unit.module.function(name, "void", _GET, attributes=_attributes(form))
            self._decode(made, form)
        f.call("void", name, ("ptr", source), ("ptr", target), ("i64", varying))

    def encode(self, f: Function, t: Header, source: Operand, target: Operand) -> None:
        """Encode fields to byte-aligned `target`, with zeros up to the next byte."""
        name = self._name("put", t)
        if not self.unit.module.has(name):
            form = wire(self.unit, t)
            made = self.unit.module.function(name, "void", _PUT, attributes=_attributes(form))
            self._encode(made, form)
        f.call("void", name, ("ptr", source), ("ptr", target))

    def _name(self, what: str, t: Header) -> str:
        return f"{what}.{self.unit.number(t)}"

    def _decode(self, f: Function, form: Wire) -> None:
        codec = NativeHeaderCodec(self.unit, f)
        codec.decode(form.front, "%source", "%target")
        if form.varbit is not None:
            self._decode_varbit(f, form)
            back = self._back(f, form, "%varying")
            codec.decode(form.back, back, "%target")
        f.ret()

    def _decode_varbit(self, f: Function, form: Wire) -> None:
        assert form.varbit is not None
        bits, start = container(form.limit), sum(leaf.width for leaf in form.front)
        buffer = f.alloca(bits // 8)
        f.clear(buffer, bits // 8)
        to = f.binary("sub", "i64", bits, "%varying")
        if start & 7:
            copy_bits(f, buffer, to, "%source", start, "%varying")
        else:
            end = f.add(buffer, f.binary("lshr", "i64", to, 3))
            f.copy(end, f.add("%source", start // 8), f.binary("lshr", "i64", "%varying", 3))
        NativeHeaderCodec(self.unit, f).reverse(
            buffer, f.add("%target", form.varbit + 8), bits // 8
        )
        length = f.resize("%varying", 64, 32)
        f.store("i32", length, f.add("%target", form.varbit), 4)

    def _back(self, f: Function, form: Wire, varying: Operand) -> Operand:
        """Return the start of the fields after the varbit, aligned to a byte if need be."""
        width = sum(leaf.width for leaf in form.back)
        start = f.binary("add", "i64", varying, sum(leaf.width for leaf in form.front))
        if form.aligned:
            return f.add("%source", f.binary("lshr", "i64", start, 3))
        buffer = f.alloca(width // 8 + 1)
        copy_bits(f, buffer, 0, "%source", start, width)
        return buffer

    def _encode(self, f: Function, form: Wire) -> None:
        codec = NativeHeaderCodec(self.unit, f)
        codec.encode(form.front, "%source", "%target")
        if form.varbit is not None:
            self._encode_varbit(f, codec, form)
        f.ret()

    def _encode_varbit(self, f: Function, codec: NativeHeaderCodec, form: Wire) -> None:
        assert form.varbit is not None
        bits, start = container(form.limit), sum(leaf.width for leaf in form.front)
        buffer = f.alloca(bits // 8)
        codec.reverse(f.add("%source", form.varbit + 8), buffer, bits // 8)
        varying = f.resize(f.load("i32", f.add("%source", form.varbit), 4), 32, 64)
        skipped = f.binary("sub", "i64", bits, varying)
        width = sum(leaf.width for leaf in form.back)
        end = f.binary("add", "i64", varying, start)
        if form.aligned:
            body = f.add(buffer, f.binary("lshr", "i64", skipped, 3))
            f.copy(f.add("%target", start // 8), body, f.binary("lshr", "i64", varying, 3))
            codec.encode(form.back, "%source", f.add("%target", f.binary("lshr", "i64", end, 3)))
        else:
            copy_bits(f, "%target", start, buffer, skipped, varying)
            back = f.alloca(width // 8 + 1)
            codec.encode(form.back, "%source", back)
            copy_bits(f, "%target", end, back, 0, width)


def _attributes(form: Wire) -> str:
    """Return the attributes of a codec's function. If vectors fill many fields, it is not inlined:
    LLVM would extract the fields from the vectors one by one instead of loading them."""
    found = in_vectors(pieces((*form.front, *form.back)))
    many = sum(p.count for p in found if isinstance(p, Vector)) > FEW
    return "noinline " if many else "alwaysinline "
