"""The metrics of a run, from its summary.json: the columns of a sweep's tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from statistics import fmean
from typing import Any

from gradplane.runs.records.recorder import PARTS
from gradplane.runs.records.summary import queue_drops

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
