"""No compression: the values as little-endian float32, the baseline of every comparison."""

from dataclasses import dataclass

import numpy as np

from gradplane.codecs._base import Codec, Context, Floats, Reader, State, check_vector


@dataclass(frozen=True)
class Float32(Codec):
    """Four bytes a value, lossless. Adding floats is a server's work: not summable in a switch."""

    def max_size(self, n: int) -> int:
        """Return 4 n."""
        return 4 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return x.astype("<f4", copy=False).tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        values = reader.array("<f4", n, f"{n} float32 values")
        reader.end()
        return check_vector(values.astype(np.float32))
