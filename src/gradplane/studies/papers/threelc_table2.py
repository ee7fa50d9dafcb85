"""3LC, table 2: bits per value over the sparsity multiplier s."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from gradplane.studies import gradients, plot, threelc_bits
from gradplane.studies.nmse import Floats
from gradplane.studies.study import Study, StudyOutcome, number
from gradplane.studies.threelc_bits import Row

Multiplier = Annotated[float, Field(strict=True, ge=1, lt=2)]
Width = Annotated[int, Field(strict=True, ge=1)]


class Table2(Study):
    """Gradients recorded while a perceptron learns handwritten digits."""

    name: Literal["3lc-table2"] = "3lc-table2"
    s: tuple[Multiplier, ...] = Field(default=threelc_bits.MULTIPLIERS, min_length=1, strict=False)
    steps: int = Field(default=200, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1797)
    lr: float = Field(default=0.1, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row without zero-run encoding, then one for each s."""
        steps = list(gradients.training(self.steps, self.hidden, self.batch, self.lr, seed))
        rows = threelc_bits.table2([step.gradients for step in steps], self.s)
        labels, paper = [_label(row) for row in rows], [row.paper_bits for row in rows]
        return StudyOutcome(
            title=f"3LC, table 2: bits per value, mean of {self.steps} steps",
            head=("s", "ratio", "bits", "the paper's bits"),
            rows=tuple(map(_cells, rows)),
            notes=_notes(rows, [gradients.flat(step.gradients) for step in steps]),
            values=[
                {"s": row.s, "bits": row.bits, "steps": row.steps, "paper_bits": row.paper_bits}
                for row in rows
            ],
            figure=plot.pairs(labels, [row.bits for row in rows], paper, "bits per value"),
        )


def _label(row: Row) -> str:
    return "no zero runs" if row.s is None else f"s = {row.s:g}"


def _cells(row: Row) -> tuple[str, ...]:
    return (_label(row), f"{row.ratio:.1f}", number(row.bits), number(row.paper_bits))


def _notes(rows: list[Row], steps: list[Floats]) -> tuple[str, ...]:
    over = rows[0].bits - 1.6
    zeros = float(np.mean([np.mean(x == 0) for x in steps]))
    return (
        f"Without zero-run encoding both send 1.6 bits, ours {over:.4f} more: for each tensor's m"
        " and for padding its last group of five values. A larger s makes more zeros, and so fewer"
        " bits.",
        "Why the rest differs: the sparser the values, the more zero-run encoding saves. The paper"
        " averages gradient pushes and model pulls of ResNet-110 on CIFAR-10, and says that pulls"
        " are less sparse for most of the training; ours are one worker's pushes for a perceptron"
        f" of {steps[0].size:,} weights, {zeros:.0%} of whose gradients are exactly zero because"
        " of inactive hidden units.",
    )
