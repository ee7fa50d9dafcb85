"""Where in a flat vector a model's tensors are."""

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tensor:
    """A named piece of the parameter vector: values [offset, offset + size) in row order."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """How many values the tensor has."""
        return prod(self.shape)

    def view(self, vector: Floats) -> Floats:
        """The tensor's part of a parameter or gradient vector, in its shape, sharing memory."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)
