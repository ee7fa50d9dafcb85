"""The base of all codecs: a frozen, checked configuration, and functions of their arguments alone.

A codec is one file in this folder, found by its name: a frozen dataclass deriving from `Codec`
that writes `_encode`, `_decode` and `max_size`. Checks, name, equality, repr and config come from
here. Nothing is remembered between calls: residuals travel as `state`, random values depend on
`seed` and `worker`.

`seed` is one integer that all workers of one reduce share. Make it from everything that
distinguishes the reduce from others, as in `codecs.key(experiment_seed, job, round, ...)`. A codec
derives from it what is common to the workers (THC's rotation) and, with `worker`, what must be
independent (stochastic rounding).

`Reader` reads encoded bytes from front to back; its errors say what is missing where. The functions
`check_...` check parameters, vectors and a call's state.
"""

import dataclasses
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane._finite import all_finite
from gradplane._plugins import reference_of, returned, returned_array

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
Table = tuple[int, ...]
State = Any
Rounds = Generator[Floats, Floats, tuple[Floats, State]]


class CodecError(ValueError):
    """A wrong argument or damaged bytes; the message says which, where and what is allowed."""


@dataclasses.dataclass(frozen=True)
class Partition:
    """Values [start, stop) of a vector, which travel as lanes [lane, lane + lanes)."""

    start: int
    stop: int
    lane: int
    lanes: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The arguments of encode() and codes() beside the vector."""

    shared: Floats | None = None
    seed: int = 0
    state: State = None
    worker: int = 0


class Codec(ABC):
    """Base of all codecs. Subclasses are frozen dataclasses; their fields are the parameters."""

    by_tensor: ClassVar[bool] = False
    """True if the codec's paper compresses each tensor of a gradient by itself."""

    unfit_for_feedback: ClassVar[str] = ""
    """Why a job may not put error feedback around its workers' reduces; empty where it may."""

    unit: ClassVar[int] = 1
    """The values that are best encoded together: a ring cuts vectors between such units."""

    _refuses: ClassVar[bool] = False  # True if _encode() itself refuses values that are not finite

    @property
    def name(self) -> str:
        """The codec's name, which is the name of its file; of a user's, "module:object"."""
        own = reference_of(type(self))
        return own or type(self).__module__.rpartition(".")[2]

    @property
    def config(self) -> dict[str, Any]:
        """The name and parameters, ready for JSON; `codecs.get(**config)` makes an equal codec."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"name": self.name} | {f.name: getattr(self, f.name) for f in fields}

    @property
    def memoryless(self) -> "Codec":
        """The codec without its residual, for ErrorFeedback to wrap."""
        return self

    def for_tensor(self, shape: Sequence[int]) -> "Codec":
        """Return the codec of one tensor of a model; its shape matters to few."""
        return self

    def for_workers(self, count: int) -> "Codec":
        """Return the codec of a job of so many workers; their number matters to few."""
        return self

    def start(self, n: int) -> State:
        """Return the state before the first of n-value vectors; None for a stateless codec."""
        return None

    def skip(self, x: Floats, state: State = None) -> State:
        """Return the state after a round in which nothing of x was sent."""
        return state

    def deferred(self, state: State) -> tuple[Deferred[Any], ...]:
        """Return the parts of a state that encoding put off: they need not delay what is sent."""
        return ()

    def local(self, x: Floats, state: State = None) -> Floats | None:
        """Return the statistic that workers reduce by maximum before encoding, or None.

        float32, none negative.
        """
        return self._local(self._admit(x), state)

    def combine(self, stats: Sequence[Floats]) -> Floats:
        """Reduce the workers' local() arrays to the shared one: each element's maximum."""
        if not stats:
            raise CodecError(f"{self.name}: no worker's statistic to combine")
        shared: Floats = np.maximum.reduce(list(stats))
        return shared

    def encode(
        self,
        x: Floats,
        shared: Floats | None = None,
        seed: int = 0,
        state: State = None,
        worker: int = 0,
    ) -> tuple[bytes, State]:
        """Compress float32[n]; return bytes, scalars first, little-endian, and the new state.

        `shared` is the combined local(); None stands for that of x alone. Equal arguments give
        equal bytes. CodecError if x is no finite float32 vector or `shared` does not fit it.
        """
        return self.encode_checked(self._checked(x), Context(shared, seed, state, worker))

    def encode_checked(self, x: Floats, context: Context) -> tuple[bytes, State]:
        """Return encode() of a vector that was checked, for the codecs around this one.

        LoadError, CodecError where a user's `_encode` or `max_size` is wrong."""
        found = self._encode(x, self._complete(x, context))
        if reference_of(type(self)) is not None:
            what, most = f"codec {self.name}", self.most_bytes(x.size)
            right = _pair(found) and isinstance(found[0], bytes)
            returned(what, "_encode", found, right, "(bytes, state), such as (data, context.state)")
            check_state_returned(what, "_encode", found[1])
            if len(found[0]) > most:
                raise CodecError(
                    f"{what}: _encode made {len(found[0])} bytes of {x.size} values, and"
                    f" max_size({x.size}) is {most}"
                )
        return found

    def decode(self, data: bytes, n: int) -> Floats:
        """Return float32[n] from encoded bytes alone. CodecError if they are damaged."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise CodecError(f"expected bytes, got {type(data).__name__}")
        n = check_int("n", n, 0)
        try:
            if n > sys.maxsize // 4:
                raise MemoryError
            found = self._decode(bytes(data), n)
        except MemoryError:
            raise CodecError(f"{n} values do not fit into memory") from None
        except CodecError as error:
            if reference_of(type(self)) is None:
                raise
            raise CodecError(f"codec {self.name}: _decode(data, {n}): {error}") from error
        returned_array(f"codec {self.name}", f"_decode(data, {n})", found, "float32", (n,))
        if reference_of(type(self)) is not None:
            try:
                check_vector(found)
            except CodecError as error:
                raise CodecError(f"codec {self.name}: _decode(data, {n}): {error}") from error
        return found

    @property
    def averages(self) -> bool:
        """True if merge() is the mean, so that vectors may also be added part by part."""
        return True

    def merge(self, vectors: Sequence[Floats]) -> Floats:
        """Return what the workers' decoded vectors, at least one, together stand for.

        The mean, added as float32 in their order, unless the codec says otherwise: decode_sum() of
        a codec's codes, where it has any, means the same (a majority's vote, say)."""
        total = np.zeros(vectors[0].size, np.float32)
        for vector in vectors:
            total += vector
        return total / np.float32(len(vectors))

    def _local(self, x: Floats, state: State) -> Floats | None:
        """Return local() of a vector that was checked: float32, one for each partition if the codec
        is summable, none negative; None if the workers need not agree on anything."""
        return None

    def _complete(self, x: Floats, context: Context) -> Context:
        """Give a user's codec the statistic of x alone where there is no shared one; ours take
        care of themselves."""
        if context.shared is None and reference_of(type(self)) is not None:
            return dataclasses.replace(context, shared=self._local(x, context.state))
        return context

    def _checked(self, x: Floats) -> Floats:
        return check_float32(x) if self._refuses else self._admit(x)

    def _admit(self, x: Floats) -> Floats:
        """Return x, contiguous, if it may be encoded; else CodecError."""
        return check_vector(x)

    def most_bytes(self, n: int) -> int:
        """Return max_size(n); LoadError where a user's is no number of bytes."""
        most = self.max_size(n)
        right = isinstance(most, int | np.integer) and most >= 0
        returned(f"codec {self.name}", f"max_size({n})", most, right, "a number of bytes")
        return int(most)

    @abstractmethod
    def max_size(self, n: int) -> int:
        """Return the largest number of bytes that encode() makes of n values."""

    @abstractmethod
    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        """Return encode() of a vector that was checked: bytes and the new state.

        `context.shared` is what the workers agreed on; a user's codec that has `_local` always gets
        one."""

    @abstractmethod
    def _decode(self, data: bytes, n: int) -> Floats:
        """Return decode() of bytes: float32[n]."""

    # A codec whose workers take several means, one after another, overrides what follows.

    @property
    def carriers(self) -> "tuple[Codec, ...]":
        """The codec of each round of a reduce of several rounds; empty where encode() is all."""
        return ()

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Yield this worker's vector of each round; take the workers' mean of it as the answer.

        Return the estimate of the mean of the workers' x, and the new state. Each vector travels by
        its round's carrier. All workers share the seed."""
        raise CodecError(f"{self.name} has no rounds: look at .carriers first")

    # A codec whose codes may be summed in the network overrides what follows.

    @property
    def summable(self) -> bool:
        """True if codes, looked up in `table`, may be summed before they are decoded."""
        return False

    @property
    def table(self) -> Table:
        """The number that each code adds to a sum; strictly increasing from 0."""
        raise self._not_summable()

    def sum_bits(self, workers: int) -> int:
        """Return the exact number of bits that a sum over `workers` workers needs."""
        raise self._not_summable()

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Cut a vector of n values into values and lanes one after another, none of them empty.

        Partition k uses element k of the shared statistic, and is one partition as a vector of its
        own, too: jobs code each by itself."""
        raise self._not_summable()

    def lanes(self, n: int) -> int:
        """Return the number of codes of n values, padding included."""
        return sum(part.lanes for part in self.partitions(n))

    def codes(
        self,
        x: Floats,
        shared: Floats | None = None,
        seed: int = 0,
        state: State = None,
        worker: int = 0,
    ) -> tuple[Codes, State]:
        """Return encode()'s codes, uint8[lanes(n)], one a lane, not packed; and the new state."""
        if not self.summable:
            raise self._not_summable()
        x = self._checked(x)
        return self._codes(x, self._complete(x, Context(shared, seed, state, worker)))

    def add_codes(self, data: bytes, n: int, shared: Floats | None, sums: npt.NDArray[Any]) -> None:
        """Add the table's numbers of encode()'s codes to `sums`, unsigned integers[lanes(n)], of at
        least sum_bits(workers) bits, in place; nothing is decoded. A server's part of a sum.

        CodecError if the bytes are damaged, or made with another shared statistic."""
        raise CodecError(f"the codes of {self.name} cannot be added by a server")

    def decode_sum(
        self,
        sums: npt.NDArray[np.integer[Any]],
        n: int,
        count: int | npt.NDArray[np.integer[Any]],
        shared: Floats | None,
        seed: int = 0,
    ) -> Floats:
        """Return the mean of vectors whose looked-up codes add up to `sums`, integers[lanes(n)].

        `count`, one number or one a lane, is the number of workers in each sum. A lane of count 0
        is missing (and its sum 0): its estimate is 0, in whatever domain the codec sums.
        """
        raise self._not_summable()

    def _decode_codes(self, codes: Codes, n: int, shared: Floats | None, seed: int = 0) -> Floats:
        """Return the vector that one worker's codes, as codes() returns them, stand for."""
        table = np.array(self.table, np.min_scalar_type(self.table[-1]))
        return self.decode_sum(table.take(codes), n, 1, shared, seed)

    def _codes(self, x: Floats, context: Context) -> tuple[Codes, State]:
        """Return codes() of a vector that was checked; `context` as for `_encode`."""
        raise self._not_summable()

    def _not_summable(self) -> CodecError:
        return CodecError(f"the codes of {self.name} cannot be summed: look at .summable first")


def _pair(found: Any) -> bool:
    return isinstance(found, tuple) and len(found) == 2


def check_state_returned(what: str, method: str, state: State) -> None:
    """Raise LoadError if a method returned its whole context in the place of a state."""
    right, expected = not isinstance(state, Context), "context.state, or a state of the codec's own"
    returned(what, f"{method}, as the new state,", state, right, expected)


def check_vector(x: Floats) -> Floats:
    """Return x, contiguous, if it is a finite float32 array of one dimension; else CodecError."""
    x = check_float32(x)
    if not all_finite(x):
        index = int(np.argmin(np.isfinite(x)))
        what = "NaN" if np.isnan(x[index]) else "infinity" if x[index] > 0 else "-infinity"
        raise CodecError(f"{what} at index {index}")
    return x


def check_float32(x: Floats) -> Floats:
    """Return x, contiguous, if it is a float32 array of one dimension; else CodecError."""
    if not isinstance(x, np.ndarray):
        x = _shared_memory(x)
    if x.dtype != np.float32 or x.ndim != 1:
        raise CodecError(f"expected float32 of shape (n,), got {x.dtype} of shape {x.shape}")
    return np.ascontiguousarray(x)


def _shared_memory(x: Any) -> npt.NDArray[Any]:
    """Return an array over the memory of another library's tensor, by DLPack; else CodecError."""
    if not hasattr(x, "__dlpack__"):
        raise CodecError(f"expected a float32 array, got {type(x).__name__}")
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        raise CodecError(f"the tensor cannot be read in place: {error}") from None


def check_array(what: str, array: Any, kind: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return array if it has that shape and dtype ("float32", "integer"); else CodecError."""
    dtype = getattr(array, "dtype", None)
    fits = dtype is not None and (dtype.kind in "iu" if kind == "integer" else dtype == kind)
    if not fits or array.shape != shape:
        got = type(array).__name__ if dtype is None else f"{dtype} of shape {array.shape}"
        raise CodecError(f"{what} must be {kind} of shape {shape}, got {got}")
    return array  # type: ignore[no-any-return]


def check_int(what: str, value: int, low: int, high: int | None = None) -> int:
    """Return value if it is an integer from low to high; else CodecError."""
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise CodecError(f"{what} must be an integer {allowed}, got {value!r}")
    if value < low or (high is not None and value > high):
        raise CodecError(f"{what} must be {allowed}, got {value}")
    return int(value)


class Reader:
    """A cursor over encoded bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def array(self, dtype: str, count: int, what: str) -> npt.NDArray[Any]:
        """Read `count` items; CodecError "truncated" if the bytes end before."""
        size = np.dtype(dtype).itemsize * count
        if self._at + size > len(self._data):
            left = len(self._data) - self._at
            at = self._at
            raise CodecError(f"truncated: {what}, {size} bytes from byte {at} on, {left} left")
        items = np.frombuffer(self._data, dtype, count, self._at)
        self._at += size
        return items

    def need(self, size: int, what: str) -> None:
        """Raise CodecError "truncated" if fewer bytes are left.

        To be called before memory is allocated by an n that is not checked otherwise.
        """
        left = len(self._data) - self._at
        if size > left:
            raise CodecError(f"truncated: {what}, at least {size} bytes, {left} left")

    def magnitude(self, what: str) -> np.float32:
        """Read a float32; CodecError if it is negative or not finite."""
        value = np.float32(self.array("<f4", 1, what)[0])
        if not 0 <= value < np.inf:
            raise CodecError(f"corrupted: {what} = {value} is not a magnitude")
        return value

    def rest(self) -> npt.NDArray[np.uint8]:
        """Return all bytes that are left, uint8, without reading them."""
        return np.frombuffer(self._data, np.uint8, offset=self._at)

    def end(self) -> None:
        """Raise CodecError if bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise CodecError(f"{left} bytes too many: {self._at} expected, got {len(self._data)}")


class Sized(Protocol):
    """A state with the number of values of its vectors."""

    @property
    def n(self) -> int: ...


S = TypeVar("S", bound=Sized)


def check_number(what: str, value: float, allowed: str, fits: Callable[[float], bool]) -> float:
    """Return value if it is a finite number that fits; else CodecError with what is allowed."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not fits(value):
        raise CodecError(f"{what} must be a number {allowed}, got {value!r}")
    return value


def check_share(what: str, value: float) -> float:
    """Return value if it is a number above 0 and at most 1; else CodecError."""
    return check_number(what, value, "above 0 and at most 1", lambda v: 0 < v <= 1)


def check_positive(what: str, value: float | None) -> float | None:
    """Return value if it is None or a number above 0; else CodecError."""
    if value is None:
        return None
    return check_number(what, value, "above 0, or None", lambda v: v > 0)


def check_state(codec: str, state: State, kind: type[S], n: int) -> S:
    """Return state if it is of that kind and for n values; else CodecError."""
    if not isinstance(state, kind):
        raise CodecError(f"{codec} needs the state of start(n) or of the last call")
    if state.n != n:
        raise CodecError(f"{codec}: the state is for {state.n} values, the vector has {n}")
    return state
