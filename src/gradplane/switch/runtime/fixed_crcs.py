"""CRCs of up to 64 bits, whose parameters a program fixes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

_BITS, _MASK = 64, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Crc:
    """A CRC of `width` bits.

    polynomial: without its highest bit. reflected: bytes are taken from their lowest bit on, and
    the remainder is read from its lowest bit. (R. Williams, A Painless Guide to CRC Error Detection
    Algorithms, 1993.) Raises ValueError for what is no such CRC.
    """

    width: int
    polynomial: int
    initial: int = 0
    final: int = 0
    reflected: bool = False

    def __post_init__(self) -> None:
        if type(self.width) is not int or not 0 < self.width <= _BITS:
            raise ValueError(f"width {self.width!r} is not within 1 to {_BITS}")
        for name in ("polynomial", "initial", "final"):
            value = getattr(self, name)
            if type(value) is not int or value < 0 or value >> self.width:
                raise ValueError(f"{name} {value!r} does not fit {self.width} bits")
        if type(self.reflected) is not bool:
            raise ValueError(f"reflected {self.reflected!r} is neither true nor false")

    def __call__(self, data: bytes) -> int:
        rows, remainder = rows_of(self), self.start
        if self.reflected:
            for byte in data:
                remainder = rows[(remainder ^ byte) & 0xFF] ^ (remainder >> 8)
        else:
            for byte in data:
                remainder = rows[remainder >> 56 ^ byte] ^ (remainder << 8 & _MASK)
            remainder >>= self.shift
        return remainder ^ self.final

    @property
    def shift(self) -> int:
        """How far the remainder is above bit 0, so that all widths are computed alike."""
        return 0 if self.reflected else _BITS - self.width

    @property
    def start(self) -> int:
        if self.reflected:
            return reversed_bits(self.initial, self.width)
        return self.initial << self.shift


@cache
def rows_of(crc: Crc) -> tuple[int, ...]:
    """Return the remainders of the 256 bytes."""
    if crc.reflected:
        polynomial = reversed_bits(crc.polynomial, crc.width)
        return tuple(_reflected_row(byte, polynomial) for byte in range(256))
    return remainders(crc.polynomial << crc.shift)


def remainders(polynomial: int) -> tuple[int, ...]:
    """Return the remainders of the 256 bytes; they and the polynomial fill the upper bits of 64."""
    return tuple(_row(byte << 56, polynomial) for byte in range(256))


def _reflected_row(row: int, polynomial: int) -> int:
    for _ in range(8):
        row = row >> 1 ^ (polynomial if row & 1 else 0)
    return row


def _row(row: int, polynomial: int) -> int:
    for _ in range(8):
        row = (row << 1 & _MASK) ^ (polynomial if row >> 63 else 0)
    return row


def reversed_bits(value: int, width: int) -> int:
    return int(f"{value & (1 << width) - 1:0{width}b}"[::-1], 2)


CRC8 = Crc(8, 0x07)
CRC16 = Crc(16, 0x8005, reflected=True)
CRC32 = Crc(32, 0x04C11DB7, 0xFFFF_FFFF, 0xFFFF_FFFF, reflected=True)
CRC64 = Crc(64, 0x42F0E1EBA9EA3693)
