"""EF-SignSGD (Karimireddy et al., ICML 2019, Algorithm 1): scaled signs with error feedback.

What is sent of p = x + e is sign(p) |p|_1 / d, and e becomes what is missing of p. The step size
inside the paper's residual is left to the optimizer.
"""

from dataclasses import dataclass
from typing import ClassVar

from gradplane.codecs._base import Codec, Floats, State
from gradplane.codecs._feedback import ErrorFeedback, Residual
from gradplane.codecs.signsgd import SignSGD


@dataclass(frozen=True)
class EFSignSGD(Codec):
    """1 bit a value, and each worker's own scale. State: the residual, float32[n].

    Bytes, per 2^20 values: mean magnitude (float32), signs of 1 bit, 1 for p >= 0, the first in the
    lowest. Biased in a round; over rounds all that was given is sent but the last residual, and a
    round keeps a part |e'|^2 = |p|_2^2 - |p|_1^2 / d of what it was asked for. It has error
    feedback: do not wrap it in another. Scales differ between workers, so codes cannot be summed.
    """

    _signs: ClassVar[ErrorFeedback] = ErrorFeedback(SignSGD())

    def start(self, n: int) -> Residual:
        """A residual of zeros."""
        return self._signs.start(n)

    def skip(self, x: Floats, state: State = None) -> Residual:
        """The whole of x + e stays."""
        return self._signs.skip(x, state)

    def max_size(self, n: int) -> int:
        """Exactly the bytes of n values."""
        return self._signs.max_size(n)

    def _encode(
        self, x: Floats, shared: Floats | None, seed: int, state: State, worker: int
    ) -> tuple[bytes, State]:
        return self._signs.encode(x, None, seed, state, worker)

    def _decode(self, data: bytes, n: int) -> Floats:
        return self._signs.decode(data, n)
