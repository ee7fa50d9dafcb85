"""DynamiQ (Han et al., SIGCOMM 2026, arXiv 2602.08923v3): more bits where the sum is larger.

Section 3, of which we read a translation, and the authors' code for the levels' constants: workers
take the mean and the squared norm of each 256 values over all of them, give these 2, 4 or 8 bits
within a budget, subtract the mean, and add the rest round a ring, whose partial sums are encoded
again at each hop (_group_levels.py).
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Reader,
    Rounds,
    State,
    check_int,
    check_number,
    check_vector,
)
from gradplane.codecs._group_levels import GROUP, SUPER, GroupLevels
from gradplane.codecs.bfloat16 import BFloat16

WIDTHS = (2, 4, 8)
_META = 48 / SUPER + 8 / GROUP  # bits a value: mean, norm and largest magnitude, and the scale
_Masks = list[npt.NDArray[np.bool_]]


@njit(cache=True, nogil=True)
def _statistics(x, means, norms):  # type: ignore[no-untyped-def]
    """Write each 256 values' mean and squared norm, added in their order in float64."""
    for s in range(means.size):
        total, power = 0.0, 0.0
        stop = min((s + 1) * 256, x.size)
        for i in range(s * 256, stop):
            total += np.float64(x[i])
            power += np.float64(x[i]) * np.float64(x[i])
        means[s] = total / (stop - s * 256)
        norms[s] = min(power, 1e36)  # a sum over workers stays within float32


@dataclass(frozen=True)
class DynamiQ(Codec):
    """Sends `bits` bits a value, scales and statistics included, 2.6875 <= bits <= 8.6875.

    Unbiased. Workers reduce in four rounds: means and squared norms of each 256 values (bfloat16,
    which travel as a vector of all means, then all norms; norms above 1e36 count as that), then the
    values less these means that have 2, 4 and 8 bits, each 256 of them encoded as _group_levels.py
    says. Those whose squared norm F is at least T have 8 bits, of the others those with F >= 17/512
    T have 4; T is the least with which the budget is kept. Where F = 0 there are 2 bits, and where
    the budget is too small for a short vector.

    workers: the number of a reduce's workers, whose rounding is correlated; None: that of the job,
    and 1, independent rounding, outside one. Other than in the paper: a round for each number of
    bits in the place of one with a sorted vector, as a round has one codec; 256 values are not
    sorted then, and a ring cuts each round's vector between them; T is found by sorting the norms
    anew in each reduce (section 3.2), not by steps over the rounds (appendix A); largest magnitudes
    are rounded up, so that scales need not be clipped; values are float32 here, not bfloat16.

    Bytes, of a single sender's vector: means and norms (bfloat16), then the values of 2, 4 and 8
    bits. CodecError for values above 1e37, whose sums may be beyond float32.
    """

    bits: float = 5.0
    workers: int | None = None

    unfit_for_feedback = (
        "it is unbiased, and what a worker's vector has beyond the mean of all, which would be fed"
        " back, grows without end"
    )

    def __post_init__(self) -> None:
        low, high = WIDTHS[0] + _META, WIDTHS[-1] + _META
        check_number("bits", self.bits, f"from {low} to {high}", lambda v: low <= v <= high)
        if self.workers is not None:
            check_int("workers", self.workers, 1, 65536)

    def for_workers(self, count: int) -> "DynamiQ":
        """Return the codec for so many workers, unless it names another number."""
        return self if self.workers is not None else replace(self, workers=count)

    @property
    def carriers(self) -> tuple[Codec, ...]:
        """Statistics travel as bfloat16, values as levels of 2, 4 and 8 bits."""
        return BFloat16(), *(GroupLevels(bits, self.workers or 1) for bits in WIDTHS)

    def max_size(self, n: int) -> int:
        """Return the bytes of n values whose budget is used up."""
        supers = -(-n // SUPER)
        return 6 * supers + -(-n // GROUP) + max(2 * n, self._left(n)) // 8 + 1

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Yield statistics, then the values of 2, 4 and 8 bits; see Codec.reduce."""
        x = self._admit(x)
        stats = np.empty((2, -(-x.size // SUPER)), np.float32)
        _statistics(x, stats[0], stats[1])
        means, norms = np.split(np.asarray((yield stats.ravel())), 2)
        shift = _spread(means, x.size)
        out = x - shift
        for mask in self._masks(norms, x.size):
            out[mask] = yield out[mask]
        return check_vector(out + shift), state

    def _admit(self, x: Floats) -> Floats:
        x = check_vector(x)
        if x.size and np.abs(x).max() > 1e37:
            i = int(np.abs(x).argmax())
            raise CodecError(f"{x[i]} at index {i} is beyond 1e37: scale the vector down")
        return x

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        rounds, out = self.reduce(x, context.seed, None, context.worker), list[bytes]()
        vector = next(rounds)
        with suppress(StopIteration):
            for carrier in self.carriers:
                data, _ = carrier.encode(vector, None, context.seed, None, context.worker)
                out.append(data)
                vector = rounds.send(carrier.decode(data, vector.size))
        return b"".join(out), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader, supers = Reader(data), -(-n // SUPER)
        first, *others = self.carriers
        sent = reader.array("u1", 4 * supers, f"means and norms of {n} values")
        means, norms = np.split(first.decode(sent.tobytes(), 2 * supers), 2)
        for s in np.flatnonzero(norms < 0)[:1]:
            raise CodecError(f"corrupted: {norms[s]}, squared norm of super-group {s}, is negative")
        reader.need(n // GROUP, f"scales of {n} values")
        out = _spread(means, n)
        for carrier, mask in zip(others, self._masks(norms, n), strict=True):
            count = int(np.count_nonzero(mask))
            size = carrier.max_size(count)
            sent = reader.array("u1", size, f"{count} values of {carrier}")
            out[mask] += carrier.decode(sent.tobytes(), count)
        reader.end()
        return check_vector(out)

    def _left(self, n: int) -> int:
        """Return the bits that n values' codes may have: at most 8 each."""
        meta = 48 * -(-n // SUPER) + 8 * -(-n // GROUP)
        return min(int(self.bits * n) - meta, WIDTHS[-1] * n)

    def _masks(self, norms: Floats, n: int) -> _Masks:
        """Return which of n values have 2, 4 and 8 bits."""
        f = norms.astype(np.float64)  # products below are exact
        sizes = np.full(f.size, SUPER)
        sizes[-1:] = n - SUPER * (f.size - 1)
        order = np.argsort(f, kind="stable")
        ranked, above = f[order], np.append(np.cumsum(sizes[order][::-1])[::-1], 0)
        limits = np.unique(np.outer((17, 512), f[f > 0]))  # 17 T: T, or 17/512 T, is a norm
        eight, more = (above[np.searchsorted(k * ranked, limits)] for k in (17, 512))
        fits = limits[2 * n + 2 * more + 4 * eight <= self._left(n)]
        limit = fits[0] if fits.size else np.inf
        widths = 2 + 2 * (512 * f >= limit) + 4 * (17 * f >= limit)
        return [_spread(widths == bits, n) for bits in WIDTHS]


def _spread(of_supers: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return each of n values' element of an array with one for each 256."""
    return np.repeat(of_supers, SUPER)[:n]
