"""The error of the workers' mean after compression (THC, figures 2b and 15).

The paper does not fully describe its gradients. Here, as in its appendix D.4, a gradient is drawn
from lognormal(0, 1) and every worker has a copy of it; workers round independently. NMSE(x, y) =
|x - y|^2 / |x|^2 with y the mean of what the workers sent. Beside it stand the gradients that ship,
recorded in two trainings of four workers, each with its own; x is their mean.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane import codecs
from gradplane.codecs import Codec
from gradplane.studies import recorded

Floats = npt.NDArray[np.float32]

# Figure 2b's schemes: label, codec and parameters, the paper's number (None: not in our copy).
# TernGrad does not clip here: with clipping, the error would be well below the paper's.
FIGURE_2B: tuple[tuple[str, dict[str, Any], float | None], ...] = (
    ("TernGrad", {"name": "terngrad", "clip": None}, 6.95),
    ("TopK 10%", {"name": "topk", "fraction": 0.1}, 0.46),
    ("DGC 10%", {"name": "dgc", "fraction": 0.1}, None),
    ("THC", {"name": "thc", "bits": 4, "granularity": 30, "p": 1 / 32}, None),
    ("bf16", {"name": "bfloat16"}, None),
)
LOGNORMAL = "lognormal"
FIGURE_15_GRANULARITIES = (7, 10, 15, 20, 25, 30, 35, 40, 45)


@dataclass(frozen=True)
class SchemeRow:
    """A bar of figure 2b: our NMSE, that of each recorded set, and the paper's, None where our copy
    lacks it."""

    label: str
    config: dict[str, Any]
    nmse: float
    recorded: dict[str, float]
    paper: float | None


@dataclass(frozen=True)
class GranularityRow:
    """A point of figure 15."""

    gradients: str
    bits: int
    granularity: int
    nmse: float


def lognormal(n: int, seed: int, repetition: int = 0) -> Floats:
    """Return a gradient of n values from lognormal(0, 1), float32[n]; one for each repetition."""
    stream = np.random.Philox(key=codecs.key(seed, "lognormal", repetition))
    return np.random.Generator(stream).lognormal(0, 1, n).astype(np.float32)


def nmse(x: Floats, y: Floats) -> float:
    """Return |x - y|^2 / |x|^2 in float64, or |x - y|^2 if x is 0."""
    wide = x.astype(np.float64)
    error = wide - y
    size = float(wide @ wide)
    left = float(error @ error)
    return left / size if size else left


def mean_of(codec: Codec, vectors: Sequence[Floats], seed: int = 0) -> Floats:
    """Return the mean that a server has after each worker sent its vector in the first round."""
    state = codec.start(vectors[0].size)
    known = [stat for x in vectors if (stat := codec.local(x, state)) is not None]
    shared = codec.combine(known) if known else None
    total = np.zeros(vectors[0].size)
    for worker, x in enumerate(vectors):
        data, _ = codec.encode(x, shared, seed, state, worker)
        total += codec.decode(data, x.size)
    return (total / len(vectors)).astype(np.float32)


def nmse_of_recorded(codec: Codec, name: str, workers: int, seed: int = 0) -> float:
    """Return the mean NMSE over the steps of a shipped set; its workers take turns if more are
    asked for."""
    errors = []
    for number, own in enumerate(recorded.rounds(recorded.load(name))):
        vectors = [own[worker % len(own)] for worker in range(workers)]
        x = recorded.mean_vector(vectors)
        errors.append(nmse(x, mean_of(codec, vectors, codecs.key(seed, "nmse", number))))
    return fmean(errors)


def nmse_of_copies(
    codec: Codec, workers: int, n: int, repetitions: int = 1, seed: int = 0
) -> float:
    """Return the mean NMSE over `repetitions` gradients of n values, each with another seed."""
    errors = []
    for repetition in range(repetitions):
        x = lognormal(n, seed, repetition)
        y = mean_of(codec, [x] * workers, codecs.key(seed, "nmse", repetition))
        errors.append(nmse(x, y))
    return fmean(errors)


def of_kind(codec: Codec, kind: str, workers: int, n: int, seed: int = 0) -> float:
    """Return the NMSE on one gradient of n values, or on a shipped set by its name."""
    if kind == LOGNORMAL:
        return nmse_of_copies(codec, workers, n, seed=seed)
    return nmse_of_recorded(codec, kind, workers, seed)


def figure_2b(
    workers: int = 4, n: int = 2**20, repetitions: int = 3, seed: int = 0
) -> list[SchemeRow]:
    """Return a row for each of FIGURE_2B's schemes, on the same gradients.

    TernGrad's error grows with the largest value, and so slowly with n: it reaches 7 near 2^20. In
    its first round, with nothing accumulated, DGC sends the same values as TopK.
    """
    rows = []
    for label, config, paper in FIGURE_2B:
        codec = codecs.get(**config)
        error = nmse_of_copies(codec, workers, n, repetitions, seed)
        sets = {name: nmse_of_recorded(codec, name, workers, seed) for name in recorded.names()}
        rows.append(SchemeRow(label, config, error, sets, paper))
    return rows


def figure_15(
    bits: Iterable[int] = (2, 3, 4),
    granularities: Sequence[int] = FIGURE_15_GRANULARITIES,
    workers: int = 10,
    p: float = 1 / 1024,
    n: int = 2**14,
    repetitions: int = 10,
    seed: int = 0,
) -> list[GranularityRow]:
    """Return rows for each bit budget b and granularity g that allow a table (g >= 2^b - 1), one of
    each kind of gradients.

    The paper takes the mean of 100 gradients; their size is not in our copy.
    """
    rows = []
    for b in bits:
        for g in (g for g in granularities if g >= 2**b - 1):
            codec = codecs.get("thc", bits=b, granularity=g, p=p)
            error = nmse_of_copies(codec, workers, n, repetitions, seed)
            rows.append(GranularityRow(LOGNORMAL, b, g, error))
            for name in recorded.names():
                error = nmse_of_recorded(codec, name, workers, seed)
                rows.append(GranularityRow(name, b, g, error))
    return rows
