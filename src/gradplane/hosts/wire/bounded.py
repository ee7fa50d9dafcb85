"""Packets of bounded transport (OptiReduce): values between workers that nobody sends again.

Header, 32 bytes, network order: magic 8, type 8, flags 8, job 8, worker 8, zero 8, slot 16, round
32, limit 32, bitmap 64, checksum 32, zero 32; then SIZE bytes of values. A PART has a worker's
values of a chunk, for the worker that sums it; a MEAN has that worker's mean of those in the
bitmap. limit: the sender's last estimate of how long this type takes to come, us. TAIL marks the
last packets of a worker's block. The checksum is the CRC-32 of all other bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gradplane.hosts.wire.payloads import Bytes, Payloads

MAGIC = 0xB7
SIZE = 1024
"""The bytes of values in a packet, as in the authors' code."""
TAIL = 1

HEADER = np.dtype(
    [("magic", "u1"), ("type", "u1"), ("flags", "u1"), ("job", "u1"), ("worker", "u1")]
    + [("zero", "u1"), ("slot", ">u2"), ("round", ">u4"), ("limit", ">u4"), ("bitmap", ">u8")]
    + [("checksum", ">u4"), ("zeros", ">u4")]
)
_CHECKSUM_AT = 24


class Type(IntEnum):
    """The type of a packet."""

    PART = 1
    MEAN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Packets that arrived whole. header: HEADER[n]. values: uint8[n, SIZE]."""

    header: npt.NDArray[np.void]
    values: Bytes

    def __len__(self) -> int:
        return len(self.header)


def pack(header: npt.NDArray[np.void], values: Bytes) -> Payloads:
    """Return packets with these headers, whose checksums are computed, and values."""
    data = np.zeros((len(header), HEADER.itemsize + SIZE), np.uint8)
    data[:, : HEADER.itemsize] = header.view(np.uint8).reshape(len(header), -1)
    data[:, HEADER.itemsize :] = values
    for row in data:
        row[_CHECKSUM_AT : _CHECKSUM_AT + 4] = np.frombuffer(_checksum(row), np.uint8)
    return Payloads.equal(data)


def parse(payloads: Payloads) -> Packets:
    """Return the packets that are whole and of this format; the others are left out."""
    size = HEADER.itemsize + SIZE
    fits = [
        i
        for i, n in enumerate(payloads.sizes.tolist())
        if n == size and is_packet(payloads.data[i, :size])
    ]
    if not fits:
        return Packets(np.zeros(0, HEADER), np.zeros((0, SIZE), np.uint8))
    data = np.ascontiguousarray(payloads.data[fits, :size])
    header = data[:, : HEADER.itemsize].copy().view(HEADER).reshape(-1)
    return Packets(header, data[:, HEADER.itemsize :])


def is_packet(row: Bytes) -> bool:
    """Return whether the bytes of a payload are one of these packets, undamaged."""
    if row.size < HEADER.itemsize or row[0] != MAGIC or row[1] not in (1, 2):
        return False
    return row[_CHECKSUM_AT : _CHECKSUM_AT + 4].tobytes() == _checksum(row)


def payload_size(packets: Payloads) -> int:
    """Return the bytes of values in packets."""
    return packets.bytes_behind(HEADER.itemsize)


def _checksum(row: Bytes) -> bytes:
    data = row.tobytes()
    return zlib.crc32(data[_CHECKSUM_AT + 4 :], zlib.crc32(data[:_CHECKSUM_AT])).to_bytes(4, "big")
