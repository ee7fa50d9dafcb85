"""Deep gradient compression (Lin et al., ICLR 2018): top-k with a memory and momentum correction.

A worker clips its gradient, adds it to a momentum u and u to a sum v, sends the k values of v of
greatest magnitude and clears both u and v there (momentum factor masking). The optimizer of
the result must have no momentum.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import _hadamard, _select
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Reader,
    State,
    check_int,
    check_number,
    check_positive,
    check_state,
    check_vector,
)
from gradplane.codecs._select import largest_magnitudes


@dataclass(frozen=True)
class Memory:
    """Momentum u and unsent sum v, float32[n] each; and the number of rounds."""

    momentum: Floats
    unsent: Floats
    rounds: int

    @property
    def n(self) -> int:
        """The number of values."""
        return self.unsent.size


@dataclass(frozen=True)
class DGC(Codec):
    """Sends round(fraction * n) values, at least one; what is not sent stays in the state.

    0 < fraction <= 1; 0 <= momentum < 1; clip > 0, the greatest norm a worker's gradient may have
    (in the paper the global threshold over the root of the number of workers), or None; warmup >= 0
    rounds a stage: stage j = 0, 1, ... sends a part 4^-(j + 1) while that is above the fraction.
    Bytes: number of values k (uint32), k indices (uint32, ascending), k values (float32).
    Deterministic, biased in a round; the first round of warmup=0 is TopK's, later rounds send from
    the memory. accumulate=False keeps neither u nor v but counts rounds, as inside ErrorFeedback,
    which then does v's work; momentum correction needs this codec's memory.
    """

    fraction: float = 0.001
    momentum: float = 0.9
    clip: float | None = None
    warmup: int = 0
    accumulate: bool = True

    def __post_init__(self) -> None:
        _select.check_density(self.fraction, None)
        check_number("momentum", self.momentum, "from 0 to below 1", lambda m: 0 <= m < 1)
        check_positive("clip", self.clip)
        check_int("warmup", self.warmup, 0)
        if not isinstance(self.accumulate, bool):
            raise CodecError(f"accumulate must be True or False, got {self.accumulate!r}")

    @property
    def memoryless(self) -> Codec:
        """The codec without momentum and unsent sum."""
        return dataclasses.replace(self, accumulate=False)

    def start(self, n: int) -> Memory:
        """Return an empty memory."""
        zeros = np.zeros(check_int("n", n, 0), np.float32)
        return Memory(zeros, zeros, 0)

    def skip(self, x: Floats, state: State = None) -> Memory:
        """Accumulate x without sending; the round counts for the warm-up."""
        return self._accumulated(check_vector(x), state)

    def density(self, rounds: int) -> float:
        """Return the fraction of values that is sent after so many rounds."""
        if self.warmup == 0:
            return self.fraction
        return max(self.fraction, 0.25 ** min(rounds // self.warmup + 1, 500))

    def max_size(self, n: int) -> int:
        """Return 4 bytes, and 8 a value that is sent in the densest round, the first."""
        return 4 + 8 * _select.kept(n, self.density(0))

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, Memory]:
        memory = self._accumulated(x, context.state)
        k = _select.kept(x.size, self.density(memory.rounds - 1))
        sent = largest_magnitudes(memory.unsent, k)
        data = k.to_bytes(4, "little") + _select.pack(sent, memory.unsent[sent])
        memory.momentum[sent] = 0
        memory.unsent[sent] = 0
        return data, memory

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        k = int(reader.array("<u4", 1, "number of values")[0])
        most = _select.kept(n, self.density(0))
        if k > most:
            raise CodecError(f"{k} values, of {n} at most {most} are sent")
        return _select.unpack(reader, k, n)

    def _accumulated(self, x: Floats, state: State) -> Memory:
        """Return a new memory that includes x."""
        old = check_state("dgc", state, Memory, x.size)
        if not self.accumulate:
            old = dataclasses.replace(self.start(x.size), rounds=old.rounds)
        with np.errstate(over="ignore", invalid="ignore"):
            momentum = np.float32(self.momentum) * old.momentum + self._clipped(x)
            unsent = old.unsent + momentum
        return Memory(momentum, check_vector(unsent), old.rounds + 1)

    def _clipped(self, x: Floats) -> Floats:
        norm = _hadamard.norm(x) if self.clip else 0.0
        if self.clip is None or norm <= self.clip:
            return x
        return (x * np.float64(self.clip / norm)).astype(np.float32)
