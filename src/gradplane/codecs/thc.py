"""THC, tensor homomorphic compression (NSDI 2024, Algorithm 3).

Each partition is rotated by the randomized Hadamard transform, clamped to [-M, M], where
M = t_p / sqrt(d) * l with l the workers' largest norm, and rounded stochastically to 2^b of g + 1
evenly spaced values. Workers send b-bit indices; the network looks them up in T_{b,g,p} and sums;
decode_sum() turns the sums into the workers' mean.
"""

import functools
from dataclasses import dataclass

from gradplane.codecs._base import Table, check_int
from gradplane.codecs._grid import MAX_GRANULARITY, GridCodec
from gradplane.codecs._table import check_fraction, optimal_table, threshold


@dataclass(frozen=True)
class THC(GridCodec):
    """b-bit codes on a grid of `granularity` steps; about a fraction p of values falls outside it.

    1 <= bits <= 8, 2^bits - 1 <= granularity <= 4095, 0 < p < 1. The shared statistic is the norm
    of each partition. Bytes, per partition: l (float32), rotation seed (uint32), indices in fields
    of 1, 2, 4 or 8 bits.
    version: 1 pads the last partition to a power of two, 2 cuts it into powers of two of at least
    1024 values and pads less than 1024; both have fields of at least 4 bits. 3 cuts like 2.
    Clamping is biased: wrap it in ErrorFeedback for training.
    """

    bits: int = 4
    granularity: int = 30
    p: float = 1 / 32
    version: int = 3

    rotate = True

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 1, 8)
        check_int("granularity", self.granularity, 2**self.bits - 1, MAX_GRANULARITY)
        check_fraction(self.p)
        check_int("version", self.version, 1, 3)

    @functools.cached_property
    def threshold(self) -> float:
        """The threshold t_p: a standard normal value exceeds it in magnitude with probability p."""
        return threshold(self.p)

    @functools.cached_property
    def table(self) -> Table:
        """The optimal lookup table T_{b,g,p}."""
        return optimal_table(self.bits, self.granularity, self.p)
