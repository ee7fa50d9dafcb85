"""Baselines of today beside THC: accuracy, bits and time of one training, against bfloat16."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from gradplane.experiment.loading import Experiment, load
from gradplane.runs import run_experiment
from gradplane.studies import parallel, plot
from gradplane.studies.repeated import Estimate, Network
from gradplane.studies.study import Study, StudyOutcome

Width = Annotated[int, Field(strict=True, ge=1)]
Rate = Annotated[float, Field(gt=0)]

BF16 = "bfloat16"
RINGS: Mapping[str, dict[str, Any]] = {
    BF16: {"name": "bfloat16"},
    "MXFP8 e4m3": {"name": "mxfp", "element": "e4m3"},
    "MXFP6 e2m3": {"name": "mxfp", "element": "e2m3"},
    "MXFP4 e2m1": {"name": "mxfp", "element": "e2m1"},
    "ZeRO++ 8 bits": {"name": "zeropp", "bits": 8},
    "ZeRO++ 4 bits": {"name": "zeropp", "bits": 4},
    "SDP4Bit 8 bits": {"name": "sdp4bit", "bits": 8},
    "SDP4Bit 4 bits": {"name": "sdp4bit", "bits": 4},
    "DynamiQ 5 bits": {"name": "dynamiq", "bits": 5},
}
"""The formats in a ring, where each hop decodes, adds and encodes; without error feedback."""

_SWITCHED = {"aggregation": "switch", "slots": 256, "reliability": "retransmit"}
_INTEGERS = _SWITCHED | {"push": {"name": "switchml"}, "error_feedback": False}
WAYS: Mapping[str, dict[str, Any]] = {
    name: {
        "aggregation": "ring",
        "reliability": "retransmit",
        "error_feedback": False,
        "push": push,
    }
    for name, push in RINGS.items()
} | {
    "OptiReduce bfloat16": {
        "aggregation": "optireduce",
        "reliability": "lossy",
        "push": {"name": "bfloat16"},
    },
    "SwitchML int32": _INTEGERS,
    "OmniReduce int32": _INTEGERS | {"nonzero_blocks": True},
    "THC 4 bits": _SWITCHED
    | {"push": {"name": "thc", "bits": 4, "granularity": 30, "p": 1 / 32}, "error_feedback": True},
}
"""The keys of the job under each; OmniReduce's are its nonzero blocks, of the same integers."""


@dataclass(frozen=True)
class Trained:
    """Trainings under one format: each one's test accuracy, and seconds to the target or None.

    bits: of a value, in the payload that a worker sends in a round, and that it gets."""

    label: str
    bits: tuple[float, float]
    accuracies: tuple[float, ...]
    seconds: tuple[float | None, ...]

    @property
    def time(self) -> float | None:
        """The mean seconds to the target; None where a training never had it."""
        times = [one for one in self.seconds if one is not None]
        return fmean(times) if len(times) == len(self.seconds) else None


class Formats(Study):
    """A perceptron learns handwritten digits, packet by packet, with each format."""

    title: ClassVar[str] = "Baselines of today beside THC: digits"
    name: Literal["formats"] = "formats"
    formats: tuple[str, ...] = Field(default=tuple(WAYS), strict=False, min_length=1)
    workers: Annotated[int, Field(strict=True, ge=2, le=64)] = 4
    hidden: tuple[Width, ...] = Field(default=(128,), strict=False)
    epochs: Annotated[int, Field(strict=True, ge=1)] = 10
    batch: Annotated[int, Field(strict=True, ge=1)] = 16
    lr: Rate = 0.05
    momentum: float = Field(default=0.9, ge=0, lt=1)
    target: float = Field(default=0.95, gt=0, le=1)
    rate: str = "100Mbit"
    loss: float = Field(default=0.0, ge=0, lt=1)
    compute_ms: float = Field(default=1.0, ge=0)
    repetitions: Annotated[int, Field(strict=True, ge=1)] = 3
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each format; bfloat16 is always among them."""
        labels = [BF16, *(label for label in self.formats if label != BF16)]
        cases = [(self, label, seed) for label in labels]
        found = parallel.each(Formats.train, cases, "format", alone=self.net == "mininet")
        base = found[0]
        return StudyOutcome(
            title=f"{self.title}, {self.workers} workers, {self.rate}/s"
            + (f", {self.loss:.1%} of packets lost" if self.loss else ""),
            head=(
                "format",
                "bits up",
                "down",
                "accuracy, %",
                "beside bf16",
                f"ms to {self.target:.0%}",
            ),
            rows=tuple(
                (
                    *(one.label, *(f"{bits:.2f}" for bits in one.bits)),
                    Estimate.of(one.accuracies).points,
                    f"{100 * (fmean(one.accuracies) - fmean(base.accuracies)):+.1f}",
                    "never" if one.time is None else f"{1e3 * one.time:.0f}",
                )
                for one in found
            ),
            notes=(
                f"Mean and 95 % interval of {self.repetitions} trainings. `bits`: of a value, in"
                " what a worker sends and gets in a round: in a ring of n workers, and with"
                " OptiReduce, 2 (n - 1) / n values for each of the gradient's, through a switch"
                " one.",
                "No paper has this table; they differ from each other's in model, size and"
                " network. A ring encodes partial sums again at each hop, for which DynamiQ (arXiv"
                " 2602.08923) finds the microscaling formats wanting. Codecs take no time here.",
            ),
            values=[
                {"format": one.label, "bits": one.bits, "accuracies": one.accuracies}
                | {"seconds": one.seconds, "paper": None}
                for one in found
            ],
            figure=plot.stacks(
                [one.label.replace(" ", "\n", 1) for one in found],
                {f"ms to {self.target:.0%}": [1e3 * (one.time or 0.0) for one in found]},
                "ms",
            ),
        )

    def train(self, label: str, seed: int) -> Trained:
        """Train under a format with each seed."""
        ended = [self._once(label, seed + number) for number in range(self.repetitions)]
        reached = [found["time_to_accuracy"]["seconds"] for found in ended]
        job = ended[0]["jobs"][0]
        up, down = (8 * job["traffic"][f"payload_{way}"] / job["values"] for way in ("up", "down"))
        accuracies = tuple(found["test_accuracy"] for found in ended)
        return Trained(label, (up, down), accuracies, tuple(reached))

    def _once(self, label: str, seed: int) -> dict[str, Any]:
        job = self.job_keys() | WAYS[label]
        values = {
            "name": "format",
            "seed": seed,
            "topology": {"workers": self.workers, "rate": self.rate, "queue": 100_000},
            "job": [job],
            "impairment": [{"model": "bernoulli", "rate": self.loss}] if self.loss else [],
            "output": {"baseline": False, "target_accuracy": self.target},
        }
        with tempfile.TemporaryDirectory() as folder:
            experiment = load(Experiment.model_validate(values))
            return run_experiment.measure(experiment, Path(folder), self.net)
