"""Integers that share a step with the others of their block: ZeRO++ and SDP4Bit."""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bits, _random
from gradplane.codecs._base import CodecError, Floats, Reader

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _steps(x, block, levels, steps):  # type: ignore[no-untyped-def]
    """Write each block's step: the largest magnitude over the levels."""
    for b in range(steps.size):
        most = np.float32(0)
        for i in range(b * block, min((b + 1) * block, x.size)):
            most = max(most, abs(x[i]))
        steps[b] = most / levels


@njit(cache=True, nogil=True)
def _round(x, steps, block, top, key, stochastic, out):  # type: ignore[no-untyped-def]
    """Write codes -top - 1 to top plus top + 1: rounded to nearest, or up with the probability that
    makes them unbiased."""
    for b in range(steps.size):
        scale = 1.0 / np.float64(steps[b]) if steps[b] > 0 else 0.0
        for i in range(b * block, min((b + 1) * block, x.size)):
            place = np.float64(x[i]) * scale
            if stochastic:
                word = _mix(key + np.uint64(i + 1) * _GOLDEN)
                u = np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53
                low = np.floor(place)
                code = np.int64(low) + (u < place - low)
            else:
                code = np.int64(np.rint(place))
            out[i] = min(max(code, -top - 1), top) + top + 1


@njit(cache=True, nogil=True)
def _values(codes, steps, block, top, out):  # type: ignore[no-untyped-def]
    for b in range(steps.size):
        for i in range(b * block, min((b + 1) * block, out.size)):
            out[i] = np.float32(np.int64(codes[i]) - top - 1) * steps[b]


def size(n: int, bits: int, block: int) -> int:
    """Return the bytes of n values."""
    return 4 * -(-n // block) + _bits.packed_size(n, bits)


def encode(x: Floats, bits: int, block: int, levels: int, key: int | None) -> bytes:
    """Return the blocks' steps (float32), then the codes (a two's complement of `bits` bits plus
    2^(bits - 1)) without gaps.

    levels: the steps in a block's largest magnitude. key: of the stream of random words that decide
    which values are rounded up; None: to nearest, ties to even."""
    steps = np.empty(-(-x.size // block), np.float32)
    _steps(x, block, np.float32(levels), steps)
    codes, top = np.empty(x.size, np.uint8), (1 << bits - 1) - 1
    _round(x, steps, block, top, np.uint64(key or 0), key is not None, codes)
    return steps.astype("<f4").tobytes() + _bits.pack(codes, bits)


def decode(data: bytes, n: int, bits: int, block: int) -> Floats:
    """Return float32[n]; CodecError if the bytes are damaged."""
    reader, count = Reader(data), -(-n // block)
    steps = reader.array("<f4", count, f"{count} steps")
    packed = reader.array("u1", _bits.packed_size(n, bits), f"codes of {n} values")
    reader.end()
    for b in np.flatnonzero(~((steps >= 0) & (steps < np.inf)))[:1]:
        raise CodecError(f"step {steps[b]} of block {b} is not a magnitude")
    out = np.empty(n, np.float32)
    _values(_bits.unpack(packed, n, bits), steps, block, (1 << bits - 1) - 1, out)
    return out
