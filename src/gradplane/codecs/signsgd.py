"""signSGD (Bernstein et al., ICML 2018): one bit a value, its sign; with a scale.

The paper sends signs alone and leaves their size to the learning rate. Here a vector of signs has
the size of the gradient it stands for: its scale is the mean magnitude, the best one in least
squares, and the workers share the largest of theirs. Counting signs in the network is summing
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bits
from gradplane.codecs._base import CodecError, Codes, Context, Floats, Partition, State
from gradplane.codecs._grid import Fields, GridCodec, Sums


@njit(cache=True, nogil=True)
def _sum_magnitudes(x):  # type: ignore[no-untyped-def]
    """Sum the magnitudes of float32 in float64, in one fixed order."""
    sums = np.zeros(8)
    whole = x.size - x.size % 8
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += abs(np.float64(x[i + j]))
    for i in range(whole, x.size):
        sums[i - whole] += abs(np.float64(x[i]))
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


@dataclass(frozen=True)
class SignSGD(GridCodec):
    """1-bit codes: 1 for x >= 0 (zeros count as positive), 0 for x < 0. In sums: 0 or 1.

    The shared statistic is l, the mean magnitude of each 2^20 values. decode() gives +l and -l.
    decode_sum() and merge() give l times the workers' mean sign, or, with vote=True, l times the
    sign of the majority, 0 for a tie: the paper's majority vote.
    Bytes, per partition: l (float32), codes of 1 bit, the first in the lowest.
    Deterministic and biased. Alone, |x - y|^2 = |x|_2^2 - |x|_1^2 / n, so never above |x|^2; use
    ErrorFeedback or efsignsgd for training that must converge like SGD.
    """

    vote: bool = False

    bits = 1
    granularity = 1
    rotate = False
    threshold = 1.0
    table = (0, 1)
    _fields: ClassVar[Fields] = _bits

    def __post_init__(self) -> None:
        if not isinstance(self.vote, bool):
            raise CodecError(f"vote must be True or False, got {self.vote!r}")

    def _codes(self, x: Floats, context: Context) -> tuple[Codes, State]:
        """Return the signs, which depend on neither scale nor seed."""
        return (x >= 0).view(np.uint8), context.state

    def decode_sum(
        self, sums: Sums, n: int, count: int | Sums, shared: Floats | None, seed: int = 0
    ) -> Floats:
        """Decode sums as the class says; see Codec.decode_sum."""
        if self.vote:
            self._check_sums(sums, n, count)
            sums, count = _elected(sums, np.asarray(count))
        return super().decode_sum(sums, n, count, shared, seed)

    @property
    def averages(self) -> bool:
        """False if the workers vote."""
        return not self.vote

    def merge(self, vectors: Sequence[Floats]) -> Floats:
        """Return the mean, or with vote=True the scale times the sign of the majority."""
        if not self.vote:
            return super().merge(vectors)
        signs = np.sign(sum(np.sign(vector, dtype=np.float32) for vector in vectors))
        scale: Floats = np.abs(vectors[0])  # that all share
        return signs * scale

    def _statistic(self, x: Floats, part: Partition) -> float:
        values = x[part.start : part.stop]
        return float(_sum_magnitudes(values)) / values.size


def _elected(sums: Sums, count: Any) -> tuple[Sums, Any]:
    """Return sums and counts of two voters who agree on the majority; they disagree on a tie."""
    wide = count.astype(np.int64)
    present = (wide > 0).astype(np.int64)
    return present * (1 + np.sign(2 * sums.astype(np.int64) - wide)), 2 * present
