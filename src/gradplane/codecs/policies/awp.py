"""AWP, adaptive weight precision (A2DTWP, section II, Algorithm 1): the bits that a layer needs.

    policy = AWP(threshold=-2e-3, interval=4000)
    state = policy.start(len(layers))
    for each batch:
        ... the workers compute with the weights that were sent, the weights are updated ...
        state = policy.update(state, layers)        # each one array, or a block of several
        for layer, bits in zip(layers, state.bits):
            data, _ = policy.codec(bits).encode(layer)   # ADT

A batch counts for a layer if its weights' l2-norm changed by less than `threshold` (negative: it
shrank) relative to the batch before; after `interval` such batches, in a row or not, the layer
gets `step` more bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import _hadamard
from gradplane.codecs._base import Codec, CodecError, Floats, check_int, check_number, check_vector
from gradplane.codecs.adt import ADT

Layer = Floats | Sequence[Floats]
FULL = 32


@dataclass(frozen=True)
class Precision:
    """A policy's state per layer: bits, batches counted since they last rose, and the last norm.

    `norms` is empty before the first batch.
    """

    bits: tuple[int, ...]
    counts: tuple[int, ...]
    norms: tuple[float, ...] = ()


@dataclass(frozen=True)
class AWP:
    """The policy AWP; the paper's T is -5e-2 for Alexnet, -2e-3 for VGG and -2e-5 for Resnet.

    threshold (T): a finite number; interval (INTERVAL) >= 1 batches; step (N) 1 to 32 bits; initial
    1 to 32 bits. Bits stop at 32. The first batch and one whose previous norm is 0 have no change
    rate and do not count. CodecError for parameters out of range.
    """

    threshold: float = -2e-3
    interval: int = 4000
    step: int = 8
    initial: int = 8

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, "that is finite", lambda t: True)
        check_int("interval", self.interval, 1)
        check_int("step", self.step, 1, FULL)
        check_int("initial", self.initial, 1, FULL)

    def start(self, layers: int) -> Precision:
        """Return a state with all layers at the initial precision."""
        layers = check_int("layers", layers, 0)
        return Precision((self.initial,) * layers, (0,) * layers)

    def update(self, state: Precision, layers: Sequence[Layer]) -> Precision:
        """Return the state after a batch that led to these weights: float32 of any shape, finite.

        A layer may be a sequence of arrays that share a precision (the paper: Resnet's blocks).
        """
        return self.observe(state, [norm(layer) for layer in layers])

    def observe(self, state: Precision, norms: Sequence[float]) -> Precision:
        """Return the state as update() does, from the layers' l2-norms."""
        if len(norms) != len(state.bits):
            raise CodecError(f"the state has {len(state.bits)} layers, the model {len(norms)}")
        for i, value in enumerate(norms):
            check_number(f"the norm of layer {i}", value, "from 0", lambda v: v >= 0)
        before = state.norms or (0.0,) * len(norms)
        pairs = [
            self._next(bits, count + self._counts(last, now))
            for bits, count, last, now in zip(state.bits, state.counts, before, norms, strict=True)
        ]
        bits, counts = (tuple(column) for column in zip(*pairs, strict=True)) if pairs else ((), ())
        return Precision(bits, counts, tuple(norms))

    def codec(self, bits: int) -> Codec:
        """Return ADT with as many bytes as hold that many bits."""
        return ADT(keep=-(-check_int("bits", bits, 1, FULL) // 8))

    def _counts(self, last: float, now: float) -> bool:
        return last > 0 and (now - last) / last < self.threshold

    def _next(self, bits: int, count: int) -> tuple[int, int]:
        """Return the new bits and count, when `count` batches have counted."""
        return (min(bits + self.step, FULL), 0) if count == self.interval else (bits, count)


def norm(layer: Layer) -> float:
    """Return the l2-norm of a layer's weights, in float64: of one array, or of several as one."""
    arrays = [layer] if isinstance(layer, np.ndarray) else layer
    return math.hypot(*(_hadamard.norm(_flat(array)) for array in arrays))


def _flat(array: Floats) -> Floats:
    return check_vector(array.reshape(-1) if isinstance(array, np.ndarray) else array)
