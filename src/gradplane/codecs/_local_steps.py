"""Several local steps around any codec: 3LC's "2 local steps" (section 5.1), for any number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Rounds,
    State,
    check_int,
    check_vector,
)
from gradplane.codecs._per_tensor import PerTensor


@dataclass(frozen=True)
class Steps:
    """The accumulated sum, float32[n]; the number of rounds; the wrapped codec's state."""

    total: Floats
    rounds: int
    inner: State


@dataclass(frozen=True)
class LocalSteps(Codec):
    """Sends the sum of its vectors in every `steps`-th round, and nothing, b"", in the others.

    steps >= 1. b"" decodes to zeros. Only the wrapped codec is lossy. All workers count the
    same rounds, so they send in the same ones; after a sending round that was skipped, all is sent
    in the next one. The state is needed in every call that sees x; in rounds without
    sending there is no statistic. Codes cannot be summed in the network, which has no code for
    "nothing". With error feedback: LocalSteps(ErrorFeedback(codec)), not the other way round.
    """

    codec: Codec
    steps: int = 2

    def __post_init__(self) -> None:
        check_int("steps", self.steps, 1)

    @property
    def name(self) -> str:
        """The wrapped codec's name."""
        return self.codec.name

    @property
    def config(self) -> dict[str, Any]:
        """The wrapped codec's configuration, with local_steps."""
        return self.codec.config | {"local_steps": self.steps}

    def start(self, n: int) -> Steps:
        """Return a state with nothing accumulated."""
        return Steps(np.zeros(check_int("n", n, 0), np.float32), 0, self.codec.start(n))

    def skip(self, x: Floats, state: State = None) -> Steps:
        """Keep x for the next sending round."""
        return Steps(self._total(x, state), state.rounds + 1, state.inner)

    def _local(self, x: Floats, state: State) -> Floats | None:
        """Return the wrapped codec's statistic of the sum to send; None if nothing is sent."""
        total = self._total(x, state)
        return self.codec.local(total, state.inner) if self._sends(state) else None

    @property
    def carriers(self) -> tuple[Codec, ...]:
        """The wrapped codec's carriers, in all rounds."""
        found = self.codec.carriers
        if any(type(carrier) is PerTensor for carrier in found):
            raise CodecError(
                "local steps: tensors by powersgd beside others by a lossy codec cannot be left out"
                " of a round together: use powersgd and float32, or local_steps = 1"
            )
        return found

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Reduce the sum, or exchange vectors of no values where nothing is sent."""
        total = self._total(x, state)
        if self._sends(state):
            mean, inner = yield from self.codec.reduce(total, seed, state.inner, worker)
            return mean, Steps(np.zeros_like(total), state.rounds + 1, inner)
        for _ in self.carriers:
            yield np.zeros(0, np.float32)
        return np.zeros_like(total), Steps(total, state.rounds + 1, state.inner)

    def merge(self, vectors: Sequence[Floats]) -> Floats:
        """Merge as the wrapped codec."""
        return self.codec.merge(vectors)

    def max_size(self, n: int) -> int:
        """Return the wrapped codec's bound."""
        return self.codec.most_bytes(n)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, Steps]:
        steps = context.state
        total = self._total(x, steps)
        if not self._sends(steps):
            return b"", Steps(total, steps.rounds + 1, steps.inner)
        data, inner = self.codec.encode_checked(total, replace(context, state=steps.inner))
        return data, Steps(np.zeros_like(total), steps.rounds + 1, inner)

    def _decode(self, data: bytes, n: int) -> Floats:
        return self.codec.decode(data, n) if data else np.zeros(n, np.float32)

    def _sends(self, state: Steps) -> bool:
        return (state.rounds + 1) % self.steps == 0

    def _total(self, x: Floats, state: State) -> Floats:
        x = check_vector(x)
        if not isinstance(state, Steps):
            raise CodecError("local steps need the state of start(n) or of the last call")
        if state.total.shape != x.shape:
            raise CodecError(f"the sum has {state.total.size} values, the vector {x.size}")
        with np.errstate(over="ignore"):
            return check_vector(x + state.total)
