"""float32 values in the format that the network may compress, and the effect of compression."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane import codecs
from gradplane.codecs import Codec, CodecError, Context

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Marked(Codec):
    """Four bytes a value in network order: the values of a Stream's message.

    The codec itself is lossless; the network may reduce the precision on the way.
    """

    def max_size(self, n: int) -> int:
        """Return 4 n."""
        return 4 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, None]:
        return x.astype(">f4").tobytes(), None

    def _decode(self, data: bytes, n: int) -> Floats:
        if len(data) != 4 * n:
            raise CodecError(f"{n} float32 values in {len(data)} bytes")
        return self._admit(np.frombuffer(data, ">f4").astype(np.float32))


def truncated(x: Floats, bound: int) -> Floats:
    """Truncate finite x, float32[n], as the network does at the error bound 2^-bound (6, 8 or 10).

    A second truncation changes nothing, so the result does not depend on how often the network
    compresses the values.
    """
    codec = codecs.get("inceptionn", bound=bound)
    return codec.decode(codec.encode(x)[0], x.size)
