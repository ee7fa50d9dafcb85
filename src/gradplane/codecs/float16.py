"""Half precision: the values rounded to the nearest IEEE 754 binary16, little-endian."""

from dataclasses import dataclass

import numpy as np

from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_vector

_ROUNDS_TO_INFINITY = 65520.0  # halfway from the largest float16, 65504, to 2^16


@dataclass(frozen=True)
class Float16(Codec):
    """Two bytes a value; relative error at most 2^-11, absolute at most 2^-25 below 2^-14."""

    def max_size(self, n: int) -> int:
        """Return 2 n."""
        return 2 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        large = np.abs(x) >= _ROUNDS_TO_INFINITY
        if large.any():
            index = int(np.argmax(large))
            raise CodecError(f"{x[index]} at index {index} is beyond float16 (65504)")
        return x.astype("<f2").tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        values = reader.array("<f2", n, f"{n} float16 values")
        reader.end()
        return check_vector(values.astype(np.float32))
