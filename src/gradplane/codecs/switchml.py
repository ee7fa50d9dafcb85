"""SwitchML's quantisation (Sapio et al., NSDI 2021): 32-bit integers with a shared exponent.

The workers agree on an exponent by maximum, turn their values into integers of that scale, and the
network adds integers. The paper's switch has 32-bit adders. Here an integer travels as eight 4-bit
digits, a lane each, whose sums together give the sum of the integers, bit for bit; so any switch
that sums THC's indices sums these, too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs import _packing
from gradplane.codecs._base import CodecError, Codes, Context, Floats, Partition, State, check_int
from gradplane.codecs._grid import GridCodec, Sums

_DIGITS = 8
_MIDDLE = 2**31  # is added to an integer, so that no digit is negative


@njit(cache=True, nogil=True)
def _round(x, scale, limit, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = np.int32(min(max(np.rint(np.float64(x[i]) * scale), -limit), limit))


_Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class SwitchML(GridCodec):
    """Quantisation to integers, scaled so that sums over `workers` workers stay within 32 bits.

    1 <= workers <= 65536.
    Shared statistic: for each 2^20 values the power of two 2^e at or below the largest magnitude.
    x becomes q = round(x (2^31 - 1) / workers / 2^(e + 1)), ties to even.
    Bytes, per partition: 2^e (float32), q (int32). Lanes: the hexadecimal digits of q + 2^31, the
    highest first; table 0 ... 15. sum_bits is a lane's. A value counts as missing unless its eight
    lanes hold equally many workers (the eight always share a packet).
    Deterministic; |x - y| <= 2^e workers / (2^31 - 1), and half an ulp of float32. Sums are exact.
    """

    workers: int = 64

    bits = 4
    granularity = 15
    rotate = False
    threshold = 1.0
    table = tuple(range(16))

    def __post_init__(self) -> None:
        check_int("workers", self.workers, 1, 65536)

    @property
    def limit(self) -> int:
        """The greatest integer that a worker sends."""
        return (2**31 - 1) // self.workers

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Cut into at most 2^20 values each, with eight lanes a value."""
        return tuple(
            Partition(part.start, part.stop, _DIGITS * part.lane, _DIGITS * part.lanes)
            for part in super().partitions(n)
        )

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return 4 * len(self.partitions(n)) + 4 * n

    def _codes(self, x: Floats, context: Context) -> tuple[Codes, State]:
        """Return the integers' digits."""
        integers = self._integers(x, self._shared_or_local(x, context))
        octets = (integers.view(np.uint32) + np.uint32(_MIDDLE)).astype(">u4").view(np.uint8)
        return _packing.unpack(octets, 2 * octets.size, 4), context.state

    def add_codes(
        self, data: bytes, n: int, shared: Floats | None, sums: npt.NDArray[np.integer]
    ) -> None:
        """Refuse: its bytes are whole integers, which are shorter than the sums of their digits."""
        raise CodecError(
            f'the codes of {self.name} cannot be added by a server: use pull = "float32"'
        )

    def decode_sum(
        self, sums: Sums, n: int, count: int | Sums, shared: Floats | None, seed: int = 0
    ) -> Floats:
        """Decode sums as the class says; see Codec.decode_sum."""
        shared = self._shared(shared, n)
        self._check_sums(sums, n, count)
        workers = _workers(np.asarray(count), n)
        total = np.zeros(n, np.int64)
        for digit in range(_DIGITS):
            total = 16 * total + sums[digit::_DIGITS]
        total = np.where(workers > 0, total - workers * _MIDDLE, 0)
        return self._floats(total / np.maximum(workers, 1), shared)

    def _statistic(self, x: Floats, part: Partition) -> float:
        mantissa, exponent = np.frexp(np.abs(x[part.start : part.stop]).max())
        return float(np.ldexp(1.0, int(exponent) - 1)) if mantissa else 0.0

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        shared = self._shared_or_local(x, context)
        integers = self._integers(x, shared).astype("<i4")
        out = []
        for k, part in enumerate(self.partitions(x.size)):
            out.append(shared[k : k + 1].astype("<f4").tobytes())
            out.append(integers[part.start : part.stop].tobytes())
        return b"".join(out), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = self._reader(data, n)
        shared, integers = [], []
        for k, part in enumerate(self.partitions(n)):
            shared.append(reader.array("<f4", 1, f"statistic of partition {k}")[0])
            size = part.stop - part.start
            integers.append(reader.array("<i4", size, f"integers of partition {k}"))
        reader.end()
        joined = np.concatenate(integers) if integers else np.empty(0, np.int32)
        self._check_integers(joined)
        return self._floats(joined, self._shared(np.array(shared, np.float32), n))

    def _integers(self, x: Floats, shared: Floats) -> _Integers:
        out = np.zeros(x.size, np.int32)
        for k, part in enumerate(self.partitions(x.size)):
            values = slice(part.start, part.stop)
            if shared[k] > 0:
                scale = self.limit / (2 * float(shared[k]))
                _round(x[values], scale, float(self.limit), out[values])
        return out

    def _floats(self, integers: npt.NDArray[np.number], shared: Floats) -> Floats:
        """Return the values of means of integers."""
        out = np.empty(integers.size, np.float32)
        limit = float(np.finfo(np.float32).max)
        for k, part in enumerate(self.partitions(integers.size)):
            values = integers[part.start : part.stop] * (2 * float(shared[k]) / self.limit)
            out[part.start : part.stop] = np.clip(values, -limit, limit)
        return out

    def _check_integers(self, integers: _Integers) -> None:
        for i in np.flatnonzero((integers > self.limit) | (integers < -self.limit))[:1]:
            raise CodecError(
                f"integer {integers[i]} at index {i} is beyond (2^31 - 1) / {self.workers} workers "
                f"= {self.limit}"
            )


def _workers(count: npt.NDArray[np.integer], n: int) -> _Integers:
    """Return the number of workers in each value: 0 where its lanes do not agree."""
    lanes = np.broadcast_to(count, _DIGITS * n).astype(np.int64).reshape(n, _DIGITS)
    return np.where((lanes == lanes[:, :1]).all(axis=1), lanes[:, 0], 0)
