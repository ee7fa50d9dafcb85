"""Random values that depend on a key and a position, and on nothing else.

The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) read as a counter: word i of stream
`key` is mix(key + (i + 1) * GOLDEN). Chunks, threads and order of calls cannot change a value.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane import _splitmix64
from gradplane.codecs._base import CodecError, Floats

GOLDEN = np.uint64(_splitmix64.GOLDEN)
(_S1, _M1), (_S2, _M2) = ((np.uint64(s), np.uint64(m)) for s, m in _splitmix64.STEPS)
_S3 = np.uint64(_splitmix64.LAST_SHIFT)


def key(*parts: int | str) -> int:
    """Return the 64-bit key of the stream that these parts identify: integers of any size, words.

    The usual parts are key(seed, round, worker, purpose).
    """
    # Called for each packet of an impaired link.
    text = "/".join([str(part) if type(part) is int else _text(part) for part in parts])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _text(part: int | str) -> str:
    if isinstance(part, str):
        return repr(part)
    if isinstance(part, int | np.integer):
        return str(int(part))
    raise CodecError(f"a key is made of integers and words, got {part!r}")


def mix(z: Any) -> Any:
    """Apply SplitMix64's output function to uint64 arrays; Numba compiles the same lines.

    Numba's cached kernels do not notice a change here: CONTRIBUTING.md says how to remove them.
    """
    z = (z ^ (z >> _S1)) * _M1
    z = (z ^ (z >> _S2)) * _M2
    return z ^ (z >> _S3)


def words(key: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return words `first` to `first + count - 1` of the stream, uint64."""
    positions = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix(np.uint64(key) + positions * GOLDEN)  # type: ignore[no-any-return]


def uniforms(key: int, first: int, count: int) -> npt.NDArray[np.float64]:
    """Return uniform multiples of 2^-53 in [0, 1), one for each position."""
    return (words(key, first, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def signs(key: int, first: int, count: int) -> Floats:
    """Return float32 1 or -1 for each position: -1 iff bit (p mod 64) of word (p div 64) is 1."""
    low, high = first // 64, (first + count + 63) // 64
    octets = words(key, low, high - low).astype("<u8").view(np.uint8)
    bits = np.unpackbits(octets, bitorder="little")[first - 64 * low :][:count]
    return np.float32(1) - 2 * bits.astype(np.float32)
