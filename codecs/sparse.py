"""Sparsification with a bitmap ("5% sparsification": 3LC, section 4.2): the largest values exact.

The threshold comes from a sample (Aji and Heafield 2017), so that nothing long is sorted.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane.codecs import _random
from gradplane.codecs._base import Codec, Floats, State, check_int, check_vector
from gradplane.codecs._bitmap import read_bitmap, to_bitmap
from gradplane.codecs._params import check_share
from gradplane.codecs._reader import Reader


@dataclass(frozen=True)
class Sparse(Codec):
    """Sends, of all values but zeros, those of at least the threshold's magnitude.

    0 < fraction <= 1; the threshold is the ceil(fraction * size)-th largest magnitude of a sample:
    of all n values, or of `sample` (at least 1) random ones if that is fewer. So about that
    fraction is sent, ties as well. Biased: the paper accumulates what is not sent, here
    ErrorFeedback. Error of a value: 0, or its magnitude, which is below the threshold. Bytes:
    bitmap, then the values sent (float32).
    """

    fraction: float = 0.05
    sample: int = 2**14

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)
        check_int("sample", self.sample, 1)

    def max_size(self, n: int) -> int:
        """The bitmap and every value: equal magnitudes are all sent."""
        return -(-n // 8) + 4 * n

    def _encode(
        self, x: Floats, shared: Floats | None, seed: int, state: State, worker: int
    ) -> tuple[bytes, State]:
        # The magnitudes' bits are ordered as they are; from 1 on, so that zeros are not sent.
        magnitudes = x.view(np.uint32) & np.uint32(0x7FFFFFFF)
        large = magnitudes >= max(self._threshold(magnitudes, seed, worker), 1)
        return to_bitmap(large) + x[large].astype("<f4").tobytes(), state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader, out = Reader(data), np.zeros(n, np.float32)
        large = read_bitmap(reader, n)
        count = int(np.count_nonzero(large))
        out[large] = reader.array("<f4", count, f"{count} values")
        reader.end()
        return check_vector(out)

    def _threshold(self, magnitudes: npt.NDArray[np.uint32], seed: int, worker: int) -> int:
        n = magnitudes.size
        if self.sample < n:
            words = _random.words(_random.key(seed, worker, "sample"), 0, self.sample)
            # the word's upper half as a fraction of n
            magnitudes = magnitudes[((words >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)]
        rank = math.ceil(self.fraction * magnitudes.size)
        return int(np.partition(magnitudes, -rank)[-rank]) if n else 0
