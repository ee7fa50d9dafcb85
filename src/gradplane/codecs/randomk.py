"""Random-k sparsification: k values at random positions that all workers share.

Wangni et al. (NeurIPS 2018) for the unbiased form, Stich et al. (NeurIPS 2018) for the other, with
memory. The positions follow from the seed, so no index is sent, and a server may add the workers'
values place by place; they are floats, which a switch cannot add.
"""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _random, _select
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_vector
from gradplane.codecs._select import Indices, largest

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _draw(key, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = _mix(key + np.uint64(i + 1) * _GOLDEN) >> np.uint64(32)


@dataclass(frozen=True)
class RandomK(Codec):
    """Sends k values, or if k is None round(fraction * n) and at least one; the rest decode to 0.

    0 < fraction <= 1, k >= 1 or None. Position i has the upper 32 bits of word i of its stream as
    its lot; the k highest lots win, of equal ones those of lowest index.
    Bytes: key of that stream (uint64, from the seed), values at ascending positions (float32).
    unbiased=False: values as they are; E|x - y|^2 = (1 - k / n) |x|^2, made for ErrorFeedback.
    unbiased=True: values times n / k; E y = x and E|x - y|^2 = (n / k - 1) |x|^2.
    """

    fraction: float = 0.1
    k: int | None = None
    unbiased: bool = False

    def __post_init__(self) -> None:
        _select.check_density(self.fraction, self.k)
        if not isinstance(self.unbiased, bool):
            raise CodecError(f"unbiased must be True or False, got {self.unbiased!r}")

    def max_size(self, n: int) -> int:
        """Return 8 bytes, and 4 a value that is sent."""
        return 8 + 4 * self._kept(n)

    def _kept(self, n: int) -> int:
        return _select.kept(n, self.fraction, self.k)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        key = _random.key(context.seed, "positions")
        values = x[_positions(key, x.size, self._kept(x.size))]
        if self.unbiased:
            values = _scaled(values, x.size)
        return key.to_bytes(8, "little") + values.astype("<f4").tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        key = int(reader.array("<u8", 1, "key of the positions")[0])
        values = reader.array("<f4", self._kept(n), f"{self._kept(n)} values")
        reader.end()
        out = np.zeros(n, np.float32)
        out[_positions(key, n, values.size)] = check_vector(values.astype(np.float32))
        return out


def _positions(key: int, n: int, k: int) -> Indices:
    lots = np.empty(n, np.uint32)
    _draw(np.uint64(key), lots)
    return largest(lots, k)


def _scaled(values: Floats, n: int) -> Floats:
    """Return values * n / k; CodecError if one of them is beyond float32."""
    with np.errstate(over="ignore"):
        scaled = (values * np.float64(n / max(values.size, 1))).astype(np.float32)
    if not np.isfinite(scaled).all():
        largest = np.abs(values).max()
        raise CodecError(f"{largest} times n / k = {n / values.size} is beyond float32")
    return scaled
