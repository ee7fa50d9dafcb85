"""Aggregation packets: the header after UDP port 18256, indices and sums.

Header, 24 bytes, network order: version 4 bits, type 4, flags 8, job 8, worker 8, slot 16, pass 8,
sum_bits 8, round 32, bitmap 64, norm 32. INDICES packets go on with 4-bit indices, the first of
two in a byte's high half; SUMS packets with unsigned sums of sum_bits each, in network order.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import SUM_WIDTHS

UDP_PORT = 18256
MAX_WORKERS = 64  # the bitmap has one bit a worker
VERSION = 1
SUMS_SIZE = 1024
LANES: dict[int, int] = {bits: 8 * SUMS_SIZE // bits for bits in SUM_WIDTHS}
"""The number of indices in a packet, by the width of sums."""
LANES_A_PASS = 128
"""The number of indices that the P4 program adds in a pass; in p4/include/blocks.p4, too."""
STATUS_ANSWER, STATUS_CLOSED, STATUS_NORM = 1, 2, 4  # flags of STATUS; NORM: of the norm stage
MAX_ROUND = 2**32 - 1
INFINITE_NORM = 0x7F800000  # bits of the least float32 without a sign that is no norm

_HEADER = struct.Struct(">BBBBHBBIQI")
HEADER_SIZE = _HEADER.size
SLOT_AT, ROUND_AT = 4, 8  # where in the header


class Type(IntEnum):
    """The type of a packet."""

    NORM = 1  # from a worker: its norm
    NORM_RESULT = 2  # from the switch: the largest norm
    INDICES = 3  # from a worker: a chunk's indices
    SUMS = 4  # from the switch: a chunk's sums
    STRAGGLER = 5  # from the switch, to a sender in an earlier round: the slot's round
    PARTIAL = 6  # from a lower switch: sums of its workers
    STATUS = 7  # from a worker: a slot's state? from the switch, with STATUS_ANSWER: its state


class WireError(ValueError):
    """A packet that does not follow the format; the message says where."""


@dataclass(frozen=True, slots=True)
class Header:
    """The aggregation header. In results `worker` is how many workers were summed."""

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

    def pack(self) -> bytes:
        """Return the 24 bytes; WireError if a field does not fit."""
        try:
            return _HEADER.pack(
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
            )
        except struct.error as error:
            raise WireError(f"{self}: {error}") from error


def parse(payload: bytes) -> tuple[Header, bytes]:
    """Return header and body of a UDP payload; WireError names the wrong field."""
    if len(payload) < HEADER_SIZE:
        raise WireError(f"{len(payload)} bytes, the header alone takes {HEADER_SIZE}")
    fields = _HEADER.unpack_from(payload)
    first, flags, job, worker, slot, passed, sum_bits, round, bitmap, norm = fields
    if first >> 4 != VERSION:
        raise WireError(f"version {first >> 4}, known is {VERSION}")
    if first & 15 not in set(Type):
        raise WireError(f"type {first & 15}, known are 1 to {max(Type)}")
    if sum_bits not in LANES:
        raise WireError(f"sum_bits {sum_bits}, known are {' and '.join(map(str, LANES))}")
    kind = Type(first & 15)
    body = payload[HEADER_SIZE:]
    if len(body) != body_size(kind, sum_bits):
        expected = body_size(kind, sum_bits)
        raise WireError(f"{kind.name}: {len(body)} bytes after the header, expected {expected}")
    return Header(kind, job, worker, slot, round, sum_bits, norm, bitmap, flags, passed), body


def passes(sum_bits: int) -> int:
    """Return how often a packet of indices passes through the switch's pipeline."""
    return LANES[sum_bits] // LANES_A_PASS


def body_size(kind: Type, sum_bits: int) -> int:
    """Return the number of bytes after the header."""
    if kind is Type.INDICES:
        return LANES[sum_bits] // 2
    return SUMS_SIZE if kind in (Type.SUMS, Type.PARTIAL) else 0


def pack_indices(indices: npt.NDArray[np.uint8], sum_bits: int) -> bytes:
    """Pack at most LANES[sum_bits] indices below 16, uint8, as an INDICES body padded with 0."""
    fields = np.zeros(LANES[sum_bits], np.uint8)
    fields[: indices.size] = indices
    return (fields[0::2] << 4 | fields[1::2]).tobytes()


def unpack_indices(body: bytes) -> npt.NDArray[np.uint8]:
    """Unpack an INDICES body: uint8, two for each byte."""
    pairs = np.frombuffer(body, np.uint8)
    return np.stack((pairs >> 4, pairs & 15), axis=1).ravel()


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


def _sums_dtype(sum_bits: int) -> str:
    return f">u{sum_bits // 8}"
