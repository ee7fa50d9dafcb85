"""Trainings of an experiment under several seeds, and their mean accuracy with its interval."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from gradplane.experiment.loading import Experiment, load
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.runs.sweeps.tables import quantile
from gradplane.studies import parallel

Network = Literal["sim", "mininet"]


@dataclass(frozen=True)
class Ended:
    """The end of one training: accuracies from 0 to 1, means over the workers.

    bits_up, bits_down: payload of a worker and round, in bits per value. missed: results."""

    train_accuracy: float
    test_accuracy: float
    bits_up: float
    bits_down: float
    missed: int


@dataclass(frozen=True)
class Estimate:
    """The mean of numbers, and half of its 95 % interval (Student's t; 0 for a single number)."""

    mean: float
    half: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Estimate":
        """Estimate the mean of one number or more."""
        n, mean = len(numbers), fmean(numbers)
        if n == 1:
            return cls(mean, 0.0)
        return cls(mean, quantile(n - 1) * stdev(numbers) / n**0.5)

    @property
    def points(self) -> str:
        """The estimate as percentage points."""
        return f"{100 * self.mean:.1f} ± {100 * self.half:.1f}"


def gap(
    those: Sequence[Ended],
    plain: Sequence[Ended],
    accuracy: Callable[[Ended], float] = attrgetter("test_accuracy"),
) -> Estimate:
    """Return by how much the accuracy of trainings is above that of others, seed by seed."""
    both = zip(those, plain, strict=True)
    return Estimate.of([accuracy(one) - accuracy(other) for one, other in both])


def trainings(
    experiments: Sequence[Mapping[str, Any]], network: Network, seed: int, repetitions: int
) -> list[tuple[Ended, ...]]:
    """Train each experiment's first job under the seeds `seed`, `seed` + 1, ...

    experiments: the sections of an experiment file each. On the simulated network they are spread
    over the processors; on Mininet, whose hosts share those, they run one after another. Raises as
    `run_experiment.run` does."""
    cases = [(values, network, range(seed, seed + repetitions)) for values in experiments]
    return parallel.each(_repeat, cases, "experiment", alone=network == "mininet")


def _repeat(values: Mapping[str, Any], network: Network, seeds: range) -> tuple[Ended, ...]:
    return tuple(_train(values, network, seed) for seed in seeds)


def _train(values: Mapping[str, Any], network: Network, seed: int) -> Ended:
    sections = dict(values) | {"seed": seed, "output": {"baseline": False}}
    experiment = load(Experiment.model_validate(sections))
    with tempfile.TemporaryDirectory() as folder:
        found = run_experiment.measure(experiment, Path(folder), network)
        lines = run_folder.read_lines(Path(folder) / run_folder.METRICS)
        *_, last = (line for line in lines if "test_accuracy" in line)
    job = found["jobs"][0]
    traffic, bits = job["traffic"], 8 / job["values"]
    return Ended(
        last["train_accuracy"],
        last["test_accuracy"],
        traffic["payload_up"] * bits,
        traffic["payload_down"] * bits,
        job["missed"],
    )
