"""INCEPTIONN, table III: tag mix, ratio and error, compared with plain truncation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from gradplane.codecs import _bursts
from gradplane.codecs._base import Codec, Floats, check_vector
from gradplane.codecs.bfloat16 import BFloat16
from gradplane.codecs.inceptionn import Inceptionn
from gradplane.codecs.truncation import Truncation
from gradplane.studies import gradients, plot
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, number, several

BOUNDS = (10, 8, 6)
DROPS = (8, 16, 24)
WIDTHS = (2, 10, 18, 34)  # bits of a value with tag 0, 1, 2, 3, including the tag


@dataclass(frozen=True)
class Mix:
    """The shares of the values with tag 0, 1, 2 and 3, which add up to 1."""

    bound: int
    shares: tuple[float, ...]

    @property
    def bits(self) -> float:
        """The mean number of bits per value, tags included."""
        return float(np.dot(self.shares, WIDTHS))

    @property
    def ratio(self) -> float:
        """The compression ratio: 32 bits over `bits`."""
        return 32 / self.bits


@dataclass(frozen=True)
class CodecEffect:
    """The effect of a codec on a gradient: ratio of bytes, largest error, NMSE."""

    name: str
    parameter: int
    ratio: float
    largest: float
    nmse: float


def table3(gradient: Floats, bounds: Sequence[int] = BOUNDS) -> list[Mix]:
    """Return the tag mix of float32[n], n > 0, for each error bound 2^-k."""
    exponents = (check_vector(gradient).view(np.uint32) >> np.uint32(23)) & np.uint32(255)
    rows = []
    for bound in bounds:
        low, middle = _bursts.thresholds(Inceptionn(bound).bound)
        tags = np.searchsorted((low, middle, 127), exponents, side="right")
        counts = np.bincount(tags, minlength=4) / exponents.size
        rows.append(Mix(bound, tuple(counts.tolist())))
    return rows


def against_truncation(
    gradient: Floats, bounds: Sequence[int] = BOUNDS, drops: Sequence[int] = DROPS
) -> list[CodecEffect]:
    """Return ratio and error on float32[n], n > 0, of each truncation, of bf16, of each bound."""
    truncated = [_error(Truncation(drop), drop, gradient) for drop in drops]
    truncated.append(_error(BFloat16(), 16, gradient))
    return truncated + [_error(Inceptionn(bound), bound, gradient) for bound in bounds]


def _error(codec: Codec, parameter: int, x: Floats) -> CodecEffect:
    data, _ = codec.encode(x)
    error = codec.decode(data, x.size).astype(np.float64) - x
    power = float(np.dot(x.astype(np.float64), x)) or 1.0
    largest, nmse = float(np.abs(error).max()), float(np.dot(error, error)) / power
    return CodecEffect(codec.name, parameter, x.nbytes / len(data), largest, nmse)


Bound = Literal[6, 8, 10]
Drop = Literal[8, 16, 24]
Width = Annotated[int, Field(strict=True, ge=1)]


class Table3(Study):
    """Gradients recorded while a perceptron learns handwritten digits, all steps as one vector."""

    name: Literal["inceptionn-table3"] = "inceptionn-table3"
    bounds: tuple[Bound, ...] = several((10, 8, 6))
    drops: tuple[Drop, ...] = Field(default=(8, 16, 24), strict=False)
    steps: int = Field(default=100, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1797)
    lr: float = Field(default=0.1, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each truncation, one for bf16, then one for each error bound."""
        steps = gradients.training(self.steps, self.hidden, self.batch, self.lr, seed)
        x = np.concatenate([gradients.flat(step.gradients) for step in steps])
        mixes = {mix.bound: mix for mix in table3(x, self.bounds)}
        errors = against_truncation(x, self.bounds, self.drops)
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
    label = "bf16" if error.name == "bfloat16" else label
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
