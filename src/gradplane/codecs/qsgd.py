"""QSGD (Alistarh et al., NeurIPS 2017): stochastic rounding to `levels` levels of the norm.

The vector is cut into buckets. In a bucket of norm r, |x| becomes r l / s for one of the two
levels l of 0 ... s around s |x| / r, the upper with the probability that makes it unbiased.
"""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bits, _hadamard, _random
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_int
from gradplane.codecs._bits import Codes

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)
_sum_squares = _hadamard._sum_squares
_MAX_LEVELS = 2**15 - 1


@njit(cache=True, nogil=True)
def _norms(x, bucket, out):  # type: ignore[no-untyped-def]
    for b in range(out.size):
        out[b] = np.sqrt(_sum_squares(x[b * bucket : (b + 1) * bucket]))


@njit(cache=True, nogil=True)
def _quantise(x, norms, bucket, levels, key, out):  # type: ignore[no-untyped-def]
    """Quantise to the level times two, plus 1 if negative."""
    for b in range(norms.size):
        scale = levels / np.float64(norms[b]) if norms[b] > 0 else 0.0
        for i in range(b * bucket, min((b + 1) * bucket, x.size)):
            place = min(abs(np.float64(x[i])) * scale, np.float64(levels))
            word = _mix(key + np.uint64(i + 1) * _GOLDEN)
            u = np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53
            low = np.int64(place)
            level = low + (u < place - low)
            out[i] = 2 * level + (level > 0 and x[i] < 0)


@njit(cache=True, nogil=True)
def _values(codes, norms, bucket, levels, out):  # type: ignore[no-untyped-def]
    for b in range(norms.size):
        step = np.float64(norms[b]) / levels
        for i in range(b * bucket, min((b + 1) * bucket, out.size)):
            magnitude = np.float64(codes[i] >> 1) * step
            out[i] = -magnitude if codes[i] & 1 else magnitude


@dataclass(frozen=True)
class QSGD(Codec):
    """Rounds each value to one of s levels (besides 0) of its bucket's norm, stochastically.

    1 <= levels <= 32767 (s), 1 <= bucket <= 2^31 values that share a norm.
    Bytes: the buckets' norms (float32), then for each value a field of 1 + ceil(log2(s + 1)) bits,
    no bits between them, the first in the lowest bits: sign in the lowest bit, then the level. The
    width is fixed where the paper has Elias codes, which are shorter only while most levels are 0.
    Unbiased; E|x - y|^2 <= min(d / s^2, sqrt(d) / s) |x|^2 in a bucket of d values (Lemma 3.1).
    """

    levels: int = 7
    bucket: int = 512

    def __post_init__(self) -> None:
        check_int("levels", self.levels, 1, _MAX_LEVELS)
        check_int("bucket", self.bucket, 1, 2**31)

    @property
    def bits(self) -> int:
        """The number of bits per value."""
        return 1 + self.levels.bit_length()

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return 4 * self._buckets(n) + _bits.packed_size(n, self.bits)

    def _buckets(self, n: int) -> int:
        return -(-n // self.bucket)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        norms = self._norms(x)
        codes = np.empty(x.size, np.uint8 if self.bits <= 8 else np.uint16)
        key = np.uint64(_random.key(context.seed, context.worker, "rounding"))
        _quantise(x, norms, self.bucket, self.levels, key, codes)
        return norms.astype("<f4").tobytes() + _bits.pack(codes, self.bits), context.state

    def _norms(self, x: Floats) -> Floats:
        norms = np.empty(self._buckets(x.size))
        _norms(x, self.bucket, norms)
        if norms.size and norms.max() > float(np.finfo(np.float32).max):
            b = int(norms.argmax())
            raise CodecError(
                f"the norm of bucket {b} is {norms[b]:.3g}, beyond float32: scale the vector down"
            )
        return norms.astype(np.float32)

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        norms = reader.array("<f4", self._buckets(n), f"{self._buckets(n)} norms")
        fields = reader.array("u1", _bits.packed_size(n, self.bits), f"codes of {n} values")
        reader.end()
        codes = _bits.unpack(fields, n, self.bits)
        self._check(norms, codes)
        out = np.empty(n, np.float32)
        _values(codes, norms, self.bucket, self.levels, out)
        return out

    def _check(self, norms: Floats, codes: Codes) -> None:
        for b in np.flatnonzero(~((norms >= 0) & (norms < np.inf)))[:1]:
            raise CodecError(f"norm {norms[b]} of bucket {b} is not a magnitude")
        for i in np.flatnonzero((codes >> 1 > self.levels) | (codes == 1))[:1]:
            raise CodecError(f"code {codes[i]} at index {i} is none of {self.levels} levels")
