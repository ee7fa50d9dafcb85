"""TernGrad (Wen et al., NeurIPS 2017): every value becomes -s, 0 or s.

s is the largest magnitude, after clipping if asked for; a value x becomes sign(x) s with
probability |x| / s, else 0. The workers share the largest s (the paper's scaler sharing), so their
codes -1, 0, 1, sent as 0, 1, 2, can be summed in the network.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from gradplane.codecs import _bits, _hadamard
from gradplane.codecs._base import Floats, Partition, check_positive
from gradplane.codecs._grid import Fields, GridCodec


@dataclass(frozen=True)
class TernGrad(GridCodec):
    """2-bit codes for -s, 0 and s, chosen stochastically; large values are clipped first.

    clip > 0: values are limited to clip x sigma, by default the paper's 2.5; None: no clipping.
    sigma is the root mean square: the paper takes gradients' mean to be 0. Shared
    statistic: s, one for each 2^20 values (the paper: one a layer).
    Bytes, per partition: s (float32), codes of 2 bits, the first in the lowest bits. 3 is no code.
    Unbiased but for clipping, to 2^-23 s by float32 rounding; the variance of a value is
    |x| (s - |x|), so NMSE is s |x|_1 / |x|_2^2 - 1. With clipping, wrap it in ErrorFeedback.
    """

    by_tensor = True

    clip: float | None = 2.5

    bits = 2
    granularity = 2
    rotate = False
    threshold = 1.0
    table = (0, 1, 2)
    _fields: ClassVar[Fields] = _bits

    def __post_init__(self) -> None:
        check_positive("clip", self.clip)

    def _statistic(self, x: Floats, part: Partition) -> float:
        largest = super()._statistic(x, part)
        if self.clip is None:
            return largest
        values = x[part.start : part.stop]
        return min(largest, self.clip * _hadamard.norm(values) / math.sqrt(values.size))
