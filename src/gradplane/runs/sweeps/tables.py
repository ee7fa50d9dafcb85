"""The tables of a sweep: a row for each run, and for each point means with 95 % intervals.

The interval of a mean over n runs is Student's: mean ± t s / sqrt(n), with s the standard deviation
of the sample and t the quantile of n - 1 degrees of freedom. One run has no interval. The columns
are metrics of a run, from its summary.json.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from gradplane._whole_files import write_whole
from gradplane.runs.records.recorder import PARTS
from gradplane.runs.records.summary import queue_drops
from gradplane.runs.sweeps.axes import label
from gradplane.runs.sweeps.sweep_folder import SweepFolder

if TYPE_CHECKING:
    from pandas import DataFrame


Values = Mapping[str, Any]
Read = Callable[[Values], float | None]


@dataclass(frozen=True)
class Metric:
    """A number of a run: its column's name, its meaning with the unit, and how it is read.

    `read` takes a training's values in summary.json. It returns None where it is not a number of
    this run, and NaN where the run did not get that far. percent: it is a share, shown as a
    percentage.
    """

    name: str
    title: str
    read: Read
    percent: bool = False


def _to_target(key: str) -> Read:
    def read(values: Values) -> float | None:
        found = values.get("time_to_accuracy")
        if not found:
            return None
        return nan if found[key] is None else float(found[key])

    return read


def _traffic(key: str) -> Read:
    """Return what a worker sends or receives in a round, all jobs together."""
    return lambda values: float(sum(job["traffic"][key] for job in values["jobs"]))


def _part(part: str) -> Read:
    """Return a part of a round's time in ms, as a mean over the jobs."""

    def read(values: Values) -> float:
        return float(fmean(1e3 * job["parts"][part] for job in values["jobs"]))

    return read


def _jobs(key: str) -> Read:
    """Return a sum over the jobs."""
    return lambda values: float(sum(job[key] for job in values["jobs"]))


def _of_baseline(read: Read) -> Read:
    def number(values: Values) -> float | None:
        base = values.get("baseline")
        return read(base) if base else None

    return number


def _injected(values: Values) -> float:
    return float(sum(sum(ways.values()) for ways in values["losses_injected"].values()))


_OWN = (
    Metric("test_accuracy", "test accuracy", lambda run: run["test_accuracy"], percent=True),
    Metric("seconds_to_accuracy", "seconds to the target accuracy", _to_target("seconds")),
    Metric("rounds_to_accuracy", "rounds to the target accuracy", _to_target("rounds")),
    Metric("seconds", "seconds of the training", lambda run: run["seconds"]),
    Metric("rounds_per_second", "rounds a second", lambda run: run["rounds_per_second"]),
    Metric("rounds", "rounds", lambda run: run["rounds"]),
    Metric("missed", "results missed", _jobs("missed")),
    Metric("synchronised", "synchronisations", _jobs("synchronised")),
    Metric("injected", "verdicts of the impairments", _injected),
    Metric("queue_drops", "packets dropped by queues", lambda run: float(queue_drops(run))),
    Metric("payload_up", "payload up, bytes per worker and round", _traffic("payload_up")),
    Metric("payload_down", "payload down, bytes per worker and round", _traffic("payload_down")),
    Metric("headers_up", "headers up, bytes per worker and round", _traffic("headers_up")),
    Metric("headers_down", "headers down, bytes per worker and round", _traffic("headers_down")),
    Metric("host_bytes", "bytes on the hosts' links", lambda run: run["link_bytes"]["hosts"]),
    Metric("fabric_bytes", "bytes between switches", lambda run: run["link_bytes"]["fabric"]),
    *(Metric(f"{part}_ms", f"{part}, ms a round", _part(part)) for part in PARTS),
)
_BASELINE = ("test_accuracy", "seconds_to_accuracy", "rounds_to_accuracy", "seconds")
METRICS = (
    *_OWN,
    *(
        Metric(f"baseline_{m.name}", f"baseline: {m.title}", _of_baseline(m.read), m.percent)
        for m in _OWN
        if m.name in _BASELINE
    ),
)


def job_metrics(name: str, number: int) -> tuple[Metric, ...]:
    """Return the metrics of one of several jobs: accuracy, time to the target, speed, misses."""

    def of(read: Read) -> Read:
        return lambda run: read(run["jobs"][number])

    return (
        Metric(f"{name}.test_accuracy", f"{name}: test accuracy", of(_get("test_accuracy")), True),
        Metric(
            f"{name}.seconds_to_accuracy",
            f"{name}: seconds to the target accuracy",
            of(_to_target("seconds")),
        ),
        Metric(
            f"{name}.rounds_per_second", f"{name}: rounds a second", of(_get("rounds_per_second"))
        ),
        Metric(f"{name}.missed", f"{name}: results missed", of(_get("missed"))),
    )


def _get(key: str) -> Read:
    return lambda values: float(values[key])


CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over `count` of so many runs, and the half-width of its interval, NaN where there is
    none."""

    mean: float
    half: float
    count: int
    runs: int

    @classmethod
    def of(cls, sample: Sequence[float | None]) -> "Estimate":
        """Return the estimate from the numbers that are known."""
        known = np.array([x for x in sample if x is not None and not isnan(x)], np.float64)
        if not known.size:
            return cls(np.nan, np.nan, 0, len(sample))
        mean = float(known.mean())
        if known.size == 1:
            return cls(mean, np.nan, 1, len(sample))
        spread = float(known.std(ddof=1)) / sqrt(known.size)
        return cls(mean, quantile(known.size - 1) * spread, known.size, len(sample))

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.mean + self.half


def quantile(freedom: int) -> float:
    """Return Student's t for a two-sided interval with that many degrees of freedom."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


class Results:
    """The numbers of a sweep's finished runs, read from their folders."""

    def __init__(self, folder: SweepFolder) -> None:
        self.folder, self.plan = folder, folder.plan
        self.failures = folder.failures()
        self._summaries = {run.name: folder.summary(run) for run in self.plan.runs}

    @property
    def finished(self) -> int:
        """The number of finished runs."""
        return sum(summary is not None for summary in self._summaries.values())

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that some run has."""
        known = [summary for summary in self._summaries.values() if summary is not None]
        jobs = [job["name"] for job in known[0]["jobs"]] if known else []
        same = all([job["name"] for job in one["jobs"]] == jobs for one in known)
        several = jobs if len(jobs) > 1 and same else []
        own = [
            metric for number, name in enumerate(several) for metric in job_metrics(name, number)
        ]
        return tuple(
            metric
            for metric in (*METRICS, *own)
            if any(metric.read(summary) is not None for summary in known)
        )

    def sample(self, point: int, metric: Metric) -> list[float | None]:
        """Return a metric of a point's finished runs; see Metric.read."""
        return [metric.read(summary) for summary in self._of(point)]

    def estimate(self, point: int, metric: Metric) -> Estimate:
        """Return the mean of a metric over a point's runs, and its interval."""
        return Estimate.of(self.sample(point, metric))

    def _of(self, point: int) -> list[dict[str, Any]]:
        found = (self._summaries[run.name] for run in self.plan.runs if run.point == point)
        return [summary for summary in found if summary is not None]

    def count(self, point: int) -> int:
        """Return how many runs of a point are finished."""
        return len(self._of(point))

    # As tables

    def points(self) -> "DataFrame":
        """Return a row for each point of the grid.

        Columns: a column for each key; `runs`, how many are finished, and `failed`; for each metric
        its mean, and `METRIC.low` and `METRIC.high`, the interval's ends."""
        rows = []
        for number, point in enumerate(self.plan.points):
            done = self.count(number)
            row = dict(point) | {"runs": done, "failed": self._failed(number)}
            if self._has_target:
                row["reached"] = self._reached(number)
            for metric in self.metrics:
                found = self.estimate(number, metric)
                row |= {metric.name: found.mean}
                row |= {f"{metric.name}.low": found.low, f"{metric.name}.high": found.high}
            rows.append(row)
        return self._frame(rows)

    def runs(self) -> "DataFrame":
        """Return a row for each run: `run` (its folder's name), keys, seed, metrics, `error`."""
        points, rows = self.plan.points, []
        for run in self.plan.runs:
            summary = self._summaries[run.name]
            row = {"run": run.name} | dict(points[run.point]) | {"seed": run.seed}
            for metric in self.metrics:
                number = metric.read(summary) if summary is not None else None
                row[metric.name] = np.nan if number is None else float(number)
            rows.append(row | {"error": None if summary is not None else self._why(run.name)})
        return self._frame(rows)

    def _why(self, name: str) -> str:
        return self.failures.get(name, "not finished")

    def _failed(self, point: int) -> int:
        names = {run.name for run in self.plan.runs if run.point == point}
        return len(names & self.failures.keys())

    @property
    def _has_target(self) -> bool:
        return any(metric.name == "seconds_to_accuracy" for metric in self.metrics)

    def _reached(self, point: int) -> int:
        """Return how many of a point's runs reached the target accuracy."""
        found = [one.get("time_to_accuracy") for one in self._of(point)]
        return sum(one is not None and one["seconds"] is not None for one in found)

    def _frame(self, rows: list[dict[str, Any]]) -> "DataFrame":
        """Return the rows as a table; a key's values of several kinds, or tables, are texts."""
        from pandas import DataFrame

        for axis in self.plan.axes:
            if not _uniform(axis.values):
                for row in rows:
                    row[axis.key] = label(row[axis.key])
        return DataFrame(rows)

    def write(self) -> "DataFrame":
        """Write both tables as Parquet and CSV into the sweep's folder; return that of points."""
        points = self.points()
        for name, table in (("results", points), ("runs", self.runs())):
            write_whole(self.folder.path / f"{name}.parquet", table.to_parquet(index=False))
            write_whole(self.folder.path / f"{name}.csv", table.to_csv(index=False))
        return points


def _uniform(values: Sequence[Any]) -> bool:
    """Return whether a column can hold the values as they are."""
    kinds = {type(value) for value in values}
    return kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool})
