"""Gradients to study codecs on: drawn from a distribution, or recorded in a small training.

Equal seeds give equal gradients; the last digits of a training's depend on the machine's BLAS.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane.codecs._base import CodecError, Floats
from gradplane.hosts.training import datasets

Images = tuple[Floats, npt.NDArray[np.int64]]
Tensors = Callable[[list[Floats]], list[Floats]]
KINDS = ("laplace", "lognormal", "normal")


def drawn(kind: str, n: int, seed: int = 0) -> Floats:
    """Draw float32[n] from the standard laplace, lognormal (mu 0, sigma 1) or normal one."""
    if kind not in KINDS:
        raise CodecError(f'no distribution "{kind}"; there are {", ".join(KINDS)}')
    draw = getattr(np.random.default_rng(seed), kind)
    values: Floats = draw(size=n).astype(np.float32)
    return values


@dataclass(frozen=True)
class Step:
    """One batch: the loss before it, each tensor's gradient, and the weights after the update."""

    loss: float
    gradients: list[Floats]
    weights: list[Floats]


def training(
    steps: int,
    hidden: tuple[int, ...] = (256, 128),
    batch: int = 32,
    lr: float = 0.1,
    seed: int = 0,
    *,
    decay: float = 0.0,
    test: float = 0.0,
    send: Tensors = list,
    answer: Tensors = list,
    keep: Tensors = list,
) -> Iterator[Step]:
    """Train a perceptron on scikit-learn's digits (momentum 0.9, cosine decay); yield each step.

    The tensors are one weight matrix per layer (inputs + 1 by outputs, the last row the biases).
    lr: the initial rate. decay: the factor of the weight decay. test: the share of images held out
    for accuracy(). send: returns the weights as they arrive where the gradients are computed;
    answer: the gradients as they arrive where the weights are updated; keep: the updated weights as
    they are stored.
    """
    (images, labels), _ = _split(test)
    chance = np.random.default_rng(seed)
    sizes = (images.shape[1], *hidden, 10)
    weights = [_initial(a, b, chance) for a, b in zip(sizes, sizes[1:], strict=False)]
    velocity = [np.zeros_like(w) for w in weights]
    for step in range(steps):
        rows = chance.choice(len(labels), batch, replace=False)
        loss, gradients = _backward(send(weights), images[rows], labels[rows])
        gradients = answer(gradients)
        rate = np.float32(lr / 2 * (1 + np.cos(np.pi * step / steps)))
        pulls = [g + np.float32(decay) * w for g, w in zip(gradients, weights, strict=True)]
        velocity = [np.float32(0.9) * v + p for v, p in zip(velocity, pulls, strict=True)]
        weights = keep([w - rate * v for w, v in zip(weights, velocity, strict=True)])
        yield Step(loss, gradients, weights)


def accuracy(weights: list[Floats], test: float) -> float:
    """Return the share of the images held out by training(test=test) that the weights get right."""
    _, (images, labels) = _split(test)
    guesses = _forward(weights, images)[1].argmax(1)
    return float(np.mean(guesses == labels))


def flat(tensors: list[Floats]) -> Floats:
    """Return all tensors' values as one vector."""
    return np.concatenate([tensor.reshape(-1) for tensor in tensors])


def _split(test: float) -> tuple[Images, Images]:
    """Return the images to learn and the held-out ones; the split is always the same."""
    digits = datasets.read(datasets.BUNDLED["digits"])
    images, labels = (digits[:, :-1] / 16 - 0.5).astype(np.float32), digits[:, -1].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    held, kept = np.split(order, [round(test * len(labels))])
    kept.sort()
    return (images[kept], labels[kept]), (images[held], labels[held])


def _initial(inputs: int, outputs: int, chance: np.random.Generator) -> Floats:
    weights = chance.normal(0, (2 / inputs) ** 0.5, (inputs + 1, outputs)).astype(np.float32)
    weights[-1] = 0
    return weights


def _with_one(rows: Floats) -> Floats:
    return np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)


def _forward(weights: list[Floats], images: Floats) -> tuple[list[Floats], Floats]:
    """Return each layer's inputs, and the scores."""
    inputs = [_with_one(images)]
    for w in weights[:-1]:
        inputs.append(_with_one(np.maximum(inputs[-1] @ w, 0)))
    return inputs, inputs[-1] @ weights[-1]


def _backward(
    weights: list[Floats], images: Floats, labels: npt.NDArray[np.int64]
) -> tuple[float, list[Floats]]:
    """Return the cross entropy and its gradient with respect to each tensor."""
    inputs, scores = _forward(weights, images)
    scores -= scores.max(1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    right = (np.arange(len(labels)), labels)
    loss = float(-np.log(chances[right] + 1e-30).mean())
    chances[right] -= 1
    slope, gradients = chances / np.float32(len(labels)), []
    for w, rows in zip(weights[::-1], inputs[::-1], strict=True):
        gradients.append(rows.T @ slope)
        slope = (slope @ w[:-1].T) * (rows[:, :-1] > 0)
    return loss, gradients[::-1]
