"""3LC, table 2: bits per value over the sparsity multiplier s."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from gradplane.codecs._base import Floats
from gradplane.codecs.threelc import ThreeLC
from gradplane.studies import gradients, plot
from gradplane.studies.study import Study, StudyOutcome, number, several

MULTIPLIERS = (1.0, 1.5, 1.75, 1.9)
# ResNet-110 on CIFAR-10, gradient pushes and model pulls of all standard training steps
PAPER_BITS = {None: 1.60, 1.0: 0.812, 1.5: 0.451, 1.75: 0.298, 1.9: 0.200}


@dataclass(frozen=True)
class Row:
    """The bits per value of each step at one s, and the paper's mean.

    s is None for s = 1 without zero-run encoding."""

    s: float | None
    steps: tuple[float, ...]
    paper_bits: float | None

    @property
    def bits(self) -> float:
        """The mean over the steps, in bits per value."""
        return float(np.mean(self.steps))

    @property
    def ratio(self) -> float:
        """The compression ratio: 32 bits over `bits`."""
        return 32 / self.bits

    @property
    def paper_ratio(self) -> float | None:
        """The paper's compression ratio: 32 bits over `paper_bits`."""
        return 32 / self.paper_bits if self.paper_bits else None


def table2(steps: Iterable[Sequence[Floats]], s: Sequence[float] = MULTIPLIERS) -> list[Row]:
    """Return a row without zero-run encoding, then one for each s.

    `steps` are the gradients that one worker pushes, step by step, one array per tensor: each
    tensor has its own m and error accumulation, as in the paper. All bytes of encode() count."""
    kept = [list(step) for step in steps]
    plain = Row(None, bits(kept, ThreeLC(zero_runs=False)), PAPER_BITS[None])
    return [plain, *(Row(v, bits(kept, ThreeLC(s=v)), PAPER_BITS.get(v)) for v in s)]


def bits(steps: Sequence[Sequence[Floats]], codec: ThreeLC) -> tuple[float, ...]:
    """Return the bits per value of each step, over all its tensors."""
    states = [codec.start(tensor.size) for tensor in steps[0]] if steps else []
    made = []
    for tensors in steps:
        size = 0
        for i, tensor in enumerate(tensors):
            data, states[i] = codec.encode(tensor.reshape(-1), state=states[i])
            size += len(data)
        made.append(8 * size / sum(tensor.size for tensor in tensors))
    return tuple(made)


Multiplier = Annotated[float, Field(strict=True, ge=1, lt=2)]
Width = Annotated[int, Field(strict=True, ge=1)]


class Table2(Study):
    """Gradients recorded while a perceptron learns handwritten digits."""

    name: Literal["3lc-table2"] = "3lc-table2"
    s: tuple[Multiplier, ...] = several(MULTIPLIERS)
    steps: int = Field(default=200, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1797)
    lr: float = Field(default=0.1, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row without zero-run encoding, then one for each s."""
        steps = list(gradients.training(self.steps, self.hidden, self.batch, self.lr, seed))
        rows = table2([step.gradients for step in steps], self.s)
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
        " bits. bf16 sends 16.",
        "Why the rest differs: the sparser the values, the more zero-run encoding saves. The paper"
        " averages gradient pushes and model pulls of ResNet-110 on CIFAR-10, and says that pulls"
        " are less sparse for most of the training; ours are one worker's pushes for a perceptron"
        f" of {steps[0].size:,} weights, {zeros:.0%} of whose gradients are exactly zero because"
        " of inactive hidden units.",
    )
