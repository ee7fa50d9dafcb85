"""A vector in another memory than the CPU's, whose codes are computed where it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from gradplane.hosts.digest import digest


class DeviceVector(ABC):
    """float32[size], finite, which does not change while it is reduced; or a piece of one.

    A reduce through the switch or a server takes one in the place of an array, and delivers another
    as its mean. Nothing of it but codes, encoded bytes and sums is in the CPU's memory: the digests
    of values are empty.
    """

    size: int

    @abstractmethod
    def __getitem__(self, piece: slice) -> DeviceVector:
        """Return a piece."""

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
    def zeros(self) -> DeviceVector:
        """Return as many zeros."""

    @abstractmethod
    def joined(self, pieces: Sequence[DeviceVector]) -> DeviceVector:
        """Return the pieces as one vector."""


def coder_of(codec: Any, vector: Any, states: Sequence[Any] | None) -> Any:
    """Return the codec of a vector, or what takes its place on the vector's device."""
    return vector.coder(codec, states) if isinstance(vector, DeviceVector) else codec


def decoder_of(codec: Any, vector: Any) -> Any:
    """Return the codec of an answer to a vector, or what takes its place on the vector's device."""
    return vector.decoder(codec) if isinstance(vector, DeviceVector) else codec


def digest_of(vector: Any) -> str:
    """Return a vector's digest; a device's has none."""
    return "" if isinstance(vector, DeviceVector) else digest(vector)
