"""A worker's state between two reduces as bytes: error feedback and what else codecs keep.

The bytes are a pickle that is read with a short list of types, so that reading an unknown file runs
no code: containers and numbers, NumPy's arrays, and the codecs' own dataclasses.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from dataclasses import is_dataclass
from typing import Any

from gradplane.codecs import Codec

_CODECS = "gradplane.codecs"
_ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *((f"{core}.numeric", "_frombuffer") for core in ("numpy.core", "numpy._core")),
    *((f"{core}.multiarray", "_reconstruct") for core in ("numpy.core", "numpy._core")),
    *((f"{core}.multiarray", "scalar") for core in ("numpy.core", "numpy._core")),
}


class StateError(ValueError):
    """A state that cannot be saved or read; the message names why, and the way out."""


def pack(state: Any, codecs: Collection[Codec]) -> bytes:
    """Return a state as bytes that unpack() reads. codecs: those whose state is in it.

    Raises StateError for a codec of one's own whose state is of other types."""
    try:
        data = pickle.dumps(state, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise StateError(f"a codec's state cannot be saved: {error}: {_KINDS}") from None
    unpack(data, codecs)
    return data


def unpack(data: bytes, codecs: Collection[Codec]) -> Any:
    """Return the state that pack() was given. Raises StateError."""
    try:
        return _Reader(io.BytesIO(data), {type(codec).__module__ for codec in codecs}).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, ValueError) as error:
        raise StateError(f"the state of a codec cannot be read: {error}") from None


_KINDS = (
    "a state consists of NumPy arrays, numbers, text, lists, tuples, dicts and dataclasses of the"
    " codec's own module"
)


class _Reader(pickle.Unpickler):
    """Reads the types of states only."""

    def __init__(self, file: io.BytesIO, own: Collection[str]) -> None:
        super().__init__(file)
        self._own = own

    def find_class(self, module: str, name: str) -> Any:
        """Return a type of states. Raises UnpicklingError for anything else."""
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        if "." not in name and (module in self._own or module.startswith(f"{_CODECS}.")):
            found = super().find_class(module, name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"it has an object of {module}.{name}: {_KINDS}")
