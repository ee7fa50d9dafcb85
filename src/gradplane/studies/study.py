"""The interface of a study: parameters from a [study] table, and a function to an outcome.

A study is one file in papers/: a class derived from `Study` whose `name` is the one that experiment
files use. Its other fields are its parameters, with kinds, ranges and defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from gradplane._toml_documents import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OF_A_JOB = ("epochs", "batch", "lr", "momentum", "compute_ms")
NOT_IN_OUR_COPY = "not in our copy"


@dataclass(frozen=True)
class StudyOutcome:
    """The result of a study: a table of text cells that fits 80 columns, notes, numbers, a figure.

    `notes` are full sentences that say where and why the result differs from the paper's. `values`
    are the unrounded rows, as plain values for study.json."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    values: list[dict[str, Any]]
    figure: Figure


class Study(Section, ABC):
    """A study's parameters, frozen and checked; equal parameters and seed give equal outcomes."""

    name: str

    @abstractmethod
    def run(self, seed: int) -> StudyOutcome:
        """Compute the outcome; CodecError if parameters do not fit each other."""

    def job_keys(self) -> dict[str, Any]:
        """Return the keys of a [[job]] that the parameters of the same names give, and the model of
        the `hidden` layers, if the study has them."""
        given = {key: value for key, value in self if key in _OF_A_JOB}
        hidden = getattr(self, "hidden", None)
        model = {"model": {"name": "mlp", "hidden": list(hidden)}} if hidden is not None else {}
        return model | given


def several(default: tuple[Any, ...]) -> Any:
    """Return the field of a parameter with one or more values, an array in an experiment file."""
    return Field(default=default, min_length=1, strict=False)


def number(value: float | None, digits: int = 3) -> str:
    """Format a number, ours or the paper's, as a cell; None means that our copy lacks it."""
    return NOT_IN_OUR_COPY if value is None else f"{value:.{digits}g}"
