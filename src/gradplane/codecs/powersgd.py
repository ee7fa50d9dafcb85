"""PowerSGD (Vogels et al., NeurIPS 2019, Algorithm 1): a rank-r approximation of the gradient.

A tensor is seen as a matrix M, row by row. One step of power iteration, from the Q of the step
before: P = M Q, summed over the workers, its columns made orthonormal; Q = M^T P, summed as well;
the mean gradient is P Q^T. As P and Q are linear in M, that is a step for the workers' mean of M.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs import _random
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Reader,
    Rounds,
    State,
    check_int,
    check_state,
    check_vector,
)
from gradplane.codecs.float32 import Float32

_Factor = npt.NDArray[Any]  # a column of the paper's P or Q is a row here: float32 or 64[rank, ...]
_DEPENDENT = 1e-8  # of a column's norm: what is left below it after projection is rounding


@njit(cache=True, nogil=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Return the inner product in float64, in one fixed order."""
    sums = np.zeros(8)
    whole = a.size - a.size % 8
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += np.float64(a[i + j]) * np.float64(b[i + j])
    for i in range(whole, a.size):
        sums[i - whole] += np.float64(a[i]) * np.float64(b[i])
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


@njit(cache=True, nogil=True)
def _rows_times(x, q, p):  # type: ignore[no-untyped-def]
    """Compute P = M Q."""
    columns = q.shape[1]
    for i in range(p.shape[1]):
        row = x[i * columns : (i + 1) * columns]
        for c in range(p.shape[0]):
            p[c, i] = _dot(row, q[c, : row.size])


@njit(cache=True, nogil=True)
def _columns_times(x, p, q):  # type: ignore[no-untyped-def]
    """Compute Q = M^T P, from zeros."""
    columns = q.shape[1]
    for i in range(p.shape[1]):
        row = x[i * columns : (i + 1) * columns]
        for c in range(p.shape[0]):
            factor, column = np.float64(p[c, i]), q[c]
            for j in range(row.size):
                column[j] += np.float64(row[j]) * factor


@njit(cache=True, nogil=True)
def _orthonormalise(p):  # type: ignore[no-untyped-def]
    """Apply modified Gram-Schmidt; a column that depends on those before it becomes zero."""
    for c in range(p.shape[0]):
        before = np.sqrt(_dot(p[c], p[c]))
        for d in range(c):
            p[c] -= _dot(p[c], p[d]) * p[d]
        after = np.sqrt(_dot(p[c], p[c]))
        p[c] *= 1 / after if after > _DEPENDENT * before else 0.0


@njit(cache=True, nogil=True)
def _product(p, q, out):  # type: ignore[no-untyped-def]
    """Compute M = P Q^T, clamped to float32."""
    columns, limit = q.shape[1], np.float64(np.finfo(np.float32).max)
    row = np.empty(columns)
    for i in range(p.shape[1]):
        row[:] = 0
        for c in range(p.shape[0]):
            factor = np.float64(p[c, i])
            for j in range(columns):
                row[j] += factor * np.float64(q[c, j])
        for j in range(min(columns, out.size - i * columns)):
            out[i * columns + j] = min(max(row[j], -limit), limit)


@dataclass(frozen=True)
class Warm:
    """The previous round's Q, float32[rank, columns], zeros before the first; for n values."""

    q: Floats
    n: int


@dataclass(frozen=True)
class PowerSGD(Codec):
    """Sends two factors of the vector as a matrix M with so many columns: P Q^T of low rank.

    1 <= rank <= 64; columns >= 1, or None for ceil(sqrt(n)): nearly square.
    The last row is padded with zeros; the rank is at most the number of rows or columns. Columns of
    Q that are 0, as all are at the start, are drawn from the seed, uniform in [-1/2, 1/2): the
    same for all workers (the paper draws normal ones).
    Bytes: P column by column (float32[rank, rows]), then Q (float32[rank, columns]).
    Deterministic given Q, biased; |x - y| <= |x| up to float32 rounding, as y is M's projection on
    P: wrap it in ErrorFeedback, as the paper does.

    Workers reduce in two rounds: the mean of P, float32[rank x rows], then that of Q; the next step
    begins with the mean Q, made orthonormal. The bytes above are a single sender's step, and with
    rounds=1 each worker's: a server then averages what it decodes, as older versions did.
    """

    rank: int = 4
    columns: int | None = None
    rounds: int = 2

    by_tensor = True

    def __post_init__(self) -> None:
        check_int("rank", self.rank, 1, 64)
        if self.columns is not None:
            check_int("columns", self.columns, 1)
        check_int("rounds", self.rounds, 1, 2)

    @property
    def carriers(self) -> tuple[Codec, ...]:
        """P and Q travel as float32."""
        return (Float32(),) * 2 if self.rounds == 2 else ()

    def for_tensor(self, shape: Sequence[int]) -> Codec:
        """Return the codec of a matrix of the tensor's first dimension and all others; float32
        where P and Q have more than half of its values, as PyTorch's hook does, and for vectors."""
        if self.columns is not None or self.rounds == 1:
            return self
        rows, n = shape[0] if shape else 1, math.prod(shape)
        columns = n // max(rows, 1)
        rank = min(self.rank, rows, columns)
        if 2 * rank * (rows + columns) >= n:
            return Float32()
        return replace(self, columns=columns)

    def shape(self, n: int) -> tuple[int, int, int]:
        """Return rows, columns and rank for n values."""
        if n == 0:
            return 0, 0, 0
        columns = min(self.columns or math.isqrt(n - 1) + 1, n)
        rows = -(-n // columns)
        return rows, columns, min(self.rank, rows, columns)

    def start(self, n: int) -> Warm:
        """Return a Q of zeros."""
        _, columns, rank = self.shape(check_int("n", n, 0))
        return Warm(np.zeros((rank, columns), np.float32), n)

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        rows, columns, rank = self.shape(n)
        return 4 * rank * (rows + columns)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, Warm]:
        warm = check_state("powersgd", context.state, Warm, x.size)
        rows, columns, rank = self.shape(x.size)
        p, q = np.empty((rank, rows)), np.zeros((rank, columns))
        _rows_times(x, _filled(warm.q, context.seed), p)
        _orthonormalise(p)
        left = p.astype(np.float32)
        _columns_times(x, left, q)
        right = _narrowed(q)
        return left.astype("<f4").tobytes() + right.astype("<f4").tobytes(), Warm(right, x.size)

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Yield P, then Q; see Codec.reduce."""
        x, warm = self._admit(x), check_state("powersgd", state, Warm, x.size)
        rows, columns, rank = self.shape(x.size)
        p, q = np.empty((rank, rows)), _filled(warm.q, seed).astype(np.float64)
        _orthonormalise(q)
        _rows_times(x, q, p)
        p = (yield _narrowed(p).ravel()).reshape(rank, rows).astype(np.float64)
        _orthonormalise(p)
        _columns_times(x, p, q := np.zeros((rank, columns)))
        right = (yield _narrowed(q).ravel()).reshape(rank, columns)
        out = np.empty(x.size, np.float32)
        _product(p, right, out)
        return out, Warm(right, x.size)

    def _decode(self, data: bytes, n: int) -> Floats:
        rows, columns, rank = self.shape(n)
        reader = Reader(data)
        p = reader.array("<f4", rank * rows, f"{rank} x {rows} values of P")
        q = reader.array("<f4", rank * columns, f"{rank} x {columns} values of Q")
        reader.end()
        both = check_vector(np.concatenate([p, q]).astype(np.float32))
        out = np.empty(n, np.float32)
        p, q = both[: p.size].reshape(rank, rows), both[p.size :].reshape(rank, columns)
        _product(p, q, out)
        return out


def _filled(q: Floats, seed: int) -> Floats:
    """Return q with its zero columns (rows here) drawn from the seed."""
    filled, key = q.copy(), _random.key(seed, "columns")
    for c in np.flatnonzero(~q.any(axis=1)):
        filled[c] = _random.uniforms(key, int(c) * q.shape[1], q.shape[1]) - 0.5
    return filled


def _narrowed(q: _Factor) -> Floats:
    """Return q as float32; CodecError if a value is beyond it."""
    largest = float(np.abs(q).max(initial=0))
    if largest > float(np.finfo(np.float32).max):
        raise CodecError(
            f"a value {largest:.3g} of a factor is beyond float32: scale the vector down"
        )
    return q.astype(np.float32)
