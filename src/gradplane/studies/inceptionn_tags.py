"""INCEPTIONN's tag mix (Table III), and its ratio and error compared with plain truncation.

Table III's numbers are not in our copy of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import _bursts
from gradplane.codecs._base import Codec, Floats, check_vector
from gradplane.codecs.inceptionn import Inceptionn
from gradplane.codecs.truncation import Truncation

BOUNDS = (10, 8, 6)
DROPS = (8, 16, 24)
WIDTHS = (2, 10, 18, 34)  # bits of a value with tag 0, 1, 2, 3, including the tag


@dataclass(frozen=True)
class Mix:
    """The shares of the values with tag 0, 1, 2 and 3, which add up to 1."""

    bound: int
    shares: tuple[float, ...]

    @property
    def bits(self) -> float:
        """The mean number of bits per value, tags included."""
        return float(np.dot(self.shares, WIDTHS))

    @property
    def ratio(self) -> float:
        """The compression ratio: 32 bits over `bits`."""
        return 32 / self.bits


@dataclass(frozen=True)
class CodecEffect:
    """The effect of a codec on a gradient: ratio of bytes, largest error, NMSE."""

    name: str
    parameter: int
    ratio: float
    largest: float
    nmse: float


def table3(gradient: Floats, bounds: Sequence[int] = BOUNDS) -> list[Mix]:
    """Return the tag mix of float32[n], n > 0, for each error bound 2^-k."""
    exponents = (check_vector(gradient).view(np.uint32) >> np.uint32(23)) & np.uint32(255)
    rows = []
    for bound in bounds:
        low, middle = _bursts.thresholds(Inceptionn(bound).bound)
        tags = np.searchsorted((low, middle, 127), exponents, side="right")
        counts = np.bincount(tags, minlength=4) / exponents.size
        rows.append(Mix(bound, tuple(counts.tolist())))
    return rows


def against_truncation(
    gradient: Floats, bounds: Sequence[int] = BOUNDS, drops: Sequence[int] = DROPS
) -> list[CodecEffect]:
    """Return ratio and error on float32[n], n > 0, of each truncation, then of each bound."""
    truncated = [_error(Truncation(drop), drop, gradient) for drop in drops]
    return truncated + [_error(Inceptionn(bound), bound, gradient) for bound in bounds]


def _error(codec: Codec, parameter: int, x: Floats) -> CodecEffect:
    data, _ = codec.encode(x)
    error = codec.decode(data, x.size).astype(np.float64) - x
    power = float(np.dot(x.astype(np.float64), x)) or 1.0
    largest, nmse = float(np.abs(error).max()), float(np.dot(error, error)) / power
    return CodecEffect(codec.name, parameter, x.nbytes / len(data), largest, nmse)
