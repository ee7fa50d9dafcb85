"""The tensors of a model as named pieces of its flat parameter vector."""

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
        """The number of values."""
        return prod(self.shape)

    def view(self, vector: Floats) -> Floats:
        """Return the tensor's part of a flat vector, in its shape, sharing memory."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)
