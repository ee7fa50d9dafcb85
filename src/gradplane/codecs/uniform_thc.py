"""Uniform THC (NSDI 2024, Algorithm 1): b-bit stochastic quantisation on evenly spaced values.

The paper exchanges minimum and maximum. The network's norm stage reduces one non-negative float,
so the range here is symmetric, [-M, M]. Without rotation M is the largest magnitude over all
workers and nothing is clamped. With rotation (sections 5.1, 5.3) M = t_p / sqrt(d) * l, from norms
as in THC.
"""

import functools
from dataclasses import dataclass

from gradplane.codecs._base import CodecError, Table, check_int
from gradplane.codecs._grid import GridCodec
from gradplane.codecs._table import check_fraction, threshold


@dataclass(frozen=True)
class UniformTHC(GridCodec):
    """Codes of 1 to 8 bits on evenly spaced values; the table is the identity. p counts if rotated.

    Bytes, per partition: M (float32) or, rotated, l (float32) and rotation seed (uint32); codes.
    version: of the partitions, if rotated, and of the fields; see THC.
    """

    bits: int = 4
    rotate: bool = True
    p: float = 1 / 32
    version: int = 3

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 1, 8)
        check_fraction(self.p)
        check_int("version", self.version, 1, 3)
        if not isinstance(self.rotate, bool):
            raise CodecError(f"rotate must be True or False, got {self.rotate!r}")

    @property
    def granularity(self) -> int:
        """The number of steps of the grid, 2^bits - 1."""
        return (1 << self.bits) - 1

    @functools.cached_property
    def threshold(self) -> float:
        """The threshold: t_p if rotated, else 1, as the range ends at the largest magnitude."""
        return threshold(self.p) if self.rotate else 1.0

    @functools.cached_property
    def table(self) -> Table:
        """The identity: 0, 1, ..., 2^bits - 1."""
        return tuple(range(2**self.bits))
