"""Aggregation packets: the header after UDP port 18256, indices and sums.

Header, 30 bytes, network order: version 4 bits, type 4, flags 8, job 8, worker 8, slot 16, pass 8,
sum_bits 8, round 32, bitmap 64, norm 32, count 16, epoch 8, code_bits 8, checksum 16. The checksum
is IPv4's, over the header and the path. With the flag PATH the 64 bits of a path follow, which
switches of one job send downwards, and to workers: of results, the bitmap of the worker's own
switch. Upwards the path is in the place of the bitmap. INDICES packets go on with indices of
code_bits each, the first in a byte's high bits; SUMS and PARTIAL packets with unsigned sums of
sum_bits each, in network order. With the flag REPEATS, INDICES end with the header: eight bytes in
the place of the bitmap stand for all, repeated; SUMS with it have those of these bytes alone.
The count of INDICES, where it is not 0, is that of the only child of the sender's switch that needs
the sums, plus 1, or NOBODY; SUMS with the flag BARE, which the others get, end with the header.

Rounds count modulo 2^32, and they are compared as serial numbers (RFC 1982).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import CODE_WIDTHS, SUM_WIDTHS

UDP_PORT = 18256
MAX_WORKERS = 64  # the bitmap has one bit a worker
VERSION = 2
SUMS_SIZE = 1024
LANES: dict[int, int] = {bits: 8 * SUMS_SIZE // bits for bits in SUM_WIDTHS}
"""The number of indices in a packet, by the width of sums."""
LANES_A_PASS = 128
"""The number of indices that the P4 program adds in a pass; in p4/include/blocks.p4, too."""
CODE_BITS = 4
"""The width of indices where nothing else is said, as of all jobs before there were others."""
STATUS_ANSWER, STATUS_CLOSED, STATUS_NORM = 1, 2, 4  # flags of STATUS; NORM: of the norm stage
PATH, UNCOUNTED = 8, 16  # flags: there is a path; the receiver's rack is not in the result
DIRECT = 32  # flag of INDICES, where jobs share memory: sent again, so that no switch adds them
REPEATS = 64  # flag of INDICES and SUMS: the body is the first REPEATED bytes of indices, repeated
REPEATED = 8
BARE = 128  # flag of SUMS: another worker needs the sums, and this one has none of them
NOBODY = 255  # as the count of INDICES: the child that needs the sums is another switch's
PATH_SIZE = 8
ROUNDS = 2**32
EPOCHS = range(1, 256)
"""A job's epochs; 0 stands for none in a switch's registers."""
LIFE = 16
"""Epochs 16L to 16L + 15 are of one life of a job; in controller/plan.py, too."""
INFINITE_NORM = 0x7F800000  # bits of the least float32 without a sign that is no norm

_HEADER = struct.Struct(">BBBBHBBIQIHBBH")
HEADER_SIZE = _HEADER.size
SLOT_AT, ROUND_AT, BITMAP_AT, NORM_AT, COUNT_AT = 4, 8, 12, 20, 24  # where in the header
EPOCH_AT, CHECKSUM_AT = 26, 28


class Type(IntEnum):
    """The type of a packet."""

    NORM = 1  # from a worker: its norm
    NORM_RESULT = 2  # from the switch: the largest norm
    INDICES = 3  # from a worker: a chunk's indices
    SUMS = 4  # from the switch: a chunk's sums
    STRAGGLER = 5  # from the switch, to a sender in an earlier round: the slot's round
    PARTIAL = 6  # from a lower switch: sums of its workers
    STATUS = 7  # from a worker: a slot's state? from the switch, with STATUS_ANSWER: its state
    EPOCH = 8  # from the switch, to a sender of another epoch: the job's
    QUESTION = 9  # from a lower switch: the result, if it is there


_TYPES: dict[int, Type] = {int(kind): kind for kind in Type}
UPWARDS = (Type.NORM, Type.INDICES, Type.PARTIAL, Type.QUESTION)
"""The types that are sent to a parent."""


class WireError(ValueError):
    """A packet that does not follow the format; the message says where."""


@dataclass(frozen=True, slots=True)
class Header:
    """The aggregation header. count: in results, how many workers were summed; worker is 0 there.
    Of INDICES: who alone needs the sums.

    pack() computes the checksum."""

    type: Type
    job: int
    worker: int
    slot: int
    round: int
    sum_bits: int
    norm: int = 0  # float32 bits
    bitmap: int = 0
    flags: int = 0
    passed: int = 0  # the header's "pass"
    count: int = 0
    epoch: int = EPOCHS[0]
    code_bits: int = CODE_BITS
    path: int = 0  # behind the header, with the flag PATH, downwards

    def pack(self) -> bytes:
        """Return the 30 bytes, and the path's; WireError if a field does not fit."""
        try:
            header = _HEADER.pack(
                VERSION << 4 | self.type,
                self.flags,
                self.job,
                self.worker,
                self.slot,
                self.passed,
                self.sum_bits,
                self.round,
                self.bitmap,
                self.norm,
                self.count,
                self.epoch,
                self.code_bits,
                0,
            )
            path = self.path.to_bytes(header_size(header) - HEADER_SIZE, "big")
        except (struct.error, OverflowError) as error:
            raise WireError(f"{self}: {error}") from error
        return header[:CHECKSUM_AT] + checksum(header + path).to_bytes(2, "big") + path


def checksum(header: bytes) -> int:
    """Return the internet checksum of a header and its path: that of its fields where its own is 0,
    and 0 where it is right."""
    total = sum(struct.unpack_from(f">{header_size(header) // 2}H", header))
    return 0xFFFF - (total % 0xFFFF or 0xFFFF)


def header_size(packet: bytes) -> int:
    """Return the number of bytes before a packet's body, by its first two: the header's, and the
    path's where one follows."""
    follows = packet[1] & PATH and packet[0] & 15 not in UPWARDS
    return HEADER_SIZE + (PATH_SIZE if follows else 0)


def place(number: int, slots: int) -> tuple[int, int]:
    """Return the slot of a job's chunk and the slot's round, as in packets."""
    return number % slots, (number // slots + 1) % ROUNDS


def ahead(round: int, other: int) -> int:
    """Return how many rounds one is later than another, as a signed number of 32 bits."""
    return (round - other + ROUNDS // 2) % ROUNDS - ROUNDS // 2


def lives_ahead(epoch: int, other: int) -> int:
    """Return how many lives of a job one epoch is later than another, from -8 to 7."""
    lives = 256 // LIFE
    return (epoch // LIFE - other // LIFE + lives // 2) % lives - lives // 2


def parse(payload: bytes) -> tuple[Header, bytes]:
    """Return header and body of a UDP payload; WireError names the wrong field."""
    kind, fields = _checked(payload)
    _, flags, job, worker, slot, passed, sum_bits, round, bitmap, norm = fields[:10]
    count, epoch, code_bits, _ = fields[10:]
    start = header_size(payload)
    path, body = int.from_bytes(payload[HEADER_SIZE:start], "big"), payload[start:]
    if flags & REPEATS and (whole := body_size(kind, sum_bits, code_bits)):
        unit = body or payload[BITMAP_AT : BITMAP_AT + REPEATED]
        body = unit * (whole // len(unit))
    place = (kind, job, worker, slot, round, sum_bits, norm, bitmap, flags, passed)
    return Header(*place, count, epoch, code_bits, path), body


def identity(payload: bytes) -> tuple[Type, int, int, int]:
    """Return type, job, round and slot of a UDP payload; WireError where parse() raises it."""
    kind, fields = _checked(payload)
    return kind, fields[2], fields[7], fields[4]


def _checked(payload: bytes) -> tuple[Type, tuple[int, ...]]:
    """Return type and fields of a UDP payload; WireError names the wrong one."""
    if payload and payload[0] >> 4 != VERSION:
        raise WireError(f"version {payload[0] >> 4}, known is {VERSION}")
    start = header_size(payload) if len(payload) > 1 else HEADER_SIZE
    if len(payload) < start:
        raise WireError(f"{len(payload)} bytes, the header alone takes {start}")
    if checksum(payload):
        raise WireError("the header's checksum is wrong: it was damaged on the way")
    fields = _HEADER.unpack_from(payload)
    first, flags, sum_bits, code_bits = fields[0], fields[1], fields[6], fields[12]
    if (kind := _TYPES.get(first & 15)) is None:
        raise WireError(f"type {first & 15}, known are 1 to {max(Type)}")
    if sum_bits not in LANES:
        raise WireError(f"sum_bits {sum_bits}, known are {', '.join(map(str, LANES))}")
    if code_bits not in CODE_WIDTHS:
        raise WireError(f"code_bits {code_bits}, known are {', '.join(map(str, CODE_WIDTHS))}")
    size, expected = len(payload) - start, body_size(kind, sum_bits, code_bits, flags)
    if size != expected:
        raise WireError(f"{kind.name}: {size} bytes after the header, expected {expected}")
    return kind, fields


def passes(sum_bits: int) -> int:
    """Return how often a packet of indices passes through the switch's pipeline."""
    return LANES[sum_bits] // LANES_A_PASS


def body_size(kind: Type, sum_bits: int, code_bits: int, flags: int = 0) -> int:
    """Return the number of bytes after the header."""
    if kind is Type.INDICES:
        return 0 if flags & REPEATS else LANES[sum_bits] * code_bits // 8
    if kind is Type.SUMS and flags & BARE:
        return 0
    if kind is Type.SUMS and flags & REPEATS:
        return REPEATED * sum_bits // code_bits
    return SUMS_SIZE if kind in (Type.SUMS, Type.PARTIAL) else 0


def pack_indices(indices: npt.NDArray[np.uint8], sum_bits: int, code_bits: int) -> bytes:
    """Pack at most LANES[sum_bits] indices below 2^code_bits, uint8, as an INDICES body padded
    with 0."""
    fields = np.zeros(LANES[sum_bits], np.uint8)
    fields[: indices.size] = indices
    places = _places(code_bits)
    joined = np.bitwise_or.reduce(fields.reshape(-1, places.size) << places, axis=1)
    return bytes(joined)


def unpack_indices(body: bytes, code_bits: int) -> npt.NDArray[np.uint8]:
    """Unpack an INDICES body: uint8, 8 / code_bits for each byte."""
    fields = np.frombuffer(body, np.uint8)[:, None] >> _places(code_bits)
    return (fields & np.uint8((1 << code_bits) - 1)).ravel()


def pack_sums(sums: npt.NDArray[np.integer[Any]], sum_bits: int) -> bytes:
    """Pack LANES[sum_bits] sums as a SUMS body."""
    return sums.astype(_sums_dtype(sum_bits)).tobytes()


def unpack_sums(body: bytes, sum_bits: int) -> npt.NDArray[np.integer[Any]]:
    """Unpack a SUMS body: LANES[sum_bits] unsigned sums, big-endian in memory."""
    return np.frombuffer(body, _sums_dtype(sum_bits))


def norm_bits(norm: float | np.float32) -> int:
    """Return the bits of a float32. Of numbers without a sign the larger has the larger bits."""
    return int(np.float32(norm).view(np.uint32))


def norm_value(bits: int) -> np.float32:
    """Return the float32 of these bits: the inverse of norm_bits()."""
    return np.uint32(bits).view(np.float32)


def is_norm(bits: int) -> bool:
    """Return whether bits are a finite float32 without a sign, all that the switch compares."""
    return bits < INFINITE_NORM


def _places(code_bits: int) -> npt.NDArray[np.uint8]:
    """Return by how much the indices in a byte are shifted."""
    return np.arange(8 - code_bits, -1, -code_bits).astype(np.uint8)


def _sums_dtype(sum_bits: int) -> str:
    return f">u{sum_bits // 8}"
