"""INCEPTIONN's kernels: float32 words to bursts of tags and vectors, and back.

Encoding works on blocks: first tags and vectors of a block, which vectorises, then their bytes.
Each vector is stored as four bytes, and the next one overwrites the excess: no branch depends on
a tag, which no processor could predict. Decoding reverses these steps.
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes, Floats

BURST = 8
LARGEST_BURST = 2 + 4 * BURST
_BLOCK = 1024
_ONE = 127  # exponent of the values from 1 to 2
_MANTISSA, _HIDDEN = np.uint32(0x7FFFFF), np.uint32(0x800000)


def thresholds(bound: int) -> tuple[int, int]:
    """Return the least exponents of tag 1 and of tag 2 for the error bound 2^-bound."""
    low = _ONE - bound
    return low, low + (bound + 1) // 2


@njit(cache=True, nogil=True)
def _classify(words, low, middle, tags, vectors):  # type: ignore[no-untyped-def]
    """Compute each word's tag, and its vector in the topmost bits."""
    for i in range(words.size):
        word = words[i]
        exponent = np.int32((word >> np.uint32(23)) & np.uint32(255))
        sign = word & np.uint32(0x80000000)
        magnitude = (word & _MANTISSA) | _HIDDEN
        # The shifts leave 7 bits below the sign (tag 1) or 15 (tag 2); others' are not used.
        by = np.uint32(16 + middle - exponent) & np.uint32(31)
        byte = sign | ((magnitude >> by) << np.uint32(24))
        by = np.uint32(135 - exponent) & np.uint32(31)
        half = sign | ((magnitude >> by) << np.uint32(16))
        vector = word if exponent >= _ONE else half if exponent >= middle else byte
        vectors[i] = vector if exponent >= low else np.uint32(0)
        tags[i] = (
            np.uint8(exponent >= low) + np.uint8(exponent >= middle) + np.uint8(exponent >= _ONE)
        )


@njit(cache=True, nogil=True)
def _encode(words, low, middle, out):  # type: ignore[no-untyped-def]
    tags, vectors = np.zeros(_BLOCK, np.uint8), np.zeros(_BLOCK, np.uint32)
    at = np.uint64(0)
    for start in range(0, words.size, _BLOCK):
        block = words[start : start + _BLOCK]
        tags[block.size :] = 0
        _classify(block, low, middle, tags, vectors)
        for first in range(0, block.size, BURST):
            head = np.uint32(0)
            for i in range(BURST):
                head |= np.uint32(tags[first + i]) << np.uint32(2 * i)
            out[at], out[at + np.uint64(1)] = head >> np.uint32(8), head
            at += np.uint64(2)
            for i in range(BURST):
                vector, tag = vectors[first + i], tags[first + i]
                out[at], out[at + np.uint64(1)] = vector >> np.uint32(24), vector >> np.uint32(16)
                out[at + np.uint64(2)], out[at + np.uint64(3)] = vector >> np.uint32(8), vector
                at += (np.uint64(1) << np.uint64(tag)) >> np.uint64(1)
    return at


@njit(cache=True, nogil=True)
def _rebuild(vectors, tags, unit, out, words):  # type: ignore[no-untyped-def]
    """Compute values from tags and vectors, which are in the topmost bits.

    `unit` is the weight of tag 1's last bit; `words` are the bits of `out`. The bits below a vector
    belong to the next one.
    """
    for i in range(out.size):
        vector, tag = vectors[i], tags[i]
        bits = np.int32(vector & np.uint32(0x7FFFFFFF))
        byte = np.float32(bits >> np.int32(24)) * unit
        half = np.float32(bits >> np.int32(16)) * np.float32(2.0**-15)
        value = half if tag == 2 else byte
        value = value if vector >> np.uint32(31) == 0 else -value
        out[i] = value if tag > 0 else np.float32(0)
    for i in range(out.size):
        words[i] = vectors[i] if tags[i] == 3 else words[i]


@njit(cache=True, nogil=True)
def _decode(data, unit, out, words):  # type: ignore[no-untyped-def]
    """Decode bursts until the words or the bytes end; return the numbers of words and bytes.

    A burst is read if the bytes of the largest one are there: the caller pads the last ones.
    """
    tags, vectors = np.zeros(_BLOCK, np.uint8), np.zeros(_BLOCK, np.uint32)
    at, last = np.uint64(0), np.int64(data.size) - LARGEST_BURST - 4
    done = 0
    while done < words.size and np.int64(at) <= last:
        filled = 0
        while filled < _BLOCK and done + filled < words.size and np.int64(at) <= last:
            head = (np.uint32(data[at]) << np.uint32(8)) | np.uint32(data[at + np.uint64(1)])
            at += np.uint64(2)
            for i in range(BURST):
                tag = (head >> np.uint32(2 * i)) & np.uint32(3)
                tags[filled + i] = tag
                vectors[filled + i] = (
                    (np.uint32(data[at]) << np.uint32(24))
                    | (np.uint32(data[at + np.uint64(1)]) << np.uint32(16))
                    | (np.uint32(data[at + np.uint64(2)]) << np.uint32(8))
                    | np.uint32(data[at + np.uint64(3)])
                )
                at += (np.uint64(1) << np.uint64(tag)) >> np.uint64(1)
            filled += BURST
        some = min(filled, words.size - done)
        for i in range(some, filled):
            if tags[i] > 0:
                return done + i, -1
        here = slice(done, done + some)
        _rebuild(vectors, tags, unit, out[here], words[here])
        done += some
    return done, np.int64(at)


def encode(x: Floats, bound: int) -> Codes:
    """Encode x as bursts, uint8."""
    bursts = -(-x.size // BURST)
    out = np.empty(bursts * LARGEST_BURST + 4, np.uint8)
    low, middle = map(np.int32, thresholds(bound))
    size = _encode(x.view(np.uint32), low, middle, out)
    return out[: int(size)]


def decode(data: bytes, n: int, bound: int) -> Floats:
    """Decode n values from exactly their bursts; CodecError for missing, excess or wrong bytes."""
    bursts = -(-n // BURST)
    if 2 * bursts > len(data):  # checked before that much is allocated
        raise CodecError(
            f"truncated: {bursts} bursts take at least {2 * bursts} bytes, got {len(data)}"
        )
    unit = np.float32(2.0 ** (thresholds(bound)[1] - 134))
    out = np.empty(n, np.float32)
    words, fields = out.view(np.uint32), np.frombuffer(data, np.uint8)
    done, at = _decode(fields, unit, out, words)
    if at >= 0:
        rest = np.concatenate([fields[at:], np.zeros(LARGEST_BURST + 4, np.uint8)])
        more, size = _decode(rest, unit, out[done:], words[done:])
        done, at = done + more, at + size if size >= 0 else -1
    _check_end(done, at, n, len(data))
    return out


def _check_end(done: int, at: int, n: int, size: int) -> None:
    if at < 0:
        raise CodecError(f"corrupted: the last burst has a tag for value {done} of {n}")
    if at > size:
        first = (done - 1) // BURST * BURST
        raise CodecError(f"truncated: the burst from value {first} on is not whole in {size} bytes")
    if at < size:
        raise CodecError(f"{size - at} bytes too many: {at} expected, got {size}")
