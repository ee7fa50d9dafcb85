"""A small convolutional network in NumPy, as a job's model: "gradplane.studies.digits_cnn:cnn".

Two convolutions of 3 by 3 with ReLU, the largest of each 2 by 2, and a layer of classes: the model
of the recorded gradients digits-cnn.
"""

from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import Floats, key
from gradplane.hosts.philox import uniforms
from gradplane.hosts.training.models import Labels, Tensor

Places = npt.NDArray[np.intp]


class Cnn:
    """Images of `side` by `side` pixels, an even number, in so many classes."""

    def __init__(self, side: int, classes: int, channels: tuple[int, int]) -> None:
        first, second = channels
        shapes = {
            "conv1.weights": (first, 1, 3, 3), "conv1.bias": (first,),
            "conv2.weights": (second, first, 3, 3), "conv2.bias": (second,),
            "classes.weights": (classes, second * (side // 2) ** 2), "classes.bias": (classes,),
        }  # fmt: skip
        ends = np.cumsum([0, *(prod(shape) for shape in shapes.values())])
        self.tensors = tuple(
            Tensor(name, shape, int(start))
            for (name, shape), start in zip(shapes.items(), ends, strict=False)
        )
        self.side, self.size = side, int(ends[-1])

    def parameters(self, seed: int) -> Floats:
        """Draw weights uniform within sqrt(3 / fan-in); biases are 0."""
        vector = np.zeros(self.size, np.float32)
        for tensor in self.tensors[::2]:
            limit = sqrt(3 / prod(tensor.shape[1:]))
            draws = uniforms(key(seed, "model", tensor.name), tensor.size)
            tensor.view(vector)[:] = (limit * (2 * draws - 1)).reshape(tensor.shape)
        return vector

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return the mean cross entropy of float32[n, pixels], int64[n]; and its gradient."""
        inputs, scores = self._forward(params, x)
        scores = scores - scores.max(1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(1, keepdims=True)
        rows = np.arange(len(y))
        loss = -float(np.log(chances[rows, y] + np.float32(1e-30)).mean())
        chances[rows, y] -= 1
        return loss, self._backward(params, inputs, chances / np.float32(len(y)))

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return each row's most likely class, of float32[n, pixels]."""
        found: Labels = self._forward(params, x)[1].argmax(1)
        return found

    def _forward(self, params: Floats, x: Floats) -> tuple[dict[str, Any], Floats]:
        """Return what the backward pass needs, and the scores float32[n, classes]."""
        w1, b1, w2, b2, w3, b3 = (tensor.view(params) for tensor in self.tensors)
        kept: dict[str, Any] = {"first": _patches(x.reshape(len(x), self.side, self.side, 1))}
        kept["hidden"] = np.maximum(kept["first"] @ _rows(w1).T + b1, 0)
        kept["second"] = _patches(kept["hidden"])
        maps = np.maximum(kept["second"] @ _rows(w2).T + b2, 0)
        kept["maps"] = maps
        kept["flat"], kept["places"] = _pooled(maps)
        return kept, kept["flat"] @ w3.T + b3

    def _backward(self, params: Floats, kept: dict[str, Any], slope: Floats) -> Floats:
        gradient = np.empty(self.size, np.float32)
        w1, b1, w2, b2, w3, b3 = (tensor.view(gradient) for tensor in self.tensors)
        w3[:], b3[:] = slope.T @ kept["flat"], slope.sum(0)
        slope = _unpooled(slope @ self.tensors[4].view(params), kept["places"], kept["maps"].shape)
        slope = _through(slope * (kept["maps"] > 0), kept["second"], w2, b2)
        weights = _rows(self.tensors[2].view(params))
        slope = _folded(slope @ weights, len(b1)) * (kept["hidden"] > 0)
        _through(slope, kept["first"], w1, b1)
        return gradient


def cnn(features: int, classes: int, channels: tuple[int, int] = (16, 32)) -> Cnn:
    """Return the network for square images; ValueError for other ones or an odd side."""
    side = round(sqrt(features))
    if side * side != features or side % 2:
        raise ValueError(f"cnn: {features} features are no square image of an even side")
    return Cnn(side, classes, (channels[0], channels[1]))


def _patches(x: Floats) -> Floats:
    """Return the 3 by 3 pixels around each pixel, [n, h, w, 9 * channels], zeros at the edges."""
    n, h, w, channels = x.shape
    padded = np.zeros((n, h + 2, w + 2, channels), x.dtype)
    padded[:, 1:-1, 1:-1] = x
    return np.concatenate(
        [padded[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], axis=3
    )


def _rows(weights: Floats) -> Floats:
    """Return a convolution's weights as _patches has the pixels, [out, 9 * in]."""
    return weights.transpose(0, 2, 3, 1).reshape(len(weights), -1)


def _folded(patches: Floats, channels: int) -> Floats:
    """Add patches' values to the pixels that they come from: _patches backwards."""
    n, h, w, _ = patches.shape
    found = np.zeros((n, h + 2, w + 2, channels), np.float32)
    each = patches.reshape(n, h, w, 3, 3, channels)
    for i in range(3):
        for j in range(3):
            found[:, i : i + h, j : j + w] += each[:, :, :, i, j]
    return found[:, 1:-1, 1:-1]


def _through(slope: Floats, patches: Floats, weights: Floats, bias: Floats) -> Floats:
    """Write a convolution's gradients from the slope of its output, which is returned."""
    rows = slope.reshape(-1, slope.shape[-1])
    found = rows.T @ patches.reshape(len(rows), -1)
    weights[:] = found.reshape(len(weights), 3, 3, -1).transpose(0, 3, 1, 2)
    bias[:] = rows.sum(0)
    return slope


def _pooled(maps: Floats) -> tuple[Floats, Places]:
    """Return the largest of each 2 by 2 as [n, channels * h * w / 4], and which it was."""
    n, h, w, channels = maps.shape
    squares = maps.reshape(n, h // 2, 2, w // 2, 2, channels).transpose(0, 5, 1, 3, 2, 4)
    squares = squares.reshape(n, -1, 4)
    return squares.max(2), squares.argmax(2)


def _unpooled(slope: Floats, places: Places, shape: tuple[int, ...]) -> Floats:
    n, h, w, channels = shape
    squares = np.zeros((*slope.shape, 4), np.float32)
    np.put_along_axis(squares, places[..., None], slope[..., None], 2)
    squares = squares.reshape(n, channels, h // 2, w // 2, 2, 2).transpose(0, 2, 4, 3, 5, 1)
    return squares.reshape(shape)
