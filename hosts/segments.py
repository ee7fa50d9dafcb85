"""The datagrams of a Stream, in network order.

Data, 28 bytes and up to 1400 of a message: magic 8 (0xDA), kind 8 (1), zero 16, connection 64,
sequence 32 (segments of the connection, from 0), message 32, index 32 and count 32 (of the segments
of the message).

Acknowledgement, 56 bytes: magic, kind (2), zero, connection (acknowledged), receiver 64 (who
acknowledges; larger after a restart), next 32 (all before it arrived), beyond 256 (bit i: next + 1
+ i arrived, bit 0 the last byte's lowest).
"""

import struct
from dataclasses import dataclass

SEGMENT = 1400
BEYOND = 256

_MAGIC, _DATA, _ACK = 0xDA, 1, 2
_START = struct.Struct(">BBH")
_DATA_HEADER = struct.Struct(">BBHQIIII")
_ACK_HEADER = struct.Struct(f">BBHQQI{BEYOND // 8}s")
HEADER_SIZE = _DATA_HEADER.size


class SegmentError(ValueError):
    """A datagram that is no segment; says why."""


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a message."""

    connection: int
    sequence: int
    message: int
    index: int
    count: int
    payload: bytes

    def pack(self) -> bytes:
        """The datagram."""
        place = (self.connection, self.sequence, self.message, self.index, self.count)
        return _DATA_HEADER.pack(_MAGIC, _DATA, 0, *place) + self.payload


@dataclass(frozen=True, slots=True)
class Ack:
    """What has arrived."""

    connection: int
    receiver: int
    next: int
    beyond: int

    def pack(self) -> bytes:
        """The datagram."""
        beyond = self.beyond.to_bytes(BEYOND // 8, "big")
        ids = (self.connection, self.receiver, self.next)
        return _ACK_HEADER.pack(_MAGIC, _ACK, 0, *ids, beyond)


def parse(datagram: bytes) -> Data | Ack:
    """The segment in a datagram; SegmentError if it is none."""
    if len(datagram) < _START.size:
        raise SegmentError(f"{len(datagram)} bytes are no segment")
    magic, kind, zero = _START.unpack_from(datagram)
    if magic == _MAGIC and zero == 0:
        if kind == _DATA and _DATA_HEADER.size <= len(datagram) <= _DATA_HEADER.size + SEGMENT:
            return _data(datagram)
        if kind == _ACK and len(datagram) == _ACK_HEADER.size:
            *_, connection, receiver, next, beyond = _ACK_HEADER.unpack(datagram)
            return Ack(connection, receiver, next, int.from_bytes(beyond, "big"))
    raise SegmentError(f"{len(datagram)} bytes from {datagram[:4].hex()} are no segment")


def _data(datagram: bytes) -> Data:
    *_, connection, sequence, message, index, count = _DATA_HEADER.unpack_from(datagram)
    if index >= count:
        raise SegmentError(f"segment {index} of a message of {count}")
    payload = datagram[_DATA_HEADER.size :]
    if index < count - 1 and len(payload) != SEGMENT:
        raise SegmentError(f"segment {index} of {count} has {len(payload)} bytes, not {SEGMENT}")
    return Data(connection, sequence, message, index, count, payload)
