"""The designs that 3LC's evaluation compares (section 4.2), trained through a parameter server.

Workers push gradients; the server makes the step, and workers pull the change of its weights, which
it compresses once for all of them. Designs that accumulate errors do so at the workers and at the
server.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.experiment.loading import Experiment, load
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder

Codec = dict[str, Any]


@dataclass(frozen=True)
class Design:
    """A row of tables 1 and 2.

    feedback: the codec's errors are accumulated, at both ends. paper: speed-ups at 10 Mbit/s, 100
    Mbit/s and 1 Gbit/s; points of accuracy against 32 bits; bits a value (table 2). None where the
    paper has no such row.
    """

    label: str
    codec: Codec
    feedback: bool = False
    local_steps: int = 1
    paper: tuple[float, float, float] | None = None
    paper_points: float | None = None
    paper_bits: float | None = None

    def job(self) -> dict[str, Any]:
        """Return the keys of a [[job]]: each tensor is compressed by itself."""
        by_tensor = [["*", self.codec]]
        return {
            "aggregation": "ps",
            "push": by_tensor,
            "pull": by_tensor,
            "error_feedback": self.feedback,
            "pull_feedback": self.feedback,
            "pull_deltas": True,
            "local_steps": self.local_steps,
        }


def _threelc(s: float, paper: tuple[float, float, float], points: float, bits: float) -> Design:
    return Design(f"3LC s={s:g}", {"name": "threelc", "s": s}, True, 1, paper, points, bits)


DESIGNS = (
    Design("32-bit float", {"name": "float32"}, paper=(1, 1, 1), paper_points=0.0),
    Design("8-bit int", {"name": "int8"}, paper=(3.62, 3.47, 1.51), paper_points=-0.04),
    Design("ternary 2-bit", {"name": "terngrad", "clip": None}),
    Design("ternary b-3-5", {"name": "ternary"}, paper=(12.3, 7.51, 1.53), paper_points=-1.31),
    Design(
        "MQE 1-bit", {"name": "onebit"}, feedback=True, paper=(14.6, 7.40, 1.30), paper_points=-0.16
    ),
    Design("sparse 25 %", {"name": "sparse", "fraction": 0.25}, feedback=True),
    Design(
        *("sparse 5 %", {"name": "sparse", "fraction": 0.05}),
        feedback=True,
        paper=(8.98, 6.62, 1.44),
        paper_points=-0.50,
    ),
    Design(
        *("2 local steps", {"name": "float32"}),
        feedback=True,
        local_steps=2,
        paper=(1.92, 1.87, 1.38),
        paper_points=-0.34,
    ),
    Design("3LC no ZRE", {"name": "threelc", "zero_runs": False}, True, paper_bits=1.60),
    _threelc(1.0, (15.9, 7.97, 1.53), -0.05, 0.812),
    _threelc(1.5, (20.9, 8.70, 1.53), -0.08, 0.451),
    _threelc(1.75, (22.8, 9.04, 1.53), 0.14, 0.298),
    _threelc(1.9, (22.8, 9.22, 1.55), -0.27, 0.200),
)
"""The rows of the paper's table 1, and three more: TernGrad's 2-bit codes, 25 % sparsification,
and table 2's row without zero-run encoding."""


@dataclass(frozen=True)
class Trained:
    """A whole training at one rate; times in seconds since its start.

    curve: seconds and test accuracy after each epoch. bits: a value, up and down, as the payload of
    the packets that workers sent and received.
    """

    seconds: float
    curve: tuple[tuple[float, float], ...]
    bits: tuple[float, float]

    @property
    def accuracy(self) -> float:
        """The test accuracy after the last epoch."""
        return self.curve[-1][1]

    def time_to(self, accuracy: float) -> float | None:
        """Return the end of the first epoch with at least that accuracy; None if there is none."""
        return next((at for at, reached in self.curve if reached >= accuracy), None)


def train(design: Design, rate: str, workers: int, seed: int, job: Mapping[str, Any]) -> Trained:
    """Train under a design, all hosts' links limited to `rate`; `job` has further keys."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        values = {
            "name": "threelc",
            "seed": seed,
            "topology": {"workers": workers, "rate": rate, "queue": 100_000},
            "job": [design.job() | dict(job)],
        }
        experiment = load(Experiment.model_validate(values))
        found = run_experiment.measure(experiment, folder, "sim")["jobs"][0]
        lines = [line for line in run_folder.read_lines(folder / run_folder.METRICS)]
    start = min(line["started"] for line in lines)
    ends = [line for line in lines if "test_accuracy" in line]
    curve = tuple(((line["finished"] - start) / 1e9, line["test_accuracy"]) for line in ends)
    traffic, values_sent = found["traffic"], found["values"]
    bits = [8 * traffic[f"payload_{way}"] / values_sent for way in ("up", "down")]
    return Trained(found["seconds"], curve, (bits[0], bits[1]))
