"""Rounds a second of jobs that only exchange gradients, on the simulated network."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.experiment.loading import load
from gradplane.experiment.schema import Experiment
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder


@dataclass(frozen=True)
class Rates:
    """The results of a run: rounds a second of each job, packets that queues of its switches and
    hosts dropped, packets that workers sent again, bytes on links between switches, and of all its
    workers' rounds the mean window at their end, in chunks (0: windows do not adapt)."""

    rounds: tuple[float, ...]
    dropped: int
    sent_again: int
    between: int
    window: float

    @property
    def total(self) -> float:
        """The rounds a second of all jobs together."""
        return sum(self.rounds)


def exchanging(values: int, rounds: int, workers: int, **keys: Any) -> dict[str, Any]:
    """Return a [[job]] that only exchanges gradients: `values` of them, in so many rounds."""
    return {
        "workers": workers,
        "push": {"name": "thc", "granularity": 15},  # up to 17 workers in sums of 8 bits
        "reliability": "retransmit",
        "model": {"name": "synthetic", "values": values},
        "data": {"name": "blank", "rows": rounds * workers},
        "epochs": 1,
        "batch": 1,
        "compute_ms": 0.0,
    } | keys


def measured(
    name: str,
    seed: int,
    topology: Mapping[str, Any],
    switch: Mapping[str, Any],
    jobs: Sequence[Mapping[str, Any]],
    impairments: Sequence[Mapping[str, Any]] = (),
) -> Rates:
    """Run an experiment of these sections. Raises as `run_experiment.run` does."""
    sections = {
        "name": name,
        "seed": seed,
        "topology": topology,
        "switch": switch,
        "job": jobs,
        "impairment": impairments,
        "output": {"baseline": False},
    }
    experiment = load(Experiment.model_validate(sections))
    with tempfile.TemporaryDirectory() as folder:
        found = run_experiment.measure(experiment, Path(folder), "sim")
        lines = run_folder.read_lines(Path(folder) / run_folder.ARRIVALS)
        windows = [line["size"] for line in lines if line["kind"] == "window"]
    return Rates(
        rounds=tuple(job["rounds_per_second"] for job in found["jobs"]),
        dropped=sum(link["up_dropped"] + link["down_dropped"] for link in found["links"]),
        sent_again=sum(job["sent_again"] for job in found["jobs"]),
        between=found["link_bytes"]["fabric"],
        window=sum(windows) / len(windows) if windows else 0.0,
    )
