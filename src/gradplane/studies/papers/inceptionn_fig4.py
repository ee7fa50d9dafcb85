"""INCEPTIONN, figure 4: accuracy when gradients, weights or both are truncated."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from gradplane.codecs._base import Floats
from gradplane.studies import gradients, plot
from gradplane.studies.repeated import Estimate
from gradplane.studies.study import Study, StudyOutcome, several

Width = Annotated[int, Field(strict=True, ge=1)]
Drop = Annotated[int, Field(strict=True, ge=1, le=31)]

WHAT = {"gradients": (True, False), "weights": (False, True), "both": (True, True)}
"""Whether gradients are truncated, and whether weights are, by the case's name."""

TEST = 0.2  # the share of images held out of the training


@dataclass(frozen=True)
class Scheme:
    """Trainings with so many low bits of something cut, and their accuracies on held-out images."""

    what: str
    drop: int
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> Estimate:
        return Estimate.of(self.accuracies)


class Fig4(Study):
    """Trainings of a perceptron on handwritten digits.

    Gradients are truncated where they arrive, weights each time that they were updated, so that
    what is cut off a weight is missing from the next update on, as in the paper."""

    name: Literal["inceptionn-fig4"] = "inceptionn-fig4"
    drops: tuple[Drop, ...] = several((16, 22, 24))
    steps: int = Field(default=600, ge=1)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1438)
    lr: float = Field(default=0.1, gt=0)
    repetitions: int = Field(default=5, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for no truncation, and one for each number of bits and what they are of."""
        plain = self._scheme("nothing", 0, seed)
        schemes = [self._scheme(what, drop, seed) for drop in self.drops for what in WHAT]
        every = [plain, *schemes]
        return StudyOutcome(
            title=f"INCEPTIONN, figure 4: accuracy after {self.steps} steps",
            head=("truncated", "bits cut", "accuracy, %", "points lost"),
            rows=tuple(_cells(one, plain) for one in every),
            notes=self._notes(plain, schemes),
            values=[
                {"what": one.what, "drop": one.drop, "accuracies": one.accuracies, "paper": None}
                for one in every
            ],
            figure=_figure(plain, schemes),
        )

    def _scheme(self, what: str, drop: int, seed: int) -> Scheme:
        each = tuple(self._train(what, drop, seed + r) for r in range(self.repetitions))
        return Scheme(what, drop, each)

    def _train(self, what: str, drop: int, seed: int) -> float:
        of_gradients, of_weights = WHAT.get(what, (False, False))

        def cut(tensors: list[Floats]) -> list[Floats]:
            return [truncated(x, drop) for x in tensors]

        *_, last = gradients.training(
            *(self.steps, self.hidden, self.batch, self.lr, seed),
            test=TEST,
            answer=cut if of_gradients else list,
            keep=cut if of_weights else list,
        )
        return gradients.accuracy(last.weights, TEST)

    def _notes(self, plain: Scheme, schemes: list[Scheme]) -> tuple[str, ...]:
        most = {what: max(_lost(s, plain) for s in schemes if s.what == what) for what in WHAT}
        return (
            f"At most {most['gradients']:.1f} points are lost where gradients are truncated,"
            f" {most['weights']:.1f} where weights are, {most['both']:.1f} where both are."
            " Cutting 16 bits leaves bf16's format, without its rounding.",
            "The paper says that truncated gradients hardly change the accuracy, that truncated"
            " weights lower it much, more so in larger networks, since their loss of precision"
            " adds up over the iterations. Its figure's numbers are not in our copy.",
            "Where they would differ: the paper trains AlexNet and a perceptron on digits of 28 by"
            " 28 pixels, here digits have 8 by 8.",
        )


def truncated(x: Floats, drop: int) -> Floats:
    """Return float32 values with so many low bits set to zero."""
    mask = np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    found: Floats = (np.ascontiguousarray(x).view(np.uint32) & mask).view(np.float32)
    return found


def _lost(scheme: Scheme, plain: Scheme) -> float:
    return 100 * (plain.accuracy.mean - scheme.accuracy.mean)


def _cells(scheme: Scheme, plain: Scheme) -> tuple[str, ...]:
    cut = str(scheme.drop) if scheme.drop else "-"
    lost = f"{_lost(scheme, plain):.1f}" if scheme is not plain else "-"
    return scheme.what, cut, scheme.accuracy.points, lost


def _figure(plain: Scheme, schemes: list[Scheme]) -> Figure:
    lines = {}
    for what in WHAT:
        own = [plain, *(scheme for scheme in schemes if scheme.what == what)]
        lines[what] = [scheme.drop for scheme in own], [scheme.accuracy.mean for scheme in own]
    return plot.linear(lines, "low bits cut", "test accuracy", from_zero=False)
