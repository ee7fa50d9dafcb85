"""What a run comes to: summary.json, and the table at its end."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradplane.experiment.schema import Experiment
from gradplane.runner.recorder import PARTS, TRAFFIC, JobTally, Recorder

Counters = dict[str, Any]


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
        """The same keys for the run without compression; None if there was none."""
        return self.values.get("baseline")

    @property
    def weights(self) -> dict[str, dict[str, str]]:
        """By job and worker: the digest of the final parameters."""
        return {job["name"]: job["weights"] for job in self.values["jobs"]}

    @property
    def report(self) -> Path:
        """The report's path."""
        return self.folder / "report.html"


def outcome(experiment: Experiment, recorder: Recorder, network: dict[str, Any]) -> dict[str, Any]:
    """summary.json's part about one run, from its records and its network's counters."""
    jobs = [_job(experiment, n, tally) for n, tally in enumerate(recorder.jobs)]
    return {
        "test_accuracy": sum(job["test_accuracy"] for job in jobs) / len(jobs),
        "rounds": sum(job["rounds"] for job in jobs),
        "seconds": max(tally.seconds for tally in recorder.jobs),
        "rounds_per_second": sum(job["rounds_per_second"] for job in jobs),
        "losses_injected": _injected(recorder),
        "jobs": jobs,
    } | network


def _job(experiment: Experiment, number: int, tally: JobTally) -> dict[str, Any]:
    job = experiment.job[number]
    return {
        "name": job.name,
        "test_accuracy": tally.test_accuracy,
        "rounds": tally.rounds,
        "loss": tally.loss,
        "seconds": tally.seconds,
        "rounds_per_second": tally.rounds / tally.seconds if tally.seconds else 0.0,
        "traffic": per_round(tally),
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


def rate(per_second: float) -> str:
    """Rounds a second as one reads it."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _injected(recorder: Recorder) -> dict[str, dict[str, int]]:
    """Verdicts by kind and direction: {"drop": {"up": 3, "down": 4}, ...}."""
    found: dict[str, dict[str, int]] = {}
    for (verdict, direction), count in sorted(recorder.verdicts.items()):
        found.setdefault(verdict, {})[direction] = count
    return found
