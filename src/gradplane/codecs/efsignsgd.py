"""EF-SignSGD (Karimireddy et al., ICML 2019, Algorithm 1): scaled signs with error feedback.

Of p = x + e, sign(p) |p|_1 / d is sent, and e becomes the rest of p. The step size
inside the paper's residual is left to the optimizer.
"""

import dataclasses
from dataclasses import dataclass

from gradplane.codecs._base import Codec, CodecError, Context, Floats, State
from gradplane.codecs._feedback import ErrorFeedback
from gradplane.codecs.signsgd import SignSGD


@dataclass(frozen=True)
class EFSignSGD(Codec):
    """Signs of 1 bit per value and a scale per worker. State: the residual, float32[n].

    Bytes, per 2^20 values: mean magnitude (float32), signs of 1 bit, 1 for p >= 0, the first in the
    lowest. Biased in a round; over rounds everything but the last residual is sent, and a
    round leaves |e'|^2 = |p|_2^2 - |p|_1^2 / d. Scales differ between
    workers, so codes cannot be summed. accumulate=False: e is always 0, as inside ErrorFeedback.
    """

    by_tensor = True

    accumulate: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.accumulate, bool):
            raise CodecError(f"accumulate must be True or False, got {self.accumulate!r}")

    @property
    def memoryless(self) -> Codec:
        """The codec without residual, which sends the signs of x alone."""
        return dataclasses.replace(self, accumulate=False)

    @property
    def _signs(self) -> Codec:
        return ErrorFeedback(SignSGD()) if self.accumulate else SignSGD()

    def start(self, n: int) -> State:
        """Return a residual of zeros; None without `accumulate`."""
        return self._signs.start(n)

    def skip(self, x: Floats, state: State = None) -> State:
        """Keep all of x + e; without `accumulate`, nothing."""
        return self._signs.skip(x, state)

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return self._signs.max_size(n)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return self._signs._encode(x, dataclasses.replace(context, shared=None))

    def _decode(self, data: bytes, n: int) -> Floats:
        return self._signs.decode(data, n)
