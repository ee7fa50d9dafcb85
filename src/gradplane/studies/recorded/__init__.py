"""The effect of codecs on recorded gradients, by layer; and the recorded gradients that ship.

The folder holds the files, of the format in gradplane.codecs._recorded. They were made by
scripts/record_gradients.py; each says its origin and licence.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from gradplane import codecs
from gradplane._suggestions import did_you_mean, quoted
from gradplane.codecs import Codec, CodecError, Floats, PerTensor, RecordedGradients

T = TypeVar("T")
FOLDER = Path(__file__).parent
WHOLE = "all layers"


def names() -> list[str]:
    """Return the names of the shipped sets, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def load(file: str | Path) -> RecordedGradients:
    """Read recorded gradients: a file, or a shipped set by its name.

    CodecError for an unknown name, and for a file of another format."""
    path = Path(file)
    if not path.exists() and not path.suffix and len(path.parts) == 1:
        if str(file) not in names():
            hint = did_you_mean(str(file), names(), quoted) or f"shipped are {', '.join(names())}"
            raise CodecError(f"{file}: neither a file nor shipped gradients: {hint}")
        path = FOLDER / f"{file}.npz"
    return RecordedGradients.read(path)


@dataclass(frozen=True)
class Effect:
    """The effect of a codec on a layer, or on all of them, over all steps and workers.

    nmse: |x - y|² / |x|² of the workers' vectors; nmse_of_mean: of their mean. bias: x (y - x) /
    |x|², the share of the gradient that is missing (-) or too much. Bytes are a worker's a step;
    speeds are those of the quickest call."""

    layer: str
    values: int
    bytes: float
    nmse: float
    nmse_of_mean: float
    bias: float
    encode_gb_per_second: float
    decode_gb_per_second: float


def effects(codec: Codec, recorded: RecordedGradients, seed: int = 1) -> list[Effect]:
    """Return a codec's effect on the whole gradient, as a job sends it, and on each layer alone."""
    found = [_effect(WHOLE, whole(codec, recorded), recorded, None, seed)]
    for at, name in enumerate(recorded.layers):
        alone = codec.for_tensor(recorded.shapes[at])
        found.append(_effect(name, alone, recorded, at, seed))
    return found


def whole(codec: Codec, recorded: RecordedGradients) -> Codec:
    """Return a codec for all layers as one vector, which takes them tensor by tensor if it does."""
    if not codec.by_tensor:
        return codec
    pairs = zip(recorded.sizes, recorded.shapes, strict=True)
    return PerTensor(tuple((size, codec.for_tensor(shape)) for size, shape in pairs))


def rounds(recorded: RecordedGradients, layer: int | None = None) -> Iterator[list[Floats]]:
    """Yield the workers' vectors of each step."""
    for step in range(len(recorded.steps)):
        yield [recorded.vector(step, w, layer) for w in range(len(recorded.workers))]


def mean_vector(vectors: Sequence[Floats]) -> Floats:
    """Return the mean of float32[n], added in float64."""
    mean: Floats = np.stack(vectors).mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


class _Sums:
    """The sums of a comparison of vectors with what they decode to."""

    def __init__(self) -> None:
        self.power = self.error = self.along = 0.0

    def add(self, x: Floats, y: Floats) -> None:
        wide = x.astype(np.float64)
        error = y - wide
        self.power += float(wide @ wide)
        self.error += float(error @ error)
        self.along += float(wide @ error)

    @property
    def nmse(self) -> float:
        return self.error / self.power if self.power else self.error

    @property
    def bias(self) -> float:
        return self.along / self.power if self.power else 0.0


def _effect(
    name: str, codec: Codec, recorded: RecordedGradients, layer: int | None, seed: int
) -> Effect:
    single, mean, sent = _Sums(), _Sums(), 0
    encoding, decoding = np.inf, np.inf
    for number, vectors in enumerate(rounds(recorded, layer)):
        start = codec.start(vectors[0].size)
        known = [stat for x in vectors if (stat := codec.local(x, start)) is not None]
        shared = codec.combine(known) if known else None
        decoded = []
        for worker, x in enumerate(vectors):
            key = codecs.key(seed, "recorded", number)
            (data, _), seconds = _timed(partial(codec.encode, x, shared, key, start, worker))
            encoding, sent = min(encoding, seconds), sent + len(data)
            y, seconds = _timed(partial(codec.decode, data, x.size))
            decoding = min(decoding, seconds)
            single.add(x, y)
            decoded.append(y)
        mean.add(mean_vector(vectors), codec.merge(decoded))
    n = vectors[0].size
    calls = len(recorded.steps) * len(recorded.workers)
    return Effect(
        *(name, n, sent / calls, single.nmse, mean.nmse, single.bias),
        *(4e-9 * n / encoding, 4e-9 * n / decoding),
    )


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    found = call()
    return found, time.perf_counter() - started
