"""The vectors that a reduce takes, and the results that Deliver carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._finite import all_finite, is_known_finite, known_finite
from gradplane.hosts.protocols.device_vector import DeviceVector
from gradplane.hosts.protocols.once import is_constant

Floats = npt.NDArray[np.float32]
Sums = npt.NDArray[np.unsignedinteger[Any]]

TRANSIENT = 0x8000
"""Tensors of this number or a higher one keep nothing from a reduce for the next."""

SCATTERED = 0xC000
"""The results of tensors of this number or a higher one are cut into as many equal parts as there
are workers; each worker needs only its own part, and may get 0 in the place of the others."""

CUT = 0xE000
"""Tensors of this number or a higher one are scattered, and cut into the parts before they are
encoded for a switch. In records of older versions the scattered ones have lower numbers, and all
workers have all sums."""

LARGE = 1 << 18
"""Values of a vector from which on it pays to put off part of the work."""


class ReduceError(ValueError):
    """A reduce or synchronisation that cannot start or go on; the text has worker and reason."""


@dataclass(frozen=True)
class Reduced:
    """The result of one reduce.

    `mean`: float32[n], the estimate of the mean over the workers that are in; missing parts are 0
    before the codec's inverse transform. `counts`: int64, the number of workers in each chunk, 0 if
    it is missed. `missed`: the number of missed chunks whose sums it needs. The digests (see
    digest.py) are of the vector as given, of this worker's codes (uint8, one a lane; through a
    server: the encoded bytes) and of the sums (sum_bits wide, one a lane, missing ones 0; through a
    server: the encoded mean; in a ring: the blocks this worker encoded, and the sums). `codec_ns`
    and `reduce_ns`: the emulated time that this host spent encoding, decoding and adding. From a
    server that answers with weights, `mean` is these, and `precision` the bytes of each tensor's
    values. `compute_ns`: the time of the gradient's computation, where it is part of the reduce (a
    plan).
    """

    mean: Floats
    counts: npt.NDArray[np.int64]
    missed: int
    gradient: str
    codes: str
    sums: str
    codec_ns: int = 0
    reduce_ns: int = 0
    precision: tuple[int, ...] = ()
    compute_ns: int = 0


@dataclass(frozen=True)
class Summed(Reduced):
    """A Reduced with the sums themselves, float32[n], or of integers in their type, modulo 2^N."""

    total: npt.NDArray[Any] = field(kw_only=True)


@dataclass(frozen=True)
class SummedLanes(Reduced):
    """A Reduced with the sums of codes that it was decoded from.

    parts: of each partition the common norm, as float32 bits, the seed, and the sums, one a lane.
    """

    parts: tuple[tuple[int, int, Sums], ...] = field(kw_only=True)


@dataclass(frozen=True)
class Synchronised:
    """The end of a synchronisation.

    `parameters`: float32[n] to continue with. `source`: the worker that they come from, None if
    nobody missed enough to copy. `nbytes`: parameters that this worker sent or received.
    """

    parameters: Floats
    source: int | None
    nbytes: int


@dataclass(frozen=True)
class Joined:
    """A worker's state at the start of a round that it takes part in, float32[n] each."""

    parameters: Floats
    momentum: Floats


def own_part(n: int, worker: int, workers: int) -> slice:
    """Return a worker's part of n values, which their number divides."""
    return slice(worker * n // workers, (worker + 1) * n // workers)


def is_integers(vector: npt.NDArray[Any] | DeviceVector) -> bool:
    """Return whether a vector is of integers that a switch sums exactly: int32[n] or int64[n]."""
    return isinstance(vector, np.ndarray) and vector.dtype in (np.int32, np.int64)


def check_free(worker: int, ticket: int, tensor: int, reduces: Mapping[int, Any]) -> None:
    """Raise ReduceError where a ticket, or a tensor, has a reduce in flight among `reduces`."""
    if ticket in reduces or any(reduce.tensor == tensor for reduce in reduces.values()):
        raise ReduceError(
            f"worker {worker}, ticket {ticket}, tensor {tensor}: ticket or tensor is in flight:"
            " wait for its result"
        )


def checked_vector(vector: Floats, worker: int, ticket: int) -> Floats:
    """Return a finite float32[n], a copy unless it stays as it is; ReduceError for anything else.

    A device's vector stays as it is."""
    if isinstance(vector, DeviceVector):
        return vector
    where = f"worker {worker}, ticket {ticket}"
    if not isinstance(vector, np.ndarray) or vector.dtype != np.float32 or vector.ndim != 1:
        got = getattr(vector, "dtype", type(vector).__name__)
        raise ReduceError(f"{where}: expected float32 of shape (n,), got {got} {np.shape(vector)}")
    if not all_finite(vector):
        index = int(np.argmin(np.isfinite(vector)))
        raise ReduceError(f"{where}: {vector[index]} at index {index}: did the training diverge?")
    if is_constant(vector) or is_known_finite(vector):
        return vector
    return known_finite(vector.copy())
