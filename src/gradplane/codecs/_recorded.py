"""Gradients recorded in a training, by step, worker and layer, and their file.

The file is a NumPy archive (.npz) with these entries:

- `version`: 1
- `layers`: the names of the layers, text[L], in the order in which a model has them
- `steps`: the numbers of the steps, integers[S] from 1 on, increasing
- `workers`: the numbers of the workers, integers[W] from 0 on, increasing
- `gradient_0` ... `gradient_{L-1}`: a layer's gradients, float32[S, W, *shape of the layer]
- `origin` and `licence`: text, may be missing

Each worker's gradient is its own, before any mean. Nothing in the file is pickled.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gradplane._suggestions import quoted
from gradplane._whole_files import write_output
from gradplane.codecs._base import CodecError, Floats, check_vector

VERSION = 1
_NEEDED = ("version", "layers", "steps", "workers")
_TEXTS = ("origin", "licence")


@dataclass(frozen=True, eq=False)
class RecordedGradients:
    """Gradients of a model's layers: `values` has float32[steps, workers, *shape] for each."""

    layers: tuple[str, ...]
    steps: tuple[int, ...]
    workers: tuple[int, ...]
    values: tuple[Floats, ...]
    origin: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        """Raise CodecError unless all parts fit each other and all values are finite."""
        if not (self.layers and self.steps and self.workers):
            raise CodecError("no gradients: layers, steps and workers need an element each")
        if len(self.values) != len(self.layers):
            raise CodecError(f"{len(self.layers)} layers, but gradients of {len(self.values)}")
        for name, numbers, first in (("steps", self.steps, 1), ("workers", self.workers, 0)):
            if numbers[0] < first or any(b <= a for a, b in zip(numbers, numbers[1:])):  # noqa: B905
                raise CodecError(f"{name} must increase from {first} or more, got {numbers}")
        for number in range(len(self.layers)):
            self._check(number)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each layer."""
        return tuple(values.shape[2:] for values in self.values)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each layer."""
        return tuple(map(math.prod, self.shapes))

    def vector(self, step: int, worker: int, layer: int | None = None) -> Floats:
        """Return a layer's gradient, or all layers' one after another, as float32[n]; by places
        in `steps`, `workers` and `layers`."""
        if layer is not None:
            return self.values[layer][step, worker : worker + 1].reshape(-1)
        return np.concatenate([values[step, worker].reshape(-1) for values in self.values])

    def write(self, path: Path | str) -> None:
        """Write the file."""
        entries: dict[str, Any] = {
            "version": np.int64(VERSION),
            "layers": np.array(self.layers),
            "steps": np.array(self.steps, np.int64),
            "workers": np.array(self.workers, np.int64),
        }
        entries |= {f"gradient_{k}": values for k, values in enumerate(self.values)}
        entries |= {name: np.array(getattr(self, name)) for name in _TEXTS}
        data = io.BytesIO()
        np.savez_compressed(data, **entries)
        write_output(Path(path), data.getvalue())

    @classmethod
    def read(cls, path: Path | str) -> "RecordedGradients":
        """Read a file. CodecError, with the path and the entry, if it is not as described above;
        OSError if it cannot be read."""
        with Path(path).open("rb") as file:
            try:
                return cls(**dict(_fields(_archive(file))))
            except CodecError as error:
                raise CodecError(f"{path}: {error}") from error

    def _check(self, number: int) -> None:
        values, what = self.values[number], f"gradient_{number} ({self.layers[number]})"
        expected = (len(self.steps), len(self.workers))
        if values.dtype != np.float32 or values.shape[:2] != expected or not values.size:
            raise CodecError(
                f"{what} is {values.dtype} of shape {values.shape}: expected float32 of"
                f" ({expected[0]} steps, {expected[1]} workers, and the layer's shape)"
            )
        for s, step in enumerate(self.steps):
            for w, worker in enumerate(self.workers):
                try:
                    check_vector(values[s, w].reshape(-1))
                except CodecError as error:
                    raise CodecError(f"{what}, step {step}, worker {worker}: {error}") from error


def _archive(file: BinaryIO) -> Any:
    """Open an archive; CodecError if the file is none."""
    try:
        archive = np.load(file)  # which loads nothing that is pickled
    except Exception:  # of damaged archives zipfile raises whatever comes up
        archive = None
    if isinstance(archive, np.lib.npyio.NpzFile):
        return archive
    found = "" if archive is None else f", but one array ({archive.dtype} of {archive.shape})"
    raise CodecError(f"no NumPy archive (.npz){found}: gradplane.torch.record_gradients writes one")


def _fields(archive: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of RecordedGradients."""
    lacking = [name for name in _NEEDED if name not in archive]
    if lacking:
        has = ", ".join(archive.files[:8]) or "nothing"
        raise CodecError(f"no entry {quoted(lacking[0])}: it has {has}; see docs/codecs.md")
    version = _entry(archive, "version", "iu", 0)
    if version != VERSION:
        raise CodecError(f"version {version}: this gradplane reads version {VERSION}")
    layers = _entry(archive, "layers", "U", 1).tolist()
    yield "layers", tuple(layers)
    for name in ("steps", "workers"):
        yield name, tuple(_entry(archive, name, "iu", 1).tolist())
    for k in range(len(layers)):
        if f"gradient_{k}" not in archive:
            raise CodecError(f'no entry "gradient_{k}", the gradients of layer {layers[k]}')
    yield "values", tuple(_entry(archive, f"gradient_{k}", "f") for k in range(len(layers)))
    for name in _TEXTS:
        yield name, str(_entry(archive, name, "U", 0)) if name in archive else ""


def _entry(archive: Any, name: str, kinds: str, ndim: int | None = None) -> npt.NDArray[Any]:
    """Return an entry of one of these kinds of type; CodecError for another, or a damaged one."""
    try:
        found: npt.NDArray[Any] = archive[name]
    except Exception as error:  # as above
        raise CodecError(f"entry {quoted(name)} cannot be read: {error}") from error
    if found.dtype.kind not in kinds or (ndim is not None and found.ndim != ndim):
        raise CodecError(
            f"entry {quoted(name)} is {found.dtype} of shape {found.shape}; see docs/codecs.md"
        )
    return found
