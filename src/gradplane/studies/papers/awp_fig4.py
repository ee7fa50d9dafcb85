"""A2DTWP, figures 3, 4 and 5: time to the same accuracy, adaptive and fixed precision, and to the
end of a training, against 32 bits."""

from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import awp_training, parallel, plot
from gradplane.studies.awp_training import NEVER, SYSTEMS, Course, ModelName, Setting, System
from gradplane.studies.study import Study, StudyOutcome, number, several

Width = Annotated[int, Field(strict=True, ge=1)]
WIDTHS = (8, 16, 24)
"""Bits of the oracle's fixed formats; the fourth, 32, is the one it is compared with."""
PAPER = {
    ("x86", "Alexnet"): {64: 0.0059, 32: 0.0651, 16: 0.1075},
    ("x86", "VGG"): {64: 0.1288, 32: 0.0502, 16: 0.0731},
    ("x86", "Resnet"): {128: 0.0494, 64: 0.0439, 32: 0.0311},
    ("POWER", "Alexnet"): {64: 0.1001, 32: 0.1425, 16: 0.1861},
    ("POWER", "VGG"): {64: 0.1113, 32: 0.2019, 16: 0.2821},
    ("POWER", "Resnet"): {128: 0.1154, 64: 0.0692, 32: 0.0212},
}
"""The shares of time that A2DTWP saves (sections V-B to V-D), by system, model and batch size."""
BATCHES: dict[ModelName, tuple[int, ...]] = {
    "Alexnet": (64, 32, 16),
    "VGG": (64, 32, 16),
    "Resnet": (128, 64, 32),
}
PAPER_MEAN = {"x86": 0.0618, "POWER": 0.1191}
"""The mean over these (section V-E)."""


class Fig4(Study):
    """A perceptron in each model's place learns handwritten digits until `target`, on the buses of
    both systems, with the paper's batch sizes."""

    name: Literal["awp-fig4"] = "awp-fig4"
    threshold: float = Field(default=3e-4, allow_inf_nan=False)
    interval: int = Field(default=5, ge=1)
    systems: tuple[Literal["x86", "POWER"], ...] = several(("x86", "POWER"))
    models: tuple[ModelName, ...] = several(("Alexnet", "VGG", "Resnet"))
    hidden: tuple[Width, ...] = Field(default=(64, 32), strict=False)
    epochs: int = Field(default=12, ge=1)
    lr: float = Field(default=0.05, gt=0)
    decay: float = Field(default=5e-4, ge=0)
    target: float = Field(default=0.9, gt=0, le=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each system and batch size."""
        chosen = [system for system in SYSTEMS if system.name in self.systems]
        batches = sorted({batch for model in self.models for batch in BATCHES[model]})
        cases = [(self, batch, bits, seed) for batch in batches for bits in (*WIDTHS, None, 32)]
        trained = parallel.each(Fig4.course, cases, "training")
        courses = {(b, bits): one for (_, b, bits, _), one in zip(cases, trained, strict=True)}
        rows = [
            _row(self.target, system.of(model), model, batch, courses)
            for system in chosen
            for model in self.models
            for batch in BATCHES[model]
        ]
        return StudyOutcome(
            title=f"A2DTWP, figures 3 to 5: time to {self.target:.0%} against 32 bits",
            head=(
                *("system", "model", "batch", "A2DTWP", "paper's"),
                *("oracle", "bits", "16 bits", "epochs"),
            ),
            rows=(
                *(_cells(row) for row in rows),
                *(_mean([row for row in rows if row["system"] == s.name]) for s in chosen),
            ),
            notes=self._notes(rows),
            values=rows,
            figure=plot.pairs(
                [f"{row['system'][0]} {row['model'][0]}\n{row['batch']}" for row in rows],
                [row["adaptive"] or 0.0 for row in rows],
                [row["paper"] for row in rows],
                "time to the accuracy, 32 bits: 1",
            ),
        )

    def course(self, batch: int, bits: int | None, seed: int) -> Course:
        """Train with a precision of so many bits, or AWP's."""
        setting = Setting(self.hidden, self.epochs, batch, self.lr, self.decay, seed)
        policy = {"threshold": self.threshold, "interval": self.interval}
        if bits is not None:
            policy = {"threshold": NEVER, "initial": bits}
        return awp_training.train(None if bits == 32 else policy, setting)

    def _notes(self, rows: list[dict[str, Any]]) -> tuple[str, ...]:
        faster = [row for row in rows if row["adaptive"] is not None and row["adaptive"] < 1]
        ratios = [row["bytes_ratio"] for row in rows]
        return (
            f"A2DTWP is faster than 32 bits in {len(faster)} of {len(rows)} cases; the paper has it"
            f" faster in all. AWP sends {min(ratios):.2f} to {max(ratios):.2f} times fewer bytes"
            " over a training. The oracle is the fixed format that reaches the accuracy first; 16"
            " bits, bfloat16 without rounding, stands beside it. Figure 3 is Alexnet's error over"
            " time with batches of 32 and 16 on x86. The last column is figure 5's: the time of"
            f" all {self.epochs} epochs, whatever the accuracy.",
            "Accuracies and precisions are measured; what bytes, conversions and layers take is"
            " given, from the paper's tables II and III of VGG, layers in proportion to the images"
            " of a batch. Alexnet's and Resnet's times are these by numbers of weights and of"
            " multiplications, which is our assumption.",
            "Why they differ: the norms of a perceptron grow where VGG's shrink, and it learns in"
            " hundreds of batches, so T and interval are"
            f" {self.threshold:g}, about the mean change of a norm over a training, and"
            f" {self.interval} batches, instead of -2e-3 and 4000. With 8 bits it hardly learns: an"
            " interval of some epochs costs more than the bytes bring, as the paper says of"
            " Alexnet with batches of 64. By tables II and III norms and conversions take as long"
            " as the bus saves at 26 bits on x86 and at 22 on POWER, so layers that reach 24 or 32"
            f" bits are slower there. The accuracy to reach is {self.target:.0%} of ten digits, not"
            " a top-5 error. Times are known after each epoch only. One perceptron trains in all"
            " models' places, so they differ in times, not in precisions.",
        )


def _row(
    target: float,
    system: System,
    model: ModelName,
    batch: int,
    courses: dict[tuple[int, int | None], Course],
) -> dict[str, Any]:
    """Return the plain values of one system, model and batch size."""
    plain, adaptive = (courses[batch, bits].on(system) for bits in (32, None))
    base = plain.time_to(target)
    times = {32: base} | {b: courses[batch, b].on(system).time_to(target) for b in WIDTHS}
    reached = {bits: time for bits, time in times.items() if time is not None}
    best = min(reached, key=lambda bits: reached[bits]) if reached else None
    return {
        "system": system.name,
        "model": model,
        "batch": batch,
        "seconds_32": base,
        "adaptive": _ratio(adaptive.time_to(target), base),
        "oracle": None if best is None else _ratio(reached[best], base),
        "oracle_bits": best,
        "fixed": {str(bits): _ratio(time, base) for bits, time in times.items()},
        "bytes_ratio": plain.profile["to GPU"] / adaptive.profile["to GPU"],
        "accuracy": adaptive.accuracy,
        "accuracy_32": plain.accuracy,
        "bits": [list(bits) for bits in adaptive.precision[-1:]],
        "whole": adaptive.curve[-1][0] / plain.curve[-1][0],
        "paper": 1 - PAPER[system.name, model][batch],
    }


def _mean(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the row of a system's mean over models and batch sizes, beside the paper's."""
    system, ratios = rows[0]["system"], [row["adaptive"] for row in rows]
    mean = "never" if None in ratios else f"{fmean(ratios):.3f}"
    return (system, "mean", "-", mean, number(1 - PAPER_MEAN[system]), "-", "-", "-", "-")


def _ratio(time: float | None, base: float | None) -> float | None:
    return None if time is None or base is None else time / base


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        return "never" if value is None else f"{value:.3f}"

    return (
        row["system"],
        row["model"],
        str(row["batch"]),
        shown(row["adaptive"]),
        number(row["paper"]),
        shown(row["oracle"]),
        "-" if row["oracle_bits"] is None else str(row["oracle_bits"]),
        shown(row["fixed"]["16"]),
        shown(row["whole"]),
    )
