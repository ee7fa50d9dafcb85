"""One tensor as a worker holds it while the tasks of its option are done.

Uncompressed it is the values of a range; compressed it is pieces, each the codes of a range from
one worker. A first step of a divisible scheme shortens the range, or leaves all with the root; the
second step restores it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gradplane.codecs import CodecError
from gradplane.hosts.protocols import collectives
from gradplane.hosts.protocols.collectives import Group, Routine, Span, spans
from gradplane.hosts.protocols.messages import MessageError
from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.protocols.run_plan import SWITCH_CODES, PlannedTask

_PIECE = struct.Struct(">III")  # low, high, bytes

Encode = Callable[[PlannedTask, int, Floats], bytes]
"""Encodes the values of a range that begins at an index."""
Decode = Callable[[bytes, int], Floats]
"""Decodes the data of a piece of so many values."""


class Piece(NamedTuple):
    """The codes of values low to high of the tensor."""

    low: int
    high: int
    data: bytes


class HeldTensor:
    """One worker's part of a tensor of a reduce. `values` is float32 of the range, if not
    compressed; `active` is False while another worker holds this one's part.
    """

    def __init__(self, values: Floats, encode: Encode) -> None:
        self.values: Floats = values
        self.pieces: list[Piece] = []
        self.active = True
        self._low, self._high = 0, values.size
        self._encode = encode
        self._outer: list[tuple[int, int, bool]] = []  # range and activity before first steps

    def compress(self, task: PlannedTask, following: Sequence[tuple[PlannedTask, int]]) -> None:
        """Encode the values: a piece for each part that alltoalls before the decompression make.

        following: the tasks after this one, with the number of members of each. Codes that the
        switch sums are made where it does so: nothing is encoded for them here.
        """
        if following and following[0][0].choice == SWITCH_CODES:
            return
        cuts: list[Span] = [(self._low, self._high)]
        for later, members in following:
            if later.kind == "decomp":
                break
            if later.choice == "alltoall":
                cuts = [cut for low, high in cuts for cut in spans(low, high, members)]
        self.pieces = [
            Piece(
                low, high, self._encode(task, low, self.values[low - self._low : high - self._low])
            )
            for low, high in cuts
        ]

    def decompress(self, decode: Decode) -> None:
        """Decode the pieces and add them, in their order."""
        total = np.zeros(self._high - self._low, np.float32)
        for piece in self.pieces:
            if not self._low <= piece.low <= piece.high <= self._high:
                raise MessageError(
                    f"a piece of values {piece.low} to {piece.high} is not of this range"
                )
            try:
                decoded = decode(piece.data, piece.high - piece.low)
            except CodecError as error:
                raise MessageError(f"a piece: {error}") from error
            total[piece.low - self._low : piece.high - self._low] += decoded
        self.values, self.pieces = total, []

    def communicates(self, task: PlannedTask) -> bool:
        """Return whether this worker has a part in a task, which is a routine."""
        if task.kind.startswith("comm2"):
            return self._outer[-1][2]
        return task.kind.startswith("comm") and self.active

    def skip(self, task: PlannedTask) -> None:
        """Go past a routine in which this worker has no part."""
        if task.kind.startswith("comm2"):
            self._outer.pop()
        elif task.kind.startswith("comm1"):
            self._outer.append((self._low, self._high, False))

    def communicate(self, task: PlannedTask, group: Group) -> Routine[None]:
        """Take part in a collective routine."""
        if task.kind.startswith("comm2"):
            yield from self._second_step(task, group)
            return
        if task.kind.startswith("comm1"):
            self._outer.append((self._low, self._high, self.active))
        match task.choice:
            case "allreduce" | "tos":
                self.values = yield from collectives.allreduce(group, self.values)
            case "server":
                self.values = yield from collectives.served(group, self.values)
            case "switch-int32":
                data = yield from collectives.switched(group, self.values)
                self.values = np.frombuffer(data, "<f4").astype(np.float32)
            case "switch-codes":
                data = yield from collectives.switched(group, self.values)
                self.pieces = [Piece(self._low, self._high, data)]
            case "reduce-scatter":
                self.values = yield from collectives.reduce_scatter(group, self.values)
                self._low, self._high = spans(self._low, self._high, group.size)[group.me]
            case "reduce":
                self.values = yield from collectives.reduce(group, self.values)
                self.active = group.me == 0
            case "allgather":
                found = yield from collectives.allgather(group, _packed(self.pieces))
                self.pieces = [piece for data in found for piece in _unpacked(data)]
            case "alltoall":
                cuts = spans(self._low, self._high, group.size)
                parts = [_packed(_within(self.pieces, cut)) for cut in cuts]
                found = yield from collectives.alltoall(group, parts)
                self.pieces = [piece for data in found for piece in _unpacked(data)]
                self._low, self._high = cuts[group.me]
            case "gather":
                found = yield from collectives.gather(group, _packed(self.pieces))
                self.pieces = [piece for data in found for piece in _unpacked(data)]
                self.active = group.me == 0

    def _second_step(self, task: PlannedTask, group: Group) -> Routine[None]:
        low, high, _ = self._outer.pop()
        compressed = task.kind.endswith("_comp")
        own = _packed(self.pieces) if compressed else self.values.astype("<f4").tobytes()
        if task.choice == "allgather":
            found = yield from collectives.allgather(group, own)
        else:
            found = [(yield from collectives.broadcast(group, own))]
        if compressed:
            self.pieces = [piece for data in found for piece in _unpacked(data)]
        else:
            self.values = np.frombuffer(b"".join(found), "<f4").astype(np.float32)
            if self.values.size != high - low:
                raise MessageError(f"{self.values.size} values for a range of {high - low}")
        self._low, self._high, self.active = low, high, True


def _within(pieces: Sequence[Piece], span: Span) -> list[Piece]:
    """Return the pieces of a span; of an empty one none."""
    low, high = span
    return [p for p in pieces if low <= p.low < p.high <= high]


def _packed(pieces: Sequence[Piece]) -> bytes:
    return b"".join(_PIECE.pack(p.low, p.high, len(p.data)) + p.data for p in pieces)


def _unpacked(data: bytes) -> Iterator[Piece]:
    at = 0
    while at < len(data):
        try:
            low, high, size = _PIECE.unpack_from(data, at)
        except struct.error as error:
            raise MessageError(f"pieces: {error}") from error
        at += _PIECE.size + size
        if at > len(data):
            raise MessageError(f"a piece of {size} bytes is cut short")
        yield Piece(low, high, data[at - size : at])
