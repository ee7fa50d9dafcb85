"""A2DTWP, algorithm 1: AWP's precision over a training, and what it saves ADT."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from gradplane.codecs._base import Floats
from gradplane.codecs.policies.awp import AWP
from gradplane.studies import gradients, plot
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome

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


Width = Annotated[int, Field(strict=True, ge=1)]
WIDTHS = (8, 16, 24, 32)
HEADS = tuple(f"{width} bits\nfrom" for width in WIDTHS[1:])


class Precision(Study):
    """The training of a perceptron on handwritten digits; weights are sent before every batch.

    `block` neighbouring layers share a precision, as Resnet's blocks do in the paper. The layers'
    bits are those of the first of `repetitions` trainings, accuracies and ratios means of all."""

    name: Literal["awp-precision"] = "awp-precision"
    threshold: float = Field(default=-5e-5, allow_inf_nan=False)
    interval: int = Field(default=100, ge=1)
    step: int = Field(default=8, ge=1, le=32)
    steps: int = Field(default=900, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    block: int = Field(default=1, ge=1)
    batch: int = Field(default=32, ge=1, le=1438)
    lr: float = Field(default=0.05, gt=0)
    decay: float = Field(default=5e-4, ge=0)
    repetitions: int = Field(default=5, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each layer, then one for AWP and one for each fixed precision."""
        adaptive = AWP(self.threshold, self.interval, self.step)
        runs = {"AWP": [self._train(adaptive, seed + r) for r in range(self.repetitions)]}
        for bits in WIDTHS:
            fixed = AWP(NEVER, initial=bits)
            trained = [self._train(fixed, seed + r) for r in range(self.repetitions)]
            runs[f"{bits} bits"] = trained
        first = runs["AWP"][0]
        layers = range(len(first.sizes))
        return StudyOutcome(
            title=f"AWP: bits per weight over {self.steps} batches",
            head=("", "weights", *HEADS, "ratio", "accuracy", "the paper's"),
            rows=(
                *(self._layer(first, layer) for layer in layers),
                *(_scheme(label, trained) for label, trained in runs.items()),
            ),
            notes=self._notes(runs),
            values=[
                *(_layer_values(first, layer) for layer in layers),
                *(_values(label, trained) for label, trained in runs.items()),
            ],
            figure=_figure(first),
        )

    def _train(self, policy: AWP, seed: int) -> PolicyTraining:
        return train(
            *(policy, self.steps, self.hidden),
            batch=self.batch,
            lr=self.lr,
            decay=self.decay,
            block=self.block,
            seed=seed,
        )

    def _layer(self, first: PolicyTraining, layer: int) -> tuple[str, ...]:
        since = [first.since(layer, bits) for bits in WIDTHS[1:]]
        cells = ("never" if batch is None else str(batch) for batch in since)
        return (f"layer {layer}", f"{first.sizes[layer]:,}", *cells, "-", "-", NOT_IN_OUR_COPY)

    def _notes(self, runs: dict[str, list[PolicyTraining]]) -> tuple[str, ...]:
        awp, low, full = (_accuracy(runs[name]) for name in ("AWP", "8 bits", "32 bits"))
        rates = ", ".join(f"{rate:.1g}" for rate in runs["32 bits"][0].rates)
        return (
            "The columns in between give the first batch in which a layer has that many bits. A"
            " layer whose norm shrinks gains precision, each layer at a different time; one whose"
            f" norm grows gains it late or never. On held-out images AWP reaches {awp:.1%}, 32 bits"
            f" reach {full:.1%} and 8 bits {low:.1%}.",
            "The paper reports that weights became close to 3 times smaller without loss of"
            " accuracy; its bits over batches are not in our copy.",
            "Why they differ: weight decay is the paper's (0.0005), but a perceptron's norms change"
            f" far more slowly than those of its networks (per batch, {rates} of each layer's norm"
            f" with 32 bits), so T is {self.threshold:g} instead of -5e-2 to -2e-5, and the"
            f" interval is {self.interval} batches instead of 2000 or 4000. These two values and"
            " the length of the training determine how long 8 bits last, and so the ratio.",
        )


def _accuracy(trained: list[PolicyTraining]) -> float:
    return fmean(one.accuracy for one in trained)


def _ratio(trained: list[PolicyTraining]) -> float:
    return fmean(one.ratio for one in trained)


def _paper(label: str) -> float | None:
    return PAPER_WEIGHT_RATIO if label == "AWP" else None


def _scheme(label: str, trained: list[PolicyTraining]) -> tuple[str, ...]:
    paper = _paper(label)
    size, accuracy = f"{sum(trained[0].sizes):,}", f"{_accuracy(trained):.1%}"
    said = f"ratio {paper:g}" if paper else "-"
    return (label, size, "-", "-", "-", f"{_ratio(trained):.2f}", accuracy, said)


def _layer_values(first: PolicyTraining, layer: int) -> dict[str, object]:
    return {
        "layer": layer,
        "weights": first.sizes[layer],
        "bits": [bits[layer] for bits in first.bits],
        "change_rate": first.rates[layer],
        "paper": None,
    }


def _values(label: str, trained: list[PolicyTraining]) -> dict[str, object]:
    return {
        "scheme": label,
        "ratio": _ratio(trained),
        "accuracy": _accuracy(trained),
        "accuracies": [one.accuracy for one in trained],
        "paper_ratio": _paper(label),
    }


def _figure(first: PolicyTraining) -> Figure:
    bits = np.array(first.bits)
    batches = list(range(len(bits)))
    lines = {f"layer {n}": (batches, bits[:, n].tolist()) for n in range(len(first.sizes))}
    return plot.stairs(lines, "batch", "bits per weight", WIDTHS)
