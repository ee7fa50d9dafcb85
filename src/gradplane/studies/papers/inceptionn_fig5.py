"""INCEPTIONN, figure 5: the distribution of gradients at three stages of a training."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from gradplane.codecs._base import Floats
from gradplane.studies import gradients, plot
from gradplane.studies.study import Study, StudyOutcome

Width = Annotated[int, Field(strict=True, ge=1)]
_STAGES = ("first", "middle", "last")
_LIMITS = (2.0**-10, 2.0**-6, 0.1, 1.0)


class Fig5(Study):
    """Gradients of a perceptron that learns handwritten digits, of a tenth of the steps each."""

    name: Literal["inceptionn-fig5"] = "inceptionn-fig5"
    steps: int = Field(default=100, ge=30)
    hidden: tuple[Width, ...] = Field(default=(256, 128), strict=False)
    batch: int = Field(default=32, ge=1, le=1797)
    lr: float = Field(default=0.1, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each stage: the shares of values below limits."""
        every = gradients.training(self.steps, self.hidden, self.batch, self.lr, seed)
        kept = [gradients.flat(step.gradients) for step in every]
        tenth = self.steps // 10
        starts = (0, (self.steps - tenth) // 2, self.steps - tenth)
        stages = {
            stage: np.concatenate(kept[start : start + tenth])
            for stage, start in zip(_STAGES, starts, strict=True)
        }
        shares = {stage: _shares(x) for stage, x in stages.items()}
        largest = {stage: float(np.abs(x).max()) for stage, x in stages.items()}
        return StudyOutcome(
            title="INCEPTIONN, figure 5: sizes of gradients, by stage of the training",
            head=("stage", "below 2^-10", "2^-6", "0.1", "1.0", "largest"),
            rows=tuple(
                (stage, *(f"{share:.1%}" for share in found), f"{largest[stage]:.2g}")
                for stage, found in shares.items()
            ),
            notes=(
                "The paper says of AlexNet that at all three stages most values are between -1 and"
                " 1, with a peak tightly around 0 and little variance. Its figure's numbers are"
                " not in our copy.",
                "Where they would differ: a perceptron on digits has fewer and larger gradients.",
            ),
            values=[
                {"stage": stage, "limits": _LIMITS, "shares": found, "largest": largest[stage]}
                | {"paper": None}
                for stage, found in shares.items()
            ],
            figure=plot.linear(
                {stage: (list(_LIMITS), found) for stage, found in shares.items()},
                *("size", "share of values below"),
                from_zero=False,
            ),
        )


def _shares(x: Floats) -> list[float]:
    return [float(np.mean(np.abs(x) < limit)) for limit in _LIMITS]
