"""The emulated time of computing a gradient: fixed, each worker's own, drawn, or from a trace.

A JobConfig's `compute_ns` is one of

    an int         ns, the same in every round and for every worker
    a list         an item for each worker, each an int or a table with a distribution
    {"trace": rows}    a row for each round, from the first again after the last; a row has a number
                       for each worker, or a single one for all, in ns
    {"distribution": NAME, ...}    drawn anew for each worker and round; its parameters in ns:
        "normal", "lognormal"      mean and sd of the time; below 0 is 0
        "exponential"              mean
        "uniform"                  low, high
        "pareto"                   mean and the exponent alpha, above 1: a few are very late

A drawn time is a function of the job's seed, the round and the worker alone.
"""

from collections.abc import Callable, Mapping
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Any

from gradplane import codecs

Table = Mapping[str, Any]

_NORMAL = NormalDist()


def compute_ns(spec: Any, seed: int, worker: int, round: int) -> int:
    """Return the time of a worker's computation in a training round, in ns."""
    if isinstance(spec, int):
        return spec
    if isinstance(spec, list | tuple):
        return compute_ns(spec[worker], seed, worker, round)
    if "trace" in spec:
        row = spec["trace"][round % len(spec["trace"])]
        return int(row[worker if len(row) > 1 else 0])
    share = (codecs.key(seed, "compute time", round, worker) + 0.5) / 2.0**64
    _, quantile = DISTRIBUTIONS[spec["distribution"]]
    return int(max(0.0, quantile(spec, share)) + 0.5)


def _normal(spec: Table, share: float) -> float:
    return float(spec["mean"] + spec["sd"] * _NORMAL.inv_cdf(share))


def _lognormal(spec: Table, share: float) -> float:
    """Invert the distribution of the given mean and deviation of the time, not of its logarithm."""
    variance = log(1 + (spec["sd"] / spec["mean"]) ** 2)
    return exp(log(spec["mean"]) - variance / 2 + sqrt(variance) * _NORMAL.inv_cdf(share))


def _exponential(spec: Table, share: float) -> float:
    return float(-spec["mean"] * log(1 - share))


def _uniform(spec: Table, share: float) -> float:
    return float(spec["low"] + (spec["high"] - spec["low"]) * share)


def _pareto(spec: Table, share: float) -> float:
    alpha = spec["alpha"]
    return float(spec["mean"] * (alpha - 1) / alpha * (1 - share) ** (-1 / alpha))


DISTRIBUTIONS: dict[str, tuple[tuple[str, ...], Callable[[Table, float], float]]] = {
    "normal": (("mean", "sd"), _normal),
    "lognormal": (("mean", "sd"), _lognormal),
    "exponential": (("mean",), _exponential),
    "uniform": (("low", "high"), _uniform),
    "pareto": (("mean", "alpha"), _pareto),
}
"""Distributions by name: the parameters, and the quantile function of (spec, share in 0 to 1)."""
TIMES = ("mean", "sd", "low", "high")  # the parameters that are times
