"""3LC, tables 1 and 2 in whole trainings: time to the same accuracy, and bits of real traffic."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gradplane.experiment.loading import Experiment, load
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.studies import parallel, plot
from gradplane.studies.study import Study, StudyOutcome, several
from gradplane.studies.trainings import WithCurve

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
    Design("bf16", {"name": "bfloat16"}),
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
"""The rows of the paper's table 1, and four more: bf16, TernGrad's 2-bit codes, 25 %
sparsification, and table 2's row without zero-run encoding."""


@dataclass(frozen=True)
class Trained(WithCurve):
    """A whole training at one rate; times in seconds since its start.

    curve: seconds and test accuracy after each epoch. bits: a value, up and down, as the payload of
    the packets that workers sent and received. losses, rounds: of each round, the loss and the
    bits a value, up and down.
    """

    seconds: float
    curve: tuple[tuple[float, float], ...]
    bits: tuple[float, float]
    losses: tuple[float, ...]
    rounds: tuple[tuple[float, float], ...]


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
    scale = 8 / values_sent / workers
    rounds = tuple((scale * line["payload_up"], scale * line["payload_down"]) for line in lines)
    losses = tuple(line["loss"] for line in lines)
    return Trained(found["seconds"], curve, (bits[0], bits[1]), losses, rounds)


Width = Annotated[int, Field(strict=True, ge=1)]
Rate = Literal["10Mbit", "100Mbit", "1Gbit"]
RATES: tuple[Rate, ...] = ("10Mbit", "100Mbit", "1Gbit")  # as in Design.paper
_LABELS = tuple(design.label for design in DESIGNS)
_CLOSE = 1.05  # speed-ups of the paper's that are closer than this are not in an order


def known(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return labels of designs beside 32 bits, which always runs; ValueError for another one."""
    for label in labels:
        if label not in _LABELS[1:]:
            raise ValueError(f'no design "{label}": there are {", ".join(_LABELS[1:])}')
    return labels


class Table1(Study):
    """The training of a perceptron on handwritten digits, packet by packet, under each design."""

    name: Literal["3lc-table1"] = "3lc-table1"
    designs: Annotated[tuple[str, ...], AfterValidator(known)] = several(_LABELS[1:])
    rates: tuple[Rate, ...] = several(RATES)
    workers: int = Field(default=10, ge=2, le=32)
    hidden: tuple[Width, ...] = Field(default=(64,), strict=False)
    epochs: int = Field(default=20, ge=1)
    batch: int = Field(default=16, ge=1)
    lr: float = Field(default=0.05, gt=0)
    target: float = Field(default=0.92, gt=0, le=1)
    compute_ms: float = Field(default=6.0, ge=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each design."""
        job = self.job_keys() | {"weight_decay": 1e-4}
        designs = [d for d in DESIGNS if d.label in (_LABELS[0], *self.designs)]
        cases = [(d, rate, self.workers, seed, job) for d in designs for rate in self.rates]
        trained = iter(parallel.each(train, cases, "training"))
        found = {design.label: [next(trained) for _ in self.rates] for design in designs}
        base = found[_LABELS[0]]
        rows = [self._row(design, found[design.label], base) for design in designs]
        known = [row for row in rows if row["paper"] is not None]
        return StudyOutcome(
            title=f"3LC, table 1: speed-up to {self.target:.0%} at {', '.join(self.rates)}",
            head=("design", "speed-up", "the paper's", "points, paper", "bits, paper"),
            rows=tuple(_cells(row) for row in rows),
            notes=self._notes(rows, known, base),
            values=rows,
            figure=plot.pairs(
                [row["design"].replace(" ", "\n", 1) for row in known],
                [row["speed_up_whole"][0] for row in known],
                [row["paper"][0] for row in known],
                f"speed-up at {self.rates[0]}",
                log=True,
            ),
        )

    def _row(self, design: Design, trained: list[Trained], base: list[Trained]) -> dict[str, Any]:
        pairs = list(zip(trained, base, strict=True))
        times = [(own.time_to(self.target), plain.time_to(self.target)) for own, plain in pairs]
        first = trained[0]
        return {
            "design": design.label,
            "rates": list(self.rates),
            "speed_up": [plain / own if own and plain else None for own, plain in times],
            "speed_up_whole": [plain.seconds / own.seconds for own, plain in pairs],
            "seconds": [own for own, _ in times],
            "accuracy": first.accuracy,
            "points": 100 * (first.accuracy - base[0].accuracy),
            "bits_up": first.bits[0],
            "bits_down": first.bits[1],
            "curves": [[list(point) for point in one.curve] for one in trained],
            "paper": self._paper(design),
            "paper_points": design.paper_points,
            "paper_bits": design.paper_bits,
        }

    def _paper(self, design: Design) -> list[float] | None:
        """Return the paper's speed-ups at the study's rates."""
        if design.paper is None:
            return None
        return [design.paper[RATES.index(rate)] for rate in self.rates]

    def _notes(
        self, rows: list[dict[str, Any]], known: list[dict[str, Any]], base: list[Trained]
    ) -> tuple[str, ...]:
        orders = [_order(known, rate) for rate in range(len(self.rates))]
        said = ", ".join(f"{same} of {both}" for same, both in orders)
        whole = {row["design"]: row["speed_up_whole"] for row in known}
        most = max(known, key=lambda row: row["speed_up_whole"][0])["design"]
        three = _numbers(whole[most])
        never = [row["design"] for row in rows if None in row["speed_up"]]
        missing = f" Not reached by: {', '.join(never)}." if never else ""
        return (
            f"Speed-ups are of the time until a test accuracy of {self.target:.0%}; points are"
            f" those of the final accuracy against 32 bits ({base[0].accuracy:.1%}, the paper's"
            " 93.37 %); bits are those of the payload a value, the mean of pushes and pulls (table"
            f" 2), each followed by the paper's.{missing}",
            "The paper's speed-ups are of a fixed number of steps. Over all steps ours"
            f" are {three} for {most}. Of the pairs of designs whose speed-ups"
            f" the paper has more than 5 % apart, {said} have the same order here, by rate.",
            f"Why they differ: the paper trains ResNet-110 on CIFAR-10 for 25,600 steps, here a"
            f" perceptron learns {self.epochs} epochs. Computing takes {self.compute_ms:g} ms a"
            " step, so that its share at 1 Gbit/s is about the paper's; the other two rates follow"
            " from it. Codecs take no time here; the paper's MQE is slowed down by its averaging."
            " Nothing overlaps here; there layers are sent while others are computed, which hides"
            " much of what compressed ones take at 100 Mbit/s. Ternary 2-bit is TernGrad's, whose"
            " workers agree on a scale first. All tensors are compressed; the paper leaves out"
            " small ones.",
        )


def _order(rows: list[dict[str, Any]], rate: int) -> tuple[int, int]:
    """Return how many pairs have the paper's order, of those whose order is clear there."""
    same = both = 0
    for one, other in combinations(rows, 2):
        theirs = one["paper"][rate] / other["paper"][rate]
        if max(theirs, 1 / theirs) >= _CLOSE:
            ours = one["speed_up_whole"][rate] / other["speed_up_whole"][rate]
            both += 1
            same += (ours > 1) == (theirs > 1)
    return same, both


def _numbers(values: list[float | None] | None) -> str:
    if values is None:
        return "-"
    return " ".join("-" if value is None else f"{value:.3g}" for value in values)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    points, bits = row["paper_points"], row["paper_bits"]
    return (
        row["design"],
        _numbers(row["speed_up"]),
        _numbers(row["paper"]),
        f"{row['points']:+.1f}, " + ("-" if points is None else f"{points:+.2f}"),
        f"{(row['bits_up'] + row['bits_down']) / 2:.2f}, "
        + ("-" if bits is None else f"{bits:.2f}"),
    )
