"""Models in NumPy whose parameters are one flat float32 vector, as it is sent.

A model is any object with the attributes of `Model`; `build` makes a bundled one by name, or a
user-defined one as "module:object". Equal arguments give equal bits on one machine with one BLAS
thread: sums have a fixed order.

The tensors of a model are named pieces of its flat parameter vector.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from gradplane._finite import known_finite
from gradplane._plugins import LoadError, call, described, is_reference, load, own, returned
from gradplane._suggestions import did_you_mean, quoted
from gradplane.codecs import key
from gradplane.hosts.philox import uniforms
from gradplane.hosts.protocols.once import Once, constant

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tensor:
    """A named piece of the parameter vector: values [offset, offset + size) in row order."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.shape)

    def view(self, vector: Floats) -> Floats:
        """Return the tensor's part of a flat vector, in its shape, sharing memory."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)


DISTRIBUTIONS = ("normal", "lognormal")
_SEED = 0


class Synthetic:
    """A model whose gradients are the same values, rotated by a distance that the batch decides.

    It predicts class -1, so its accuracy is 0 on any data.
    """

    def __init__(self, twice: Floats) -> None:
        """Take finite values twice, one after the other, float32[2 n]."""
        self._size, self._twice = twice.size // 2, known_finite(constant(twice))
        self.tensors: tuple[Tensor, ...] = (Tensor("values", (self._size,), 0),)

    def parameters(self, seed: int) -> Floats:
        """Return zeros, float32[n]."""
        return np.zeros(self._size, np.float32)

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return loss 0, and the values from an index on that depends on the batch alone."""
        place = zlib.crc32(y.tobytes(), zlib.crc32(x.tobytes())) % self._size
        return 0.0, self._twice[place : place + self._size]

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return -1 for each row."""
        return np.full(len(x), -1, np.int64)


def synthetic(
    features: int,
    classes: int,
    values: int = 4096,
    distribution: str = "normal",
    scale: float = 1.0,
    file: str | None = None,
) -> Synthetic:
    """Return a model of `values` values, `scale` times draws from normal(0, 1) or lognormal(0, 1).

    With `file` they are, scaled, those of a .npy file, float32[n], such as a recorded gradient;
    values and distribution do not apply. LoadError for unusable arguments.
    """
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise LoadError(f"synthetic: scale must be a number, got {scale!r}")
    if file is not None:
        return Synthetic(_scaled(_read(file), scale))
    if distribution not in DISTRIBUTIONS:
        known = " or ".join(map(quoted, DISTRIBUTIONS))
        raise LoadError(f"synthetic: distribution must be {known}, got {quoted(distribution)}")
    if isinstance(values, bool) or not isinstance(values, int) or values < 1:
        raise LoadError(f"synthetic: values must be a positive integer, got {values!r}")
    return Synthetic(_drawn(values, distribution, scale))


@Once
def _drawn(values: int, distribution: str, scale: float) -> Floats:
    normal = _normal(values)
    return _scaled(normal if distribution == "normal" else np.exp(normal), scale)


def _scaled(drawn: npt.NDArray[np.floating[Any]], scale: float) -> Floats:
    """Return the values twice, one after the other, float32[2 n]."""
    with np.errstate(over="ignore"):
        gradient = (scale * drawn).astype(np.float32)
    if not np.isfinite(gradient).all():
        raise LoadError(f"synthetic: scale = {scale} makes values that are not finite")
    return np.concatenate((gradient, gradient))


def _normal(n: int) -> npt.NDArray[np.float64]:
    """Draw normal(0, 1), float64[n], by Box and Muller's method."""
    radius = np.sqrt(-2 * np.log1p(-uniforms(key(_SEED, "synthetic", "radius"), n)))
    normal: npt.NDArray[np.float64] = radius * np.cos(
        2 * np.pi * uniforms(key(_SEED, "synthetic", "angle"), n)
    )
    return normal


def _read(file: str) -> Floats:
    try:
        found = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError) as error:
        raise LoadError(f"synthetic: {file} cannot be read: {error}") from error
    if not isinstance(found, np.ndarray) or found.dtype != np.float32 or found.ndim != 1:
        what = (
            f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else "an archive"
        )
        raise LoadError(f"synthetic: {file} must hold float32[n], it is {what}")
    if found.size == 0:
        raise LoadError(f"synthetic: {file} holds no values")
    return found


__all__ = ["Model", "Perceptron", "Tensor", "accuracy", "build", "mlp", "softmax"]


class Model(Protocol):
    """The interface of a model. x: float32[n, features]; y: int64[n] from 0 to classes - 1."""

    tensors: tuple[Tensor, ...]

    def parameters(self, seed: int) -> Floats:
        """Return the initial parameters, float32[sum of the tensors' sizes]."""

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return the mean loss of a batch and its gradient with respect to the parameters."""

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return the most likely class of each row."""


class Perceptron:
    """Fully connected layers with ReLU between them, softmax cross entropy at the end.

    `sizes` are the features, the hidden layers' widths and the classes; without a hidden layer this
    is softmax regression.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.tensors = _layout(sizes)
        self.size = sum(tensor.size for tensor in self.tensors)

    def parameters(self, seed: int) -> Floats:
        """Draw weights uniform within sqrt(6 / fan-in), as He et al. 2015; biases are 0."""
        vector = np.zeros(self.size, np.float32)
        for tensor in self.tensors:
            if len(tensor.shape) == 2:
                stream = key(seed, "model", tensor.name)
                draws = 2 * uniforms(stream, tensor.size) - 1
                limit = sqrt(6 / tensor.shape[0])
                tensor.view(vector)[:] = (limit * draws).reshape(tensor.shape)
        return vector

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return the mean cross entropy of float32[n, features], int64[n]; and its gradient."""
        inputs, scores = self._forward(params, x)
        rows = np.arange(len(y))
        log_probabilities = _log_softmax(scores)
        loss = -float(log_probabilities[rows, y].mean())
        error = np.exp(log_probabilities)
        error[rows, y] -= 1
        error /= np.float32(len(y))
        return loss, self._backward(params, inputs, error)

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return each row's most likely class, of float32[n, features]; the lowest of equals."""
        return cast(Labels, self._forward(params, x)[1].argmax(axis=1))

    def _layers(self, vector: Floats) -> list[tuple[Floats, Floats]]:
        views = [tensor.view(vector) for tensor in self.tensors]
        return list(zip(views[::2], views[1::2], strict=True))

    def _forward(self, params: Floats, x: Floats) -> tuple[list[Floats], Floats]:
        """Return each layer's input, and the scores float32[n, classes]."""
        layers = self._layers(params)
        inputs = [x]
        for weights, bias in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ weights + bias, np.float32(0)))
        weights, bias = layers[-1]
        return inputs, inputs[-1] @ weights + bias

    def _backward(self, params: Floats, inputs: list[Floats], error: Floats) -> Floats:
        gradient = np.empty(self.size, np.float32)
        pieces = list(zip(self._layers(params), self._layers(gradient), inputs, strict=True))
        for (weights, _), (to_weights, to_bias), layer_input in reversed(pieces):
            np.matmul(layer_input.T, error, out=to_weights)
            np.sum(error, axis=0, out=to_bias)
            if (
                layer_input is not inputs[0]
            ):  # no ReLU precedes the data, and nothing needs this error
                error = (error @ weights.T) * (layer_input > np.float32(0))
        return gradient


def accuracy(model: Model, params: Floats, x: Floats, y: Labels) -> float:
    """Return the share of rows whose class the model predicts, from 0 to 1.

    LoadError if it predicts anything but an integer for each row."""
    found: Any = model.predict(params, x)
    right = isinstance(found, np.ndarray) and found.shape == y.shape and found.dtype.kind in "iu"
    name = f"model {type(model).__name__}"
    returned(name, "predict(params, x)", found, right, f"int64 of shape ({len(y)},)")
    return float(np.count_nonzero(found == y) / len(y))


def build(name: str, args: dict[str, Any], features: int, classes: int) -> Model:
    """Return the model `name` for rows of `features` values in `classes` classes.

    "mlp" takes hidden, the widths of its hidden layers (default [54]: with the digits 4,060
    parameters, which pad to 4,096); "softmax" takes nothing; "synthetic" only makes gradients
    (see synthetic.py for values, distribution, scale, file); "module:object" is called as
    object(features=, classes=, **args). LoadError for an unknown name or an object
    that is not a model.
    """
    if name not in _MODELS and not is_reference(name):
        known = sorted(_MODELS)
        near = did_you_mean(name, known, quoted)
        listed = f"{near} use" if near else "use"
        raise LoadError(f'no model "{name}": {listed} one of {", ".join(known)}, {own(name)}')
    takes = {"features": features, "classes": classes}
    maker = load("model", name, takes=takes) if is_reference(name) else _MODELS[name]
    return _checked(name, call("model", name, maker, **takes, **args))


def mlp(features: int, classes: int, hidden: Sequence[int] = (54,)) -> Perceptron:
    """Return a perceptron with hidden layers of the given widths."""
    widths = [hidden] if isinstance(hidden, int) else list(hidden)
    if not all(isinstance(width, int) and width > 0 for width in widths):
        raise LoadError(f"hidden must be a list of positive layer widths, got {hidden!r}")
    return Perceptron([features, *widths, classes])


def softmax(features: int, classes: int) -> Perceptron:
    """Return a softmax regression."""
    return Perceptron([features, classes])


_MODELS: dict[str, Callable[..., Model]] = {"mlp": mlp, "softmax": softmax, "synthetic": synthetic}


def _layout(sizes: Sequence[int]) -> tuple[Tensor, ...]:
    tensors: list[Tensor] = []
    offset = 0
    for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:], strict=False)):
        weights = Tensor(f"layer{layer}.weights", (rows, columns), offset)
        bias = Tensor(f"layer{layer}.bias", (columns,), offset + weights.size)
        tensors += [weights, bias]
        offset = bias.offset + bias.size
    return tuple(tensors)


def _log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return cast(Floats, shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _checked(name: str, model: object) -> Model:
    """Return the model if it has the attributes of Model; else LoadError."""
    needed = ("tensors", "parameters", "loss_and_gradient", "predict")
    missing = [attribute for attribute in needed if not hasattr(model, attribute)]
    if missing:
        raise LoadError(
            f"model {name}: {type(model).__name__} has no {', '.join(missing)};"
            f" a model has {', '.join(needed)} (gradplane.hosts.training.models.Model)"
        )
    tensors: Any = model.tensors  # type: ignore[attr-defined]
    if not (isinstance(tensors, Sequence) and all(isinstance(one, Tensor) for one in tensors)):
        raise LoadError(
            f"model {name}: tensors is {described(tensors)}; expected a tuple of"
            " Tensor(name, shape, offset)"
        )
    return cast(Model, model)


def check_parameters(model: str, parameters: Floats) -> None:
    """Raise LoadError if a model's initial parameters are anything but finite float32[n], n > 0."""
    check_vector(model, "parameters(seed)", parameters)
    if not np.isfinite(parameters).all():  # once a job: a kernel would need Numba to check a file
        raise LoadError(f"model {model}: parameters(seed) has a NaN or infinity")


def checked_gradient(model: str, found: Any, n: int) -> tuple[float, Floats]:
    """Return a model's loss and its gradient, float32[n]; LoadError for anything else."""
    pair = isinstance(found, tuple) and len(found) == 2
    right = pair and (isinstance(found[0], Real) or getattr(found[0], "shape", None) == ())
    expected = "(loss, gradient), a number and an array"
    returned(f"model {model}", "loss_and_gradient()", found, right, expected)
    check_vector(model, "loss_and_gradient()[1]", found[1], n)
    return float(found[0]), found[1]


def check_vector(model: str, what: str, vector: object, n: int | None = None) -> None:
    """Raise LoadError if a model returned anything but float32[n], n > 0."""
    if isinstance(vector, np.ndarray):
        shapes_fit = vector.ndim == 1 and vector.size == (n or max(vector.size, 1))
        if shapes_fit and vector.dtype == np.float32:
            return
        found = f"{vector.dtype}{list(vector.shape)}"
    else:
        found = type(vector).__name__
    raise LoadError(f"model {model}: {what} must be float32[{n or 'n'}], got {found}")
