"""ADT, approximate data transfer (A2DTWP, section III): the most significant bytes of each weight.

The bytes of a value follow each other, the most significant first; the rest is dropped.
`policies.awp` decides how many bytes a layer needs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradplane.codecs import _bytepack
from gradplane.codecs._base import Codec, CodecError, Codes, Context, Floats, State, check_int


@dataclass(frozen=True)
class ADT(Codec):
    """Truncation to the 1 to 4 most significant bytes (`keep`) of a value; towards zero, so biased.

    Relative error of normal values below 2^-15 (3 bytes) and 2^-7 (2); one byte keeps sign and 7
    exponent bits, and decodes to more than a quarter of the value. 4 bytes are lossless.
    """

    keep: int = 2

    _refuses = True

    def __post_init__(self) -> None:
        check_int("keep", self.keep, 1, 4)

    def max_size(self, n: int) -> int:
        """Return keep * n."""
        return self.keep * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return _bytepack.pack(x, self.keep), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        return _bytepack.unpack(data, n, self.keep)


def bitpack(weights: Floats, keep: int, out: Codes | None = None) -> Codes:
    """Apply the paper's Bitpack, into `out` (uint8[keep * n]) if given; any value passes, even NaN.

    `weights` is float32[n]; both contiguous. CodecError if an array does not fit.
    """
    check_int("keep", keep, 1, 4)
    _check("weights", weights, np.float32, None)
    out = np.empty(keep * weights.size, np.uint8) if out is None else out
    _check("out", out, np.uint8, keep * weights.size)
    _bytepack.pack_into(weights, keep, out)
    return out


def bitunpack(packed: Codes, keep: int, out: Floats | None = None) -> Floats:
    """Apply the paper's Bitunpack to uint8[keep * n], into `out` (float32[n]) if given.

    CodecError if an array does not fit.
    """
    check_int("keep", keep, 1, 4)
    _check("packed", packed, np.uint8, None)
    if packed.size % keep:
        raise CodecError(f"{packed.size} bytes are not a multiple of keep = {keep}")
    out = np.empty(packed.size // keep, np.float32) if out is None else out
    _check("out", out, np.float32, packed.size // keep)
    _bytepack.unpack_into(packed, keep, out)
    return out


def _check(what: str, array: Any, dtype: type[np.generic], size: int | None) -> None:
    wanted = f"{what} must be contiguous {dtype.__name__}[{'n' if size is None else size}]"
    if not isinstance(array, np.ndarray):
        raise CodecError(f"{wanted}, got {type(array).__name__}")
    fits = array.dtype == dtype and array.ndim == 1 and size in (None, array.size)
    if not fits or not array.flags.c_contiguous:
        form = "" if array.flags.c_contiguous else "strided "
        raise CodecError(f"{wanted}, got {form}{array.dtype} of shape {array.shape}")
