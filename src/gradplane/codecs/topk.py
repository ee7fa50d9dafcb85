"""Top-k sparsification: the k values of greatest magnitude, and their indices.

Aji & Heafield (EMNLP 2017), Stich et al. (NeurIPS 2018); "TopK 10%" in THC's figures is
fraction = 0.1.
"""

from dataclasses import dataclass

from gradplane.codecs import _select
from gradplane.codecs._base import Codec, Context, Floats, Reader, State
from gradplane.codecs._select import largest_magnitudes


@dataclass(frozen=True)
class TopK(Codec):
    """Sends k values, or if k is None round(fraction * n) and at least one; the rest decode to 0.

    0 < fraction <= 1, k >= 1 or None. Of equal magnitudes at the border those of lowest index.
    Bytes: k indices (uint32, ascending), k values (float32). How many follows from n.
    Deterministic, biased; |x - y|^2 <= (1 - k / n) |x|^2, so ErrorFeedback makes it converge.
    """

    fraction: float = 0.1
    k: int | None = None

    def __post_init__(self) -> None:
        _select.check_density(self.fraction, self.k)

    def max_size(self, n: int) -> int:
        """Return 8 bytes a value that is sent."""
        return 8 * self._kept(n)

    def _kept(self, n: int) -> int:
        return _select.kept(n, self.fraction, self.k)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        indices = largest_magnitudes(x, self._kept(x.size))
        return _select.pack(indices, x[indices]), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        return _select.unpack(Reader(data), self._kept(n), n)
