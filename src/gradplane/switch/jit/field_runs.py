"""Runs of fields of equal width, moved as vectors between memory and big-endian bytes.

128 fields of bit<32> are 8 loads of 64 bytes, 8 shuffles and 8 stores, not 128 of each; a
bit<1024> is such a run of words, the highest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import Leaf, container

WORD = 64
VECTORS = (64, 32, 16)  # bytes


@dataclass(frozen=True, slots=True)
class Piece:
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
    for run in _runs(found):
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


def _runs(found: Sequence[Piece]) -> Iterator[list[Piece]]:
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
