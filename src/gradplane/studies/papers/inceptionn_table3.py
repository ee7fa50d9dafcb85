"""INCEPTIONN, table III: tag mix, ratio and error, compared with plain truncation."""

from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from gradplane.studies import gradients, inceptionn_tags, plot
from gradplane.studies.inceptionn_tags import CodecEffect, Mix
from gradplane.studies.nmse import Floats
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, number

Bound = Literal[6, 8, 10]
Drop = Literal[8, 16, 24]
Width = Annotated[int, Field(strict=True, ge=1)]


class Table3(Study):
    """Gradients recorded while a perceptron learns handwritten digits, all steps as one vector."""

    name: Literal["inceptionn-table3"] = "inceptionn-table3"
    bounds: tuple[Bound, ...] = Field(default=(10, 8, 6), min_length=1, strict=False)
    drops: tuple[Drop, ...] = Field(default=(8, 16, 24), strict=False)
    steps: int = Field(default=100, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1797)
    lr: float = Field(default=0.1, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each truncation, then one for each error bound."""
        steps = gradients.training(self.steps, self.hidden, self.batch, self.lr, seed)
        x = np.concatenate([gradients.flat(step.gradients) for step in steps])
        mixes = {mix.bound: mix for mix in inceptionn_tags.table3(x, self.bounds)}
        errors = inceptionn_tags.against_truncation(x, self.bounds, self.drops)
        return StudyOutcome(
            title=f"INCEPTIONN, table III: {x.size:,} values",
            head=("scheme", "0 bits", "8", "16", "32", "ratio", "NMSE", "the paper's"),
            rows=tuple(_cells(error, mixes) for error in errors),
            notes=_notes(x, errors),
            values=[_plain(error, mixes) for error in errors],
            figure=_figure(list(mixes.values())),
        )


def _mix(error: CodecEffect, mixes: dict[int, Mix]) -> Mix | None:
    return mixes[error.parameter] if error.name == "inceptionn" else None


def _cells(error: CodecEffect, mixes: dict[int, Mix]) -> tuple[str, ...]:
    mix = _mix(error, mixes)
    label = f"bound 2^-{error.parameter}" if mix else f"{error.parameter} bits cut"
    shares = [f"{share:.1%}" for share in mix.shares] if mix else ["-"] * 4
    return (label, *shares, f"{error.ratio:.2f}", number(error.nmse, 2), NOT_IN_OUR_COPY)


def _plain(error: CodecEffect, mixes: dict[int, Mix]) -> dict[str, object]:
    mix = _mix(error, mixes)
    return {
        "codec": error.name,
        "parameter": error.parameter,
        "shares": mix.shares if mix else None,
        "ratio": error.ratio,
        "largest_error": error.largest,
        "nmse": error.nmse,
        "paper": None,
    }


def _notes(x: Floats, errors: list[CodecEffect]) -> tuple[str, ...]:
    best = max(errors, key=lambda error: error.ratio)
    size = float(np.abs(x).max())
    return (
        "The columns are the shares of values that need 0, 8, 16 and 32 bits besides the tag's 2."
        " Table III's numbers are not in our copy of the paper, so only the shape can be compared:"
        " the looser the bound, the more values need no bits, and the ratio rises above 4, the most"
        f" that truncation can reach: to {best.ratio:.1f}.",
        "Where they would differ: the bound is absolute, so ratio and NMSE depend on the size of"
        f" the gradients. These, of a perceptron on handwritten digits, are at most {size:.2g}. For"
        " the accuracy of whole trainings see figure 14: experiments/inceptionn-fig14.toml.",
    )


def _figure(mixes: list[Mix]) -> Figure:
    labels = [f"bound 2^-{mix.bound}\nratio {mix.ratio:.1f}" for mix in mixes]
    tags = ("0 bits", "8 bits", "16 bits", "32 bits")
    shares = {tag: [mix.shares[i] for mix in mixes] for i, tag in enumerate(tags)}
    return plot.stacks(labels, shares, "share of values")
