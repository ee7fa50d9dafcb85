"""A vector in another memory than the CPU's, whose codes are computed where it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class DeviceVector(ABC):
    """float32[size], finite, which does not change while it is reduced; or a piece of one.

    A reduce through the switch takes one in the place of an array, and delivers another as its
    mean. Nothing of it but codes and sums is in the CPU's memory: its digests are empty.
    """

    size: int

    @abstractmethod
    def __getitem__(self, piece: slice) -> DeviceVector:
        """Return a piece."""

    @abstractmethod
    def coder(self, codec: Any, states: Sequence[Any] | None) -> Any:
        """Return what takes the codec's place in this reduce, a SummedCodes whose vectors are the
        pieces, with the codec's codes and sums, to the bit.

        states: the codec's, one a piece, those of its start() or of this or another coder; None
        before the first reduce."""

    @abstractmethod
    def zeros(self) -> DeviceVector:
        """Return as many zeros."""

    @abstractmethod
    def joined(self, pieces: Sequence[DeviceVector]) -> DeviceVector:
        """Return the pieces as one vector."""
