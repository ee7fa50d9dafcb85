"""The hash and checksum algorithms of v1model's and PSA's enumerations, over bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from gradplane.switch.runtime.fixed_crcs import CRC8, CRC16, CRC64, rows_of

Hash = Callable[[bytes], int]


def csum16(data: bytes) -> int:
    """Return the internet checksum (RFC 1071): the complement of the sum of 16-bit words.

    An odd last byte counts as the high half of a word.
    """
    value = int.from_bytes(data, "big") << (8 if len(data) % 2 else 0)
    return folded(value) ^ 0xFFFF


def folded(value: int) -> int:
    """Return the ones' complement sum of a number's 16-bit words: 0 for 0 only."""
    # 2^16 = 1 modulo 65535, so the number itself is congruent to the sum of its words.
    return value % 0xFFFF or (0xFFFF if value else 0)


def crc16(data: bytes, crc: int = 0) -> int:
    """Return CRC-16/ARC (polynomial 0x8005, reflected); `crc` is that of the data before."""
    table = rows_of(CRC16)
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def crc32(data: bytes) -> int:
    """Return the CRC of Ethernet and zlib."""
    return zlib.crc32(data)


def xor8(data: bytes) -> int:
    """Return the exclusive or of the bytes."""
    return _xor(data, 1)


def xor16(data: bytes) -> int:
    """Return the exclusive or of the 16-bit words, the last one padded with zeros."""
    return _xor(data, 2)


def xor32(data: bytes) -> int:
    """Return the exclusive or of the 32-bit words, the last one padded with zeros."""
    return _xor(data, 4)


def _xor(data: bytes, size: int) -> int:
    out = 0
    for i in range(0, len(data), size):
        out ^= int.from_bytes(data[i : i + size].ljust(size, b"\0"), "big")
    return out


def identity(data: bytes) -> int:
    """Return the first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


# In lower case, as v1model writes them; those at the end are PSA's and TNA's. The custom CRCs start
# out as the standard ones, as in simple_switch.
HASHES: dict[str, Hash] = {
    "crc32": crc32,
    "crc32_custom": crc32,
    "crc16": crc16,
    "crc16_custom": crc16,
    "identity": identity,
    "csum16": csum16,
    "xor16": xor16,
    "ones_complement16": csum16,
    "target_default": crc32,
    "crc8": CRC8,
    "crc64": CRC64,
    "xor8": xor8,
    "xor32": xor32,
}


def pack_bits(parts: list[tuple[int, int]]) -> bytes:
    """Concatenate (value, width) pairs, most significant bit first; pad the end with zeros."""
    value = total = 0
    for part, width in parts:
        value = value << width | part & ((1 << width) - 1)
        total += width
    pad = -total % 8
    return (value << pad).to_bytes((total + pad) // 8, "big")


# -- checksums in steps -------------------------------------------------------------------------


def _identity_state(data: bytes, state: int) -> int:
    return (state << 8 * len(data) | int.from_bytes(data, "big")) & 0xFFFF_FFFF_FFFF_FFFF


def add16(data: bytes, state: int) -> int:
    """Add 16-bit words to a ones' complement sum; an odd last byte is a high half."""
    return folded(state + (int.from_bytes(data, "big") << (8 if len(data) % 2 else 0)))


def subtract16(data: bytes, state: int) -> int:
    """Add the complements of 16-bit words to a ones' complement sum."""
    words = (len(data) + 1) // 2
    ones = (1 << 16 * words) - 1
    return folded(state + (ones ^ int.from_bytes(data.ljust(2 * words, b"\0"), "big")))


# Functions that add data to a checksum's state, which is 0 at the start. The identity of more than
# eight bytes keeps the last eight.
STEPS: dict[str, Callable[[bytes, int], int]] = {
    "crc32": zlib.crc32,
    "crc32_custom": zlib.crc32,
    "crc16": crc16,
    "crc16_custom": crc16,
    "identity": _identity_state,
    "ones_complement16": add16,
    "target_default": zlib.crc32,
}


def checksum_of(algorithm: str, state: int) -> int:
    """Return the checksum for a state."""
    return state ^ 0xFFFF if algorithm == "ones_complement16" else state
