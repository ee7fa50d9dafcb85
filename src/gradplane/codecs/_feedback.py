"""Error feedback around any codec (Karimireddy et al., ICML 2019; THC Algorithm 3, lines 5, 22)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane._finite import all_finite
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Codes,
    Context,
    Floats,
    Partition,
    Rounds,
    State,
    Table,
    check_float32,
    check_int,
    check_vector,
)


@dataclass(frozen=True)
class Residual:
    """The part of the vectors that was not yet sent, float32[n], which may still have to be
    computed; and the wrapped codec's state."""

    unsent: Floats | Deferred[Floats]
    inner: State

    @property
    def error(self) -> Floats:
        """The part that was not yet sent."""
        return self.unsent.get() if isinstance(self.unsent, Deferred) else self.unsent

    def __reduce__(self) -> tuple[Any, ...]:
        return Residual, (self.error, self.inner)


@dataclass(frozen=True)
class Combined:
    """The state to give with x + e in place of x. inner: the wrapped codec's."""

    inner: State


@dataclass(frozen=True)
class ErrorFeedback(Codec):
    """Encodes x + e and keeps e = (x + e) - (the receiver's decoding of this worker's codes).

    The state is needed in every call that sees x, local() included: statistics are those of x + e.
    A round in which nothing was sent keeps all of x + e: skip(). A codec that keeps a residual
    itself (3LC) is wrapped without it, so that the error is fed back once.
    """

    codec: Codec

    _refuses = True

    @property
    def name(self) -> str:
        """The wrapped codec's name."""
        return self.codec.name

    @property
    def config(self) -> dict[str, Any]:
        """The wrapped codec's configuration, with error_feedback true."""
        return self.codec.config | {"error_feedback": True}

    def start(self, n: int) -> Residual:
        """Return a residual of zeros."""
        return Residual(np.zeros(check_int("n", n, 0), np.float32), self.codec.memoryless.start(n))

    def combined(self, x: Floats, state: State) -> tuple[Floats, Combined]:
        """Return x + e and its state, for local(), then codes() or skip(): they add e no more."""
        return self._total(x, state), Combined(state.inner)

    def skip(self, x: Floats, state: State = None) -> Residual:
        """Keep all of x + e."""
        total = self._total(x, state)
        return Residual(total, self.codec.memoryless.skip(total, state.inner))

    def local(self, x: Floats, state: State = None) -> Floats | None:
        """Return the wrapped codec's statistic of x + e."""
        return self._local(x, state)

    def _local(self, x: Floats, state: State) -> Floats | None:
        return self.codec.memoryless._local(self._total(x, state), state.inner)

    def max_size(self, n: int) -> int:
        """Return the wrapped codec's bound."""
        return self.codec.most_bytes(n)

    @property
    def carriers(self) -> tuple[Codec, ...]:
        """The wrapped codec's carriers."""
        return self.codec.memoryless.carriers

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Reduce x + e; keep what this worker's x + e has beyond the result."""
        total, codec = self._total(x, state), self.codec.memoryless
        mean, inner = yield from codec.reduce(total, seed, state.inner, worker)
        return mean, Residual(total - mean, inner)

    @property
    def averages(self) -> bool:
        """True if the wrapped codec's merge() is the mean."""
        return self.codec.averages

    def merge(self, vectors: Sequence[Floats]) -> Floats:
        """Merge as the wrapped codec."""
        return self.codec.merge(vectors)

    @property
    def summable(self) -> bool:
        """True if the wrapped codec's codes may be summed."""
        return self.codec.summable

    @property
    def table(self) -> Table:
        """The wrapped codec's table."""
        return self.codec.table

    def sum_bits(self, workers: int) -> int:
        """Return the wrapped codec's sum_bits()."""
        return self.codec.sum_bits(workers)

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Return the wrapped codec's partitions()."""
        return self.codec.partitions(n)

    def add_codes(self, data: bytes, n: int, shared: Floats | None, sums: npt.NDArray[Any]) -> None:
        """Add as the wrapped codec."""
        self.codec.add_codes(data, n, shared, sums)

    def decode_sum(
        self,
        sums: npt.NDArray[np.integer[Any]],
        n: int,
        count: int | npt.NDArray[np.integer[Any]],
        shared: Floats | None,
        seed: int = 0,
    ) -> Floats:
        """Decode as the wrapped codec."""
        return self.codec.decode_sum(sums, n, count, shared, seed)

    def _codes(self, x: Floats, context: Context) -> tuple[Codes, Residual]:
        """Return the wrapped codec's codes of x + e."""
        total, codec = self._total(x, context.state), self.codec.memoryless
        inner = context.state.inner
        shared = codec._local(total, inner) if context.shared is None else context.shared
        codes, inner = codec._codes(total, Context(shared, context.seed, inner, context.worker))

        def unsent() -> Floats:
            sent = self.codec._decode_codes(codes, total.size, shared, context.seed)
            return np.subtract(total, sent, out=sent)

        return codes, Residual(Deferred(unsent), inner)

    def deferred(self, state: State) -> tuple[Deferred[Any], ...]:
        """Return the residual, where it is not computed yet, and what the wrapped codec put off."""
        own = (state.unsent,) if isinstance(state.unsent, Deferred) else ()
        return (*own, *self.codec.memoryless.deferred(state.inner))

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, Residual]:
        total, codec = self._total(x, context.state), self.codec.memoryless
        data, inner = codec.encode_checked(total, replace(context, state=context.state.inner))
        return data, Residual(total - self.codec.decode(data, total.size), inner)

    def _decode(self, data: bytes, n: int) -> Floats:
        return self.codec.decode(data, n)

    def _total(self, x: Floats, state: State) -> Floats:
        from gradplane._vector_kernels import add

        x = check_float32(x)
        if isinstance(state, Combined):
            return x
        total: Floats = np.empty_like(x)
        add(x, residual(x, state, "error feedback"), total)
        if not all_finite(total):
            check_vector(x)  # names the index of a value that was not finite from the start
            check_vector(total)
        return total


def residual(x: Floats, state: State, user: str) -> Floats:
    """Return a Residual's error; CodecError if state is no Residual or does not fit x."""
    if not isinstance(state, Residual):
        raise CodecError(f"{user} needs the state of start(n) or of the last call")
    if state.error.shape != x.shape:
        raise CodecError(f"the residual has {state.error.size} values, the vector {x.size}")
    return state.error
