"""Sparsification with a bitmap ("5% sparsification": 3LC, section 4.2): the largest values exact.

The threshold comes from a sample (Aji and Heafield 2017), so that no long vector is sorted.
"""

import math
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import _bitmap, _random
from gradplane.codecs._base import (
    Codec,
    Context,
    Floats,
    Reader,
    State,
    check_int,
    check_share,
    check_vector,
)


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
        """Return the bytes of the bitmap and every value: equal magnitudes are all sent."""
        return _bitmap.size(n) + 4 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        bitmap = np.empty(_bitmap.size(x.size), np.uint8)
        out = np.empty(x.size + 1, np.float32)
        # From 1 on, so that zeros are not sent.
        threshold = np.uint32(max(self._threshold(x, context.seed, context.worker), 1))
        count = _bitmap.gather(x, x.view(np.uint32), threshold, bitmap, out)
        return bitmap.tobytes() + out[:count].astype("<f4").tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        bitmap = _bitmap.read(reader, n)
        out = np.empty(n, np.float32)
        count = int(np.bitwise_count(bitmap).sum())
        values = reader.array("<f4", count, f"{count} values")
        reader.end()
        _bitmap.scatter(bitmap, np.append(values, np.float32(0)), out)
        return check_vector(out)

    def _threshold(self, x: Floats, seed: int, worker: int) -> int:
        """Return the threshold's bits, which are ordered as magnitudes are."""
        n = x.size
        if self.sample < n:
            words = _random.words(_random.key(seed, worker, "sample"), 0, self.sample)
            # the word's upper half as a fraction of n
            x = x[((words >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)]
        magnitudes = x.view(np.uint32) & np.uint32(0x7FFFFFFF)
        rank = math.ceil(self.fraction * magnitudes.size)
        return int(np.partition(magnitudes, -rank)[-rank]) if n else 0
