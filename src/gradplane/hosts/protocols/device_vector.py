"""A vector in another memory than the CPU's, whose codes are computed where it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane import codecs
from gradplane.hosts.digest import digest


class DeviceVector(ABC):
    """float32[size], finite, which does not change while it is reduced; or a piece of one.

    A reduce takes one in the place of an array, and delivers another as its mean. Nothing of it but
    codes, encoded bytes and sums of codes is in the CPU's memory: the digests of values are empty.
    """

    size: int

    @abstractmethod
    def __getitem__(self, piece: slice) -> DeviceVector:
        """Return a piece."""

    @abstractmethod
    def __setitem__(self, piece: slice, values: DeviceVector) -> None:
        """Write a piece of a vector of zeros() that nobody has read."""

    @abstractmethod
    def __add__(self, other: DeviceVector) -> DeviceVector:
        """Return the sums in float32, which may be infinite."""

    @abstractmethod
    def divided(self, by: npt.NDArray[np.float32]) -> DeviceVector:
        """Return the quotients in float32, as the CPU rounds them; by: as divided() has it."""

    @abstractmethod
    def rotated(self, seed: int) -> DeviceVector:
        """Return codecs.rotated() of the vector."""

    @abstractmethod
    def unrotated(self, n: int, seed: int) -> DeviceVector:
        """Return codecs.unrotated() of the vector."""

    @abstractmethod
    def coder(self, codec: Any, states: Sequence[Any] | None) -> Any:
        """Return what takes the codec's place in this reduce, of this vector and its pieces, with
        the codec's codes, bytes and sums, to the bit.

        states: the codec's, one a piece, or one of the whole: those of its start() or of this or
        another coder; None before the first reduce."""

    @abstractmethod
    def decoder(self, codec: Any) -> Any:
        """Return what takes the place of the codec of answers: its decode() returns a vector."""

    @abstractmethod
    def zeros(self, size: int) -> DeviceVector:
        """Return so many zeros."""

    @abstractmethod
    def joined(self, pieces: Sequence[DeviceVector]) -> DeviceVector:
        """Return the pieces as one vector."""


def coder_of(codec: Any, vector: Any, states: Sequence[Any] | None) -> Any:
    """Return the codec of a vector, or what takes its place on the vector's device."""
    return vector.coder(codec, states) if isinstance(vector, DeviceVector) else codec


def decoder_of(codec: Any, vector: Any) -> Any:
    """Return the codec of an answer to a vector, or what takes its place on the vector's device."""
    return vector.decoder(codec) if isinstance(vector, DeviceVector) else codec


def zeros_of(vector: Any, size: int) -> Any:
    """Return so many zeros, where the vector is."""
    if isinstance(vector, DeviceVector):
        return vector.zeros(size)
    return np.zeros(size, vector.dtype)


def divided(vector: Any, by: npt.NDArray[np.float32]) -> Any:
    """Return the quotients of float32[n] by float32[k], each of n / k values one after another."""
    if isinstance(vector, DeviceVector):
        return vector.divided(by)
    return (vector.reshape(by.size, vector.size // max(by.size, 1)) / by[:, None]).reshape(-1)


def rotated_of(vector: Any, seed: int) -> Any:
    """Return codecs.rotated() of a vector."""
    if isinstance(vector, DeviceVector):
        return vector.rotated(seed)
    return codecs.rotated(vector, seed)


def unrotated_of(vector: Any, n: int, seed: int) -> Any:
    """Return codecs.unrotated() of a vector."""
    if isinstance(vector, DeviceVector):
        return vector.unrotated(n, seed)
    return codecs.unrotated(vector, n, seed)


def digest_of(vector: Any) -> str:
    """Return a vector's digest; a device's has none."""
    return "" if isinstance(vector, DeviceVector) else digest(vector)
