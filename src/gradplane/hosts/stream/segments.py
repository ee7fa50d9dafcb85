"""The datagrams of a Stream, in network order.

A data segment, 28 bytes and up to 1400 of a message: magic 8 (0xDA), kind 8 (1), flags 16 (1:
values follow the message's bytes), connection 64, sequence 32 (segments of the connection, from 0),
message 32, index 32 and count 32 (of the segments of the message).

A values segment, 16 bytes and 1 to 256 float32 values: magic, kind (3), zero 16, connection 64,
sequence 32. They belong to the message of the last data segment before them. The network may
compress them with loss (ToS 0x28): it leaves 16 bytes of header alone, so the message's number and
index are implied.

Acknowledgement, 56 bytes: magic, kind (2), zero, connection (acknowledged), receiver 64 (its
number; larger after a restart), next 32 (all earlier ones arrived), beyond 256 (bit i: segment
next + 1 + i arrived; bit 0 is the last byte's lowest).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gradplane._kernels import njit
from gradplane.hosts.wire.payloads import Payloads

__all__ = [
    "HEADER_SIZE", "SEGMENT", "VALUES", "VALUES_HEADER_SIZE", "Ack", "DataSegment", "SegmentError",
    "ValuesSegment", "message_bytes", "parse", "parse_batch",
]  # fmt: skip

SEGMENT = 1400  # bytes of a message in a segment that is not its last
VALUES = 1024  # bytes of values in a full segment
BEYOND = 256
MARK = 0x28  # ToS of packets that the network may compress

_MAGIC, _DATA, _ACK, _VALUES = 0xDA, 1, 2, 3
_START = struct.Struct(">BBH")
_DATA_HEADER = struct.Struct(">BBHQIIII")
_VALUES_HEADER = struct.Struct(">BBHQI")
_ACK_HEADER = struct.Struct(f">BBHQQI{BEYOND // 8}s")
HEADER_SIZE = _DATA_HEADER.size
VALUES_HEADER_SIZE = _VALUES_HEADER.size
_START_SIZE = _START.size
_SEQUENCE, _MESSAGE, _INDEX, _COUNT = 12, 16, 20, 24  # where in a header

# The same headers as columns: `start` is magic, kind and flags.
_PLACE = [("start", ">u4"), ("connection", ">u8"), ("sequence", ">u4")]
VALUES_HEADERS = np.dtype(_PLACE)
DATA_HEADERS = np.dtype([*_PLACE, ("message", ">u4"), ("index", ">u4"), ("count", ">u4")])
START_OF_VALUES = _MAGIC << 24 | _VALUES << 16


def start_of_data(values: bool) -> int:
    """Return `start` of a data segment, which says whether values follow in its message."""
    return _MAGIC << 24 | _DATA << 16 | values


class SegmentError(ValueError):
    """A datagram that is not a segment; the message says why."""


@dataclass(frozen=True, slots=True)
class DataSegment:
    """A piece of a message, or several that follow each other, all full but the last."""

    connection: int
    sequence: int
    message: int
    index: int
    count: int
    payload: bytes
    values: bool = False  # whether values segments follow in the message
    pieces: int = 1

    @property
    def tos(self) -> int:
        """The ToS byte of the datagram."""
        return 0

    def split(self) -> "Iterator[DataSegment]":
        """Yield the pieces."""
        for k in range(self.pieces):
            piece = self.payload[k * SEGMENT : (k + 1) * SEGMENT]
            sequence, index = self.sequence + k, self.index + k
            yield replace(self, sequence=sequence, index=index, payload=piece, pieces=1)

    def pack(self) -> bytes:
        """Return the datagram."""
        place = (self.connection, self.sequence, self.message, self.index, self.count)
        return _DATA_HEADER.pack(_MAGIC, _DATA, self.values, *place) + self.payload


@dataclass(frozen=True, slots=True)
class ValuesSegment:
    """A segment of float32 values, in network order, that the network may compress; or several
    that follow each other, all full but the last.
    """

    connection: int
    sequence: int
    payload: bytes
    pieces: int = 1

    @property
    def tos(self) -> int:
        """The ToS byte of the datagram."""
        return MARK

    def split(self) -> "Iterator[ValuesSegment]":
        """Yield the pieces."""
        for k in range(self.pieces):
            piece = self.payload[k * VALUES : (k + 1) * VALUES]
            yield replace(self, sequence=self.sequence + k, payload=piece, pieces=1)

    def pack(self) -> bytes:
        """Return the datagram."""
        return _VALUES_HEADER.pack(_MAGIC, _VALUES, 0, self.connection, self.sequence) + (
            self.payload
        )


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement of segments that arrived."""

    connection: int
    receiver: int
    next: int
    beyond: int

    @property
    def tos(self) -> int:
        """The ToS byte of the datagram."""
        return 0

    def pack(self) -> bytes:
        """Return the datagram."""
        beyond = self.beyond.to_bytes(BEYOND // 8, "big")
        ids = (self.connection, self.receiver, self.next)
        return _ACK_HEADER.pack(_MAGIC, _ACK, 0, *ids, beyond)


def parse(datagram: bytes) -> DataSegment | ValuesSegment | Ack:
    """Return the segment in a datagram; SegmentError if it holds none."""
    if len(datagram) < _START.size:
        raise SegmentError(f"{len(datagram)} bytes are not a segment")
    magic, kind, flags = _START.unpack_from(datagram)
    if magic == _MAGIC and kind == _DATA and flags <= 1:
        if _DATA_HEADER.size <= len(datagram) <= _DATA_HEADER.size + SEGMENT:
            return _data(datagram, bool(flags))
    elif magic == _MAGIC and flags == 0:
        if kind == _VALUES and 0 < len(datagram) - _VALUES_HEADER.size <= VALUES:
            return _values(datagram)
        if kind == _ACK and len(datagram) == _ACK_HEADER.size:
            *_, connection, receiver, next, beyond = _ACK_HEADER.unpack(datagram)
            return Ack(connection, receiver, next, int.from_bytes(beyond, "big"))
    raise SegmentError(f"{len(datagram)} bytes from {datagram[:4].hex()} are no segment")


def parse_batch(payloads: Payloads) -> Iterator[DataSegment | ValuesSegment | Ack | None]:
    """Yield the segments in datagrams, in order; those that follow each other come as one. None
    stands for a datagram that holds none.
    """
    if len(payloads) == 1:
        yield _parsed(payloads[0])
        return
    ends = np.empty(len(payloads), np.int64)
    runs = _run_ends(payloads.data, payloads.sizes, ends)
    first = 0
    for stop in ends[:runs].tolist():
        segment = _parsed(payloads[first])
        if stop - first > 1 and isinstance(segment, DataSegment | ValuesSegment):
            header = HEADER_SIZE if isinstance(segment, DataSegment) else VALUES_HEADER_SIZE
            full = payloads.sizes[first]
            whole = stop - (payloads.sizes[stop - 1] < full)  # the last one may be shorter
            payload = payloads.data[first:whole, header:full].tobytes()
            if whole < stop:
                payload += payloads.data[whole, header : payloads.sizes[whole]].tobytes()
            segment = replace(segment, payload=payload, pieces=stop - first)
        yield segment
        first = stop


def _parsed(datagram: bytes) -> DataSegment | ValuesSegment | Ack | None:
    try:
        return parse(datagram)
    except SegmentError:
        return None


def message_bytes(packets: Payloads) -> int:
    """Return how many bytes of messages datagrams carry; acknowledgements carry none."""
    return int(_message_bytes(packets.data, packets.sizes))


def _values(datagram: bytes) -> ValuesSegment:
    *_, connection, sequence = _VALUES_HEADER.unpack_from(datagram)
    payload = datagram[_VALUES_HEADER.size :]
    if len(payload) % 4:
        raise SegmentError(f"{len(payload)} bytes are not float32 values")
    return ValuesSegment(connection, sequence, payload)


def _data(datagram: bytes, values: bool) -> DataSegment:
    *_, connection, sequence, message, index, count = _DATA_HEADER.unpack_from(datagram)
    if index >= count:
        raise SegmentError(f"segment {index} of a message of {count}")
    payload = datagram[_DATA_HEADER.size :]
    if index < count - 1 and len(payload) != SEGMENT and not values:
        raise SegmentError(f"segment {index} of {count} has {len(payload)} bytes, not {SEGMENT}")
    return DataSegment(connection, sequence, message, index, count, payload, values)


# -- compiled passes over a batch ------------------------------------------------------------------
# data: uint8[n, stride], sizes: int64[n]; datagram i is data[i, : sizes[i]].


@njit(cache=True, nogil=True)
def _message_bytes(data, sizes):  # type: ignore[no-untyped-def]
    """Return how many bytes of messages datagrams carry; acknowledgements carry none."""
    total = 0
    for i in range(len(sizes)):
        if sizes[i] >= _START_SIZE and data[i, 0] == _MAGIC:
            if data[i, 1] == _DATA:
                total += max(sizes[i] - HEADER_SIZE, 0)
            elif data[i, 1] == _VALUES:
                total += max(sizes[i] - VALUES_HEADER_SIZE, 0)
    return total


@njit(cache=True, nogil=True)
def _run_ends(data, sizes, ends):  # type: ignore[no-untyped-def]
    """Find the runs of segments that follow each other, all full but a run's last one.

    Writes the end of each run to `ends`, int64[n], and returns their number. A datagram that holds
    no segment is a run by itself; so may be one that does.
    """
    runs = 0
    for i in range(1, len(sizes)):
        if not _follows(data[i - 1], sizes[i - 1], data[i], sizes[i]):
            ends[runs] = i
            runs += 1
    ends[runs] = len(sizes)
    return runs + 1


@njit(cache=True, nogil=True)
def _follows(before, size_before, here, size):  # type: ignore[no-untyped-def]
    """Return whether a segment follows the one before, which is full."""
    if min(size_before, size) <= VALUES_HEADER_SIZE or here[0] != _MAGIC or here[2] != 0:
        return False
    for at in range(_SEQUENCE):  # magic, kind, flags, connection
        if before[at] != here[at]:
            return False
    if _number(before, _SEQUENCE) + 1 != _number(here, _SEQUENCE):
        return False
    if here[1] == _VALUES:
        full = VALUES_HEADER_SIZE + VALUES
        return here[3] == 0 and size_before == full and size <= full and size % 4 == 0
    full = HEADER_SIZE + SEGMENT
    if here[1] != _DATA or here[3] > 1 or size_before != full or size <= HEADER_SIZE:
        return False
    index, count = _number(here, _INDEX), _number(here, _COUNT)
    same = _number(before, _MESSAGE) == _number(here, _MESSAGE)
    same = same and _number(before, _COUNT) == count and _number(before, _INDEX) + 1 == index
    # A data segment before the message's last is full, but where values follow.
    return same and (size == full and index < count or size < full and index + 1 == count)


@njit(cache=True, nogil=True)
def _number(row, start):  # type: ignore[no-untyped-def]
    """Return the 32-bit big-endian number at `start`."""
    value = 0
    for at in range(start, start + 4):
        value = value << 8 | row[at]
    return value
