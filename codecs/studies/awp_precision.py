"""AWP's precision over training and the bytes it saves ADT (A2DTWP, Fig. 4, Tables II, III)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradplane.codecs.policies.awp import AWP, Layer

PAPER_WEIGHT_RATIO = 3.0  # "close to 3x reduction in terms of weights size", section V-G


@dataclass(frozen=True)
class Precisions:
    """Each batch's bits per layer, as sent before the batch, and each layer's number of weights."""

    bits: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    @property
    def bytes_sent(self) -> int:
        """By ADT, over all batches."""
        return sum(self._bytes(batch) for batch in self.bits)

    @property
    def ratio(self) -> float:
        """Bytes of float32 weights over those sent."""
        return 4 * sum(self.sizes) * len(self.bits) / self.bytes_sent

    def _bytes(self, batch: tuple[int, ...]) -> int:
        return sum(-(-b // 8) * size for b, size in zip(batch, self.sizes, strict=True))


def precisions(batches: Iterable[Sequence[Layer]], policy: AWP) -> Precisions:
    """`batches` are the weights after each batch, a layer (or block of arrays) each; at least 1."""
    bits, state = [], None
    sizes: tuple[int, ...] = ()
    for layers in batches:
        if state is None:
            state, sizes = policy.start(len(layers)), tuple(map(_size, layers))
        bits.append(state.bits)
        state = policy.update(state, layers)
    return Precisions(tuple(bits), sizes)


def _size(layer: Layer) -> int:
    return sum(array.size for array in layer) if isinstance(layer, Sequence) else layer.size
