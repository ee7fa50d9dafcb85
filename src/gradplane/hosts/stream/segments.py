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
from dataclasses import dataclass

SEGMENT = 1400
VALUES = 1024  # bytes of values a segment
BEYOND = 256
MARK = 0x28  # ToS of packets that the network may compress

_MAGIC, _DATA, _ACK, _VALUES = 0xDA, 1, 2, 3
_START = struct.Struct(">BBH")
_DATA_HEADER = struct.Struct(">BBHQIIII")
_VALUES_HEADER = struct.Struct(">BBHQI")
_ACK_HEADER = struct.Struct(f">BBHQQI{BEYOND // 8}s")
HEADER_SIZE = _DATA_HEADER.size
VALUES_HEADER_SIZE = _VALUES_HEADER.size


class SegmentError(ValueError):
    """A datagram that is not a segment; the message says why."""


@dataclass(frozen=True, slots=True)
class DataSegment:
    """A piece of a message."""

    connection: int
    sequence: int
    message: int
    index: int
    count: int
    payload: bytes
    values: bool = False  # whether values segments follow in the message

    @property
    def tos(self) -> int:
        """The ToS byte of the datagram."""
        return 0

    def pack(self) -> bytes:
        """Return the datagram."""
        place = (self.connection, self.sequence, self.message, self.index, self.count)
        return _DATA_HEADER.pack(_MAGIC, _DATA, self.values, *place) + self.payload


@dataclass(frozen=True, slots=True)
class ValuesSegment:
    """A segment of float32 values, in network order, that the network may compress."""

    connection: int
    sequence: int
    payload: bytes

    @property
    def tos(self) -> int:
        """The ToS byte of the datagram."""
        return MARK

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
