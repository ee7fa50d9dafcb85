"""3LC, figures 3 and 5: accuracy and time of trainings with a quarter to all of the steps."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gradplane.studies import parallel, plot
from gradplane.studies.papers.threelc_table1 import DESIGNS, Rate, Trained, Width, known, train
from gradplane.studies.study import Study, StudyOutcome, several

_PLAIN = DESIGNS[0].label
_DESIGNS = (
    *("bf16", "8-bit int", "ternary b-3-5", "sparse 5 %"),
    *("3LC s=1", "3LC s=1.75", "3LC s=1.9"),
)
_SHARES = (1, 2, 3, 4)  # quarters of the steps


class Fig3(Study):
    """A perceptron learns handwritten digits; the learning rate falls along a cosine over the
    steps that a training has."""

    name: Literal["3lc-fig3"] = "3lc-fig3"
    designs: Annotated[tuple[str, ...], AfterValidator(known)] = several(_DESIGNS)
    rate: Rate = "10Mbit"
    workers: int = Field(default=10, ge=2, le=32)
    hidden: tuple[Width, ...] = Field(default=(64,), strict=False)
    epochs: int = Field(default=16, ge=4, multiple_of=4)
    batch: int = Field(default=16, ge=1)
    lr: float = Field(default=0.05, gt=0)
    compute_ms: float = Field(default=6.0, ge=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each design."""
        designs = [design for design in DESIGNS if design.label in (_PLAIN, *self.designs)]
        cases = [
            (design, self.rate, self.workers, seed, self._job(share))
            for design in designs
            for share in _SHARES
        ]
        trained = iter(parallel.each(train, cases, "training"))
        rows = {design.label: [next(trained) for _ in _SHARES] for design in designs}
        whole = rows[_PLAIN][-1].seconds
        return StudyOutcome(
            title=f"3LC, figures 3 and 5: 25, 50, 75 and 100 % of the steps, {self.rate}/s",
            head=("design", "accuracy, %", "time, 32 bits = 1"),
            rows=tuple((label, *_cells(those, whole)) for label, those in rows.items()),
            notes=(
                "The paper's points have no numbers in its text. It says: with few steps s = 1 is"
                " more accurate than s = 1.75, which is quickest and as accurate with all of them;"
                " s = 1.9 is less accurate; ternary without error accumulation stays below.",
                "Why they differ: the paper trains ResNet-110 on CIFAR-10, here a perceptron learns"
                f" digits in {self.epochs} epochs, and its few packets' headers and latency keep"
                " the most compressed designs from being as much faster.",
            ),
            values=[_values(label, those) for label, those in rows.items()],
            figure=plot.linear(
                {
                    label: ([one.seconds for one in those], [one.accuracy for one in those])
                    for label, those in rows.items()
                },
                *("s", "test accuracy"),
                from_zero=False,
            ),
        )

    def _job(self, share: int) -> dict[str, Any]:
        return {
            **self.job_keys(),
            "epochs": self.epochs * share // len(_SHARES),
            "schedule": "cosine",
            "weight_decay": 1e-4,
        }


def _cells(those: list[Trained], whole: float) -> tuple[str, str]:
    accuracies = " ".join(f"{100 * one.accuracy:.1f}" for one in those)
    return accuracies, " ".join(f"{one.seconds / whole:.3f}" for one in those)


def _values(label: str, those: list[Trained]) -> dict[str, Any]:
    return {
        "design": label,
        "seconds": [one.seconds for one in those],
        "accuracies": [one.accuracy for one in those],
        "paper": None,
    }
