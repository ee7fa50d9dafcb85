"""The messages of the parameter server, the ring, the synchronisation, of workers that join and of
gathers, sent by a Stream.

Every message is a 20-byte header in network order, then a body:
kind 8, count 8, tensor 16, ticket 32, n 32, bitmap 64.

Of more than 64 workers the kind's highest bit is set, the bitmap is the number of bytes of the
workers' own, and the body begins with those, in network order; its ones are the count.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

_HEADER = struct.Struct(">BBHIIQ")
_LONG = 0x80  # of a kind


class Kind(IntEnum):
    """The kind of a message, which is its first byte."""

    STAT = 1  # worker to server: codec.local(), float32 little-endian
    STAT_RESULT = 2  # server to workers: the maximum, over the workers in count and bitmap
    PUSH = 3  # worker to server: the encoded vector of n values
    PULL = 4  # server to workers: the encoded mean of n values, over count and bitmap
    REPORT = 5  # worker to coordinator: n results missed in the epoch `ticket`
    DECISION = 6  # coordinator to workers: count 1: copy worker n's parameters; 0: nothing to copy
    PARAMETERS = 7  # source to workers: its parameters, n float32 little-endian
    PARTIAL_BLOCK = (
        8  # to the right neighbour: block `count` of n values, summed over the workers in bitmap
    )
    WHOLE_BLOCK = 9  # to the right neighbour: the same, over all workers
    JOIN = 10  # newcomer to donor: asks for its state at the start of round `ticket`
    STATE = 11  # donor to newcomer: n parameters, n values of momentum, float32 little-endian
    READY = 12  # newcomer to all others of round `ticket`: it has the state
    PLANNED = 13  # between workers of a plan: part `count` of a task, `bitmap`, of `tensor`
    AWAIT = 14  # to a newcomer of round `ticket`: is it ready? READY answers
    TOTAL_BLOCK = 15  # within a group: block `count` of n values, summed over all groups in bitmap
    PART = 16  # to other workers: n bytes of worker `tensor`; count 1: a broadcast's


SERVER_KINDS = frozenset({Kind.STAT, Kind.PUSH})
WORKER_KINDS = frozenset({Kind.STAT_RESULT, Kind.PULL})
RING_KINDS = frozenset({Kind.PARTIAL_BLOCK, Kind.WHOLE_BLOCK, Kind.TOTAL_BLOCK})
SYNC_KINDS = frozenset({Kind.REPORT, Kind.DECISION, Kind.PARAMETERS})
JOIN_KINDS = frozenset({Kind.JOIN, Kind.STATE, Kind.READY, Kind.AWAIT})
PLAN_KINDS = frozenset({Kind.PLANNED})
GATHER_KINDS = frozenset({Kind.PART})


HEADER_SIZE = _HEADER.size


class MessageError(ValueError):
    """A message that is malformed or not expected; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `Kind` documents the fields."""

    kind: Kind
    ticket: int
    n: int = 0
    tensor: int = 0
    count: int = 0
    bitmap: int = 0
    body: bytes = b""

    def pack(self) -> bytes:
        """Return header and body."""
        place = self.tensor, self.ticket, self.n
        if self.bitmap >> 64 == 0:
            return _HEADER.pack(self.kind, self.count, *place, self.bitmap) + self.body
        size = -(-self.bitmap.bit_length() // 8)
        header = _HEADER.pack(self.kind | _LONG, 0, *place, size)
        return header + self.bitmap.to_bytes(size, "big") + self.body


def parse(data: bytes) -> Message:
    """Return the message in `data`; MessageError if it is too short or of unknown kind."""
    if len(data) < _HEADER.size:
        raise MessageError(f"message of {len(data)} bytes, the header alone takes {_HEADER.size}")
    kind, count, tensor, ticket, n, bitmap = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if (long := kind & _LONG) and bitmap <= len(body):
        bitmap, body = int.from_bytes(body[:bitmap], "big"), body[bitmap:]
        kind, count = kind - _LONG, bitmap.bit_count()
    elif long:
        raise MessageError(f"message of {len(data)} bytes with a bitmap of {bitmap}")
    if kind not in set(Kind):
        raise MessageError(f"message of kind {kind}, known are 1 to {max(Kind)}")
    return Message(Kind(kind), ticket, n, tensor, count, bitmap, body)


def kind_of(data: bytes) -> Kind:
    """Return a message's kind, which says whom it is for; MessageError as parse()."""
    header = data[: _HEADER.size]
    return parse(bytes([header[0] & ~_LONG]) + header[1:] if header else header).kind
