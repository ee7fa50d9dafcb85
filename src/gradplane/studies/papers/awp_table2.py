"""A2DTWP, tables II and III: a batch's time by parts, 32 bits beside adaptive precision."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import awp_training, plot
from gradplane.studies.awp_training import NEVER, PARTS, SYSTEMS, DeviceTraining, Setting, System
from gradplane.studies.study import Study, StudyOutcome

Width = Annotated[int, Field(strict=True, ge=1)]
_UNCHANGED = ("convolution", "connected", "update")
_COLUMNS = ("plain", "adaptive", "paper_plain", "paper_adaptive", "half")


class Tables(Study):
    """A perceptron learns handwritten digits; its weights cross the buses of both systems."""

    name: Literal["awp-table2"] = "awp-table2"
    threshold: float = Field(default=-5e-5, allow_inf_nan=False)
    interval: int = Field(default=60, ge=1)
    hidden: tuple[Width, ...] = Field(default=(128, 64), strict=False)
    epochs: int = Field(default=30, ge=1)
    batch: int = Field(default=64, ge=4, multiple_of=4)
    lr: float = Field(default=0.05, gt=0)
    decay: float = Field(default=5e-4, ge=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each part of a batch on each system, and one for its sum."""
        keys = (self.hidden, self.epochs, self.batch, self.lr, self.decay, seed)
        setting = Setting(*keys)
        policy = {"threshold": self.threshold, "interval": self.interval}
        policies = (None, policy, {"threshold": NEVER, "initial": 16})
        courses = [awp_training.train(each, setting) for each in policies]
        found = [(system, [course.on(system) for course in courses]) for system in SYSTEMS]
        values = [row for system, ours in found for row in _rows(system, ours, self.batch)]
        plain, adaptive, half = found[0][1]
        batches = list(range(len(adaptive.precision)))
        layers = zip(*adaptive.precision, strict=True)
        return StudyOutcome(
            title="A2DTWP, tables II and III: milliseconds of a batch of VGG's weights",
            head=("system", "part", "32 bits", "A2DTWP", "paper's 32", "paper's A2DTWP", "16 bits"),
            rows=tuple(_cells(row) for row in values),
            notes=self._notes(plain, adaptive, half, values),
            values=[
                *values,
                {
                    "accuracy": adaptive.accuracy,
                    "accuracy_32": plain.accuracy,
                    "accuracy_16": half.accuracy,
                    "precision": [list(bits) for bits in adaptive.precision],
                },
            ],
            figure=plot.stairs(
                {f"layer {n}": (batches, list(bits)) for n, bits in enumerate(layers)},
                *("batch", "bits per weight", (8, 16, 24, 32)),
            ),
        )

    def _notes(
        self,
        plain: DeviceTraining,
        adaptive: DeviceTraining,
        half: DeviceTraining,
        rows: list[dict[str, Any]],
    ) -> tuple[str, ...]:
        sums = [row for row in rows if row["part"] == "together"]
        saved = ", ".join(
            f"{1 - row['adaptive'] / row['plain']:.1%} on {row['system']} (the paper's table:"
            f" {1 - row['paper_adaptive'] / row['paper_plain']:.1%})"
            for row in sums
        )
        ratio = plain.profile["to GPU"] / adaptive.profile["to GPU"]
        return (
            f"Measured here: the bytes that AWP lets cross the bus, {ratio:.2f} times fewer over"
            " the training (the paper: 2.94 and 3.20 times less time), and the accuracy that it"
            f" ends with, {adaptive.accuracy:.1%} beside {plain.accuracy:.1%} with 32 bits and"
            f" {half.accuracy:.1%} with 16, bfloat16 without rounding. Given:"
            " what a byte and a conversion take, from the paper's tables, on a bus that is as much"
            " slower as our model is smaller; so the columns of 32 bits agree by construction.",
            f"A batch is shorter by {saved}, if nothing overlaps. The figure has the bits of each"
            " layer over the batches.",
            "Why they differ: a perceptron's norms change more slowly than VGG's, so T is"
            f" {self.threshold:g} instead of -2e-3 and the interval {self.interval} batches instead"
            " of 4000; both, and the length of the training, determine how long 8 bits last. The"
            " paper's rows that A2DTWP does not change vary by its measurement, ours do not.",
        )


def _rows(system: System, trained: Sequence[DeviceTraining], batch: int) -> list[dict[str, Any]]:
    share = batch / awp_training.BATCH
    kept = {part: system.plain[part] for part in _UNCHANGED}
    kept |= {part: share * kept[part] for part in ("convolution", "connected")}
    plain, adaptive, half = (kept | one.profile for one in trained)
    columns = (plain, adaptive, system.plain, system.adaptive, half)
    rows = [
        {"system": system.name, "part": part}
        | {name: column[part] for name, column in zip(_COLUMNS, columns, strict=True)}
        for part in PARTS
    ]
    together = {name: sum(column.values()) for name, column in zip(_COLUMNS, columns, strict=True)}
    return [*rows, {"system": system.name, "part": "together"} | together]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = (row[name] for name in _COLUMNS)
    return (row["system"], row["part"], *(f"{number:.2f}" if number else "-" for number in numbers))
