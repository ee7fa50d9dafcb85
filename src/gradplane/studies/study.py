"""The interface of a study: parameters from a [study] table, and a function to an outcome.

A study is one file in papers/: a class deriving from `Study` whose `name` is what experiment files
call it by. Its other fields are its parameters, with kinds, ranges and defaults.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from gradplane.experiment.sections import Section

NOT_IN_OUR_COPY = "not in our copy"


@dataclass(frozen=True)
class StudyOutcome:
    """A table of text cells that fits 80 columns, what to say about it, a figure, and the numbers.

    `notes` are whole sentences: where we differ from the paper, and why. `values` are plain and go
    into study.json: a list of rows, unrounded."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    values: list[dict[str, Any]]
    figure: Figure


class Study(Section, ABC):
    """Parameters, frozen and checked; equal parameters and seed give an equal outcome."""

    name: str

    @abstractmethod
    def run(self, seed: int) -> StudyOutcome:
        """Compute everything; CodecError if parameters do not fit each other."""


def number(value: float | None, digits: int = 3) -> str:
    """Return a paper's number or ours as a cell; None is what our copy of the paper lacks."""
    return NOT_IN_OUR_COPY if value is None else f"{value:.{digits}g}"
