"""The summary of a run: the values of summary.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradplane.experiment.schema import Experiment, Job
from gradplane.hosts.wire.aggregation import Type, body_size
from gradplane.runner.recorder import PARTS, TRAFFIC, JobTally


@dataclass(frozen=True)
class Summary:
    """A finished run. `values` is summary.json; `folder` is where it lies."""

    folder: Path
    values: dict[str, Any] = field(repr=False)

    @property
    def test_accuracy(self) -> float:
        """On the test rows at the end, from 0 to 1: the mean over workers, then over jobs."""
        accuracy: float = self.values["test_accuracy"]
        return accuracy

    @property
    def baseline(self) -> dict[str, Any] | None:
        """The same keys for the run without compression; None if there is none."""
        return self.values.get("baseline")

    @property
    def weights(self) -> dict[str, dict[str, str]]:
        """By job and worker: the digest of the final parameters."""
        return {job["name"]: job["weights"] for job in self.values["jobs"]}

    @property
    def report(self) -> Path:
        """The report's path."""
        return self.folder / "report.html"


def outcome(
    experiment: Experiment,
    tallies: Sequence[JobTally],
    verdicts: Mapping[tuple[str, str], int],
    network: dict[str, Any],
) -> dict[str, Any]:
    """Return summary.json's part about one training.

    tallies: the sums of each job's records. verdicts: how many by (verdict, direction). network:
    its counters. The accuracy is None where no epoch ended."""
    jobs = [_job(job, tally) for job, tally in zip(experiment.job, tallies, strict=True)]
    accuracies = [job["test_accuracy"] for job in jobs]
    return {
        "test_accuracy": None if None in accuracies else sum(accuracies) / len(jobs),
        "rounds": sum(job["rounds"] for job in jobs),
        "seconds": max(tally.seconds for tally in tallies),
        "rounds_per_second": sum(job["rounds_per_second"] for job in jobs),
        "losses_injected": _injected(verdicts),
        "jobs": jobs,
    } | network


def _job(job: Job, tally: JobTally) -> dict[str, Any]:
    traffic = per_round(tally)
    return {
        "name": job.name,
        "test_accuracy": tally.test_accuracy,
        "rounds": tally.rounds,
        "loss": tally.loss,
        "seconds": tally.seconds,
        "rounds_per_second": tally.rounds / tally.seconds if tally.seconds else 0.0,
        "traffic": traffic,
        "needed": needed(job, tally, traffic),
        "parts": parts(tally),
        "missed": tally.missed,
        "synchronised": tally.synchronised,
        "weights": {str(worker): digest for worker, digest in sorted(tally.weights.items())},
    }


def parts(tally: JobTally) -> dict[str, float]:
    """Seconds of a round that each part takes, as a mean over rounds and workers."""
    times = max(1, tally.rounds * tally.workers)
    return {part: tally.parts[part] / times / 1e9 for part in PARTS}


def per_round(tally: JobTally) -> dict[str, float]:
    """Packets and bytes of one worker in one round, as a mean; headers apart from payload."""
    times = max(1, tally.rounds * tally.workers)
    traffic = {key: tally.traffic[key] / times for key in TRAFFIC}
    for direction in ("up", "down"):
        wire, payload = traffic.pop(f"wire_{direction}"), traffic[f"payload_{direction}"]
        traffic[f"headers_{direction}"] = wire - payload
    return traffic


def needed(job: Job, tally: JobTally, traffic: Mapping[str, float]) -> dict[str, float]:
    """Payload of one worker in one round if every packet had been sent and had arrived, as a mean.

    Streams send again what is lost, so all that was needed is in `traffic`. Packets of codes and
    of sums may be left out, lost, or never sent; each is needed once."""
    payload = {key: traffic[key] for key in ("payload_up", "payload_down")}
    if job.aggregation != "switch":
        return payload
    results = tally.results / max(1, tally.rounds * tally.workers)
    sizes = (body_size(kind, job.sum_bits) for kind in (Type.INDICES, Type.SUMS))
    return {
        key: max(value, results * size)
        for (key, value), size in zip(payload.items(), sizes, strict=True)
    }


def undelivered(job: Mapping[str, Any], way: str) -> float:
    """Payload bytes per worker and round, "up" or "down", that were needed and not carried.

    job: one of summary.json's. Of older versions a baseline has no `needed`, and misses nothing."""
    carried: float = job["traffic"][f"payload_{way}"]
    needed: float = job["needed"][f"payload_{way}"] if "needed" in job else carried
    return max(0.0, needed - carried)


def queue_drops(values: Mapping[str, Any]) -> int:
    """Packets that the links' queues dropped in one training, which summary.json is about."""
    return sum(link["up_dropped"] + link["down_dropped"] for link in values["links"])


def rate(per_second: float) -> str:
    """Rounds a second as one reads it."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _injected(verdicts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Verdicts by kind and direction: {"drop": {"up": 3, "down": 4}, ...}."""
    found: dict[str, dict[str, int]] = {}
    for (verdict, direction), count in sorted(verdicts.items()):
        found.setdefault(verdict, {})[direction] = count
    return found
