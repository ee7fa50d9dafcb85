"""A model that learns nothing: gradients of any size, to measure their exchange."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._suggestions import quoted
from gradplane.codecs import key
from gradplane.hosts.philox import uniforms
from gradplane.hosts.training.tensor import Tensor
from gradplane.hosts.training.user_objects import LoadError

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

DISTRIBUTIONS = ("normal", "lognormal")
_SEED = 0


class Synthetic:
    """A model whose gradients are the same values, rotated by a distance that the batch decides.

    It predicts class -1, so its accuracy is 0 on any data.
    """

    def __init__(self, gradient: Floats) -> None:
        self._gradient = gradient
        self.tensors: tuple[Tensor, ...] = (Tensor("values", gradient.shape, 0),)

    def parameters(self, seed: int) -> Floats:
        """Return zeros, float32[n]."""
        return np.zeros(self._gradient.size, np.float32)

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return loss 0, and the values from an index on that depends on the batch alone."""
        place = zlib.crc32(y.tobytes(), zlib.crc32(x.tobytes())) % self._gradient.size
        return 0.0, np.concatenate((self._gradient[place:], self._gradient[:place]))

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
    drawn: npt.NDArray[np.floating[Any]]
    if file is not None:
        drawn = _read(file)
    else:
        if distribution not in DISTRIBUTIONS:
            known = " or ".join(map(quoted, DISTRIBUTIONS))
            raise LoadError(f"synthetic: distribution must be {known}, got {quoted(distribution)}")
        if isinstance(values, bool) or not isinstance(values, int) or values < 1:
            raise LoadError(f"synthetic: values must be a positive integer, got {values!r}")
        normal = _normal(values)
        drawn = normal if distribution == "normal" else np.exp(normal)
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise LoadError(f"synthetic: scale must be a number, got {scale!r}")
    with np.errstate(over="ignore"):
        gradient = (scale * drawn).astype(np.float32)
    if not np.isfinite(gradient).all():
        raise LoadError(f"synthetic: scale = {scale} makes values that are not finite")
    return Synthetic(gradient)


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
