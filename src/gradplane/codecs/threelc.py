"""3LC (SysML 2019): 3-value quantisation, base-3^5 encoding and zero-run encoding.

x + e is quantised, e the error that the rounds before left. With m = max |x + e| * s in
float32, a value v becomes the digit 1 + round(v / m), which is 2 if 2 v > m, 0 if 2 v < -m, else
1: ties of round() go to 0. A digit d decodes to m (d - 1), and e is the remaining error.

Bytes: m (float32), then the digits five a byte (`_base3`), then, unless zero_runs is off, runs of
the byte 121, which is five zeros, as one byte (`_zero_runs`).
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _base3, _magnitudes, _zero_runs
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Codes,
    Context,
    Floats,
    Reader,
    State,
    check_int,
    check_number,
    check_vector,
)
from gradplane.codecs._buffers import to_bytes
from gradplane.codecs._feedback import Residual, residual


@njit(cache=True, nogil=True)
def _quantise(v, m, digits):  # type: ignore[no-untyped-def]
    for i in range(v.size):
        twice = v[i] + v[i]  # exact, denormal too; m / 2 need not be
        digits[i] = np.uint8(1) + np.uint8(twice > m) - np.uint8(twice < -m)


@njit(cache=True, nogil=True)
def _quantise_and_subtract(v, m, digits):  # type: ignore[no-untyped-def]
    """Quantise as _quantise; subtract the digits' values from v."""
    for start in range(0, v.size, 4096):
        some, here = v[start : start + 4096], digits[start : start + 4096]
        _quantise(some, m, here)
        for i in range(some.size):
            some[i] -= np.float32(np.int32(here[i]) - np.int32(1)) * m


@dataclass(frozen=True)
class ThreeLC(Codec):
    """3-value quantisation with error accumulation, then base-3^5 and zero-run encoding.

    1 <= s < 2 is the sparsity multiplier: a larger s makes more zeros and so fewer bytes.
    |x + e - decoded| <= m / 2, exactly, and m / 2 < max |x + e|; biased, for which the
    state, e, compensates. Without `accumulate` this is the stateless quantiser. At most 1.6 bits a
    value, down to 0.114, and m. `parts` (1 to 64) threads encode or decode the runs of zeros: the
    bytes may cut runs elsewhere, the values are the same. Source: sections 3.1 to 3.3.
    """

    by_tensor = True

    s: float = 1.0
    zero_runs: bool = True
    accumulate: bool = True
    parts: int = 1

    _refuses = True

    def __post_init__(self) -> None:
        check_number("s", self.s, "from 1 to below 2", lambda s: 1 <= s < 2)
        for name in ("zero_runs", "accumulate"):
            if not isinstance(value := getattr(self, name), bool):
                raise CodecError(f"{name} must be True or False, got {value!r}")
        check_int("parts", self.parts, 1, 64)

    @property
    def memoryless(self) -> Codec:
        """The stateless quantiser."""
        return dataclasses.replace(self, accumulate=False)

    def start(self, n: int) -> State:
        """Return a residual of zeros; None without `accumulate`."""
        n = check_int("n", n, 0)
        return Residual(np.zeros(n, np.float32), None) if self.accumulate else None

    def skip(self, x: Floats, state: State = None) -> State:
        """Keep all of x + e; without `accumulate`, nothing."""
        if not self.accumulate:
            return state
        x = check_vector(x)
        return Residual(_magnitudes.add(x, residual(x, state, self.name))[0], None)

    def max_size(self, n: int) -> int:
        """Return 4 bytes, and 1 for each 5 values."""
        return 4 + _base3.size(n)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        digits, state = np.empty(x.size, np.uint8), context.state
        if self.accumulate:
            total, most = _magnitudes.add(x, residual(x, state, self.name))
            m = self._scale(most)
            _quantise_and_subtract(total, m, digits)
            state = Residual(total, None)
        else:
            m = self._scale(_magnitudes.largest(x))
            _quantise(x, m, digits)
        groups = _base3.pack(digits)
        if self.zero_runs:
            groups = _zero_runs.encode(groups, self.parts)
        return m.astype("<f4").tobytes() + to_bytes(groups), state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        m = reader.magnitude("m")
        groups = self._groups(reader, _base3.size(n))
        reader.end()
        return _base3.values(groups, n, m)

    def _groups(self, reader: Reader, size: int) -> Codes:
        if not self.zero_runs:
            return reader.array("u1", size, f"{size} groups of 5 values")
        groups, used = _zero_runs.decode(reader.rest(), size, self.parts)
        reader.array("u1", used, "groups")
        return groups

    def _scale(self, most: np.float32) -> np.float32:
        with np.errstate(over="ignore"):
            m = np.float32(most * np.float32(self.s))
        if not np.isfinite(m):
            raise CodecError(f"m = {most:.3g} x {self.s} is beyond float32: scale the vector down")
        return m
