"""AWP's precision over a training and the bytes it saves ADT (A2DTWP, Algorithm 1, section V-G).

The training follows the paper: the host keeps float32 weights and, before each batch, sends them
through ADT at each layer's precision to where the gradients are computed. Biases are not
compressed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs._base import Floats
from gradplane.codecs.policies.awp import AWP
from gradplane.studies import gradients

PAPER_WEIGHT_RATIO = 3.0  # "close to 3x reduction in terms of weights size", section V-G
TEST = 0.2  # the share of images held out of the training
NEVER = -1e9  # a threshold that no change rate falls below: the precision never changes


@dataclass(frozen=True)
class PolicyTraining:
    """A whole training under a policy.

    bits: each layer's bits, as sent before each batch. sizes: each layer's weights, without
    biases. sent: bytes of weights over all batches after ADT. rates: the mean change rate
    of each layer's l2-norm. accuracy: on held-out images, with the final weights as sent."""

    bits: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    sent: int
    rates: tuple[float, ...]
    accuracy: float

    @property
    def ratio(self) -> float:
        """The compression ratio: bytes of the weights as float32 over bytes sent."""
        return 4 * sum(self.sizes) * len(self.bits) / self.sent

    def since(self, layer: int, bits: int) -> int | None:
        """Return the first batch before which the layer had at least `bits` bits, or None."""
        return next((n for n, now in enumerate(self.bits) if now[layer] >= bits), None)


class _Sender:
    """Sends the weights to where gradients are computed, through ADT at the current precisions."""

    def __init__(self, policy: AWP, blocks: Sequence[Sequence[int]]) -> None:
        self.policy, self.blocks = policy, blocks
        self.precision = policy.start(len(blocks))
        self.sent = 0

    def bits(self) -> tuple[int, ...]:
        """Return the bits of each layer."""
        pairs = zip(self.blocks, self.precision.bits, strict=True)
        return tuple(bits for block, bits in pairs for _ in block)

    def send(self, weights: list[Floats]) -> list[Floats]:
        """Return each layer as it arrives: weights through ADT, biases (the last row) unchanged."""
        return [self._through(w, bits) for w, bits in zip(weights, self.bits(), strict=True)]

    def _through(self, layer: Floats, bits: int) -> Floats:
        codec, plain = self.policy.codec(bits), layer[:-1].reshape(-1)
        data, _ = codec.encode(plain)
        self.sent += len(data)
        arrived = codec.decode(data, plain.size).reshape(layer[:-1].shape)
        return np.concatenate([arrived, layer[-1:]])

    def update(self, weights: list[Floats]) -> None:
        """Let the policy see the weights after a batch."""
        layers = [[weights[i][:-1] for i in block] for block in self.blocks]
        self.precision = self.policy.update(self.precision, layers)


def train(
    policy: AWP,
    steps: int,
    hidden: tuple[int, ...],
    *,
    batch: int = 32,
    lr: float = 0.05,
    decay: float = 5e-4,
    block: int = 1,
    seed: int = 0,
) -> PolicyTraining:
    """Train a perceptron on handwritten digits while the policy chooses precisions.

    Groups of `block` neighbouring layers share a precision."""
    layers = range(len(hidden) + 1)
    sender = _Sender(policy, [layers[i : i + block] for i in layers[::block]])
    bits, norms, weights = [], [], []
    for step in gradients.training(
        steps, hidden, batch, lr, seed, decay=decay, test=TEST, send=sender.send
    ):
        weights = step.weights
        bits.append(sender.bits())
        norms.append([float(np.linalg.norm(w[:-1])) for w in weights])
        sender.update(weights)
    changes = np.diff(norms, axis=0) / np.array(norms)[:-1]
    sent = sender.sent
    return PolicyTraining(
        tuple(bits),
        tuple(w[:-1].size for w in weights),
        sent,
        tuple(changes.mean(0).tolist()) if steps > 1 else (0.0,) * len(weights),
        gradients.accuracy(sender.send(weights), TEST),
    )
