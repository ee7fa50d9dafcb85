"""3LC, figures 4 and 6: loss, accuracy and bits a value over a training's steps."""

from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gradplane.studies import parallel, plot
from gradplane.studies.papers.threelc_table1 import DESIGNS, Trained, Width, known, train
from gradplane.studies.study import Study, StudyOutcome, several

_PLAIN = DESIGNS[0].label
_DESIGNS = ("bf16", "ternary b-3-5", "sparse 5 %", "2 local steps", "3LC s=1", "3LC s=1.75")
_QUARTERS = 4


class Fig4(Study):
    """A perceptron learns handwritten digits; the learning rate falls along a cosine."""

    name: Literal["3lc-fig4"] = "3lc-fig4"
    designs: Annotated[tuple[str, ...], AfterValidator(known)] = several(_DESIGNS)
    workers: int = Field(default=10, ge=2, le=32)
    hidden: tuple[Width, ...] = Field(default=(64,), strict=False)
    epochs: int = Field(default=24, ge=4)
    batch: int = Field(default=16, ge=1)
    lr: float = Field(default=0.05, gt=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each design, with the means over each quarter of the training."""
        job = self.job_keys() | {"schedule": "cosine", "weight_decay": 1e-4}
        designs = [design for design in DESIGNS if design.label in (_PLAIN, *self.designs)]
        cases = [(design, "1Gbit", self.workers, seed, job) for design in designs]
        trained = parallel.each(train, cases, "training")
        rows = {design.label: one for design, one in zip(designs, trained, strict=True)}
        return StudyOutcome(
            title="3LC, figures 4 and 6: loss and bits a value, by quarter of the training",
            head=("design", "loss", "accuracy", "bits pushed", "bits pulled"),
            rows=tuple((label, *_cells(one)) for label, one in rows.items()),
            notes=(
                "Means over each quarter of the steps. The paper's curves have no numbers in its"
                " text. It says: but for 3LC, designs with less traffic have a higher loss; 3LC's"
                " pushes are smaller than its pulls until 70 % of the training, then they grow.",
                "Why they differ: the paper trains ResNet-110 on CIFAR-10 for 25,600 steps, here a"
                f" perceptron learns digits in {len(trained[0].losses)}.",
            ),
            values=[_values(label, one) for label, one in rows.items()],
            figure=plot.linear(
                {
                    label: ([float(n) for n in range(len(one.curve))], [a for _, a in one.curve])
                    for label, one in rows.items()
                },
                *("epoch", "test accuracy"),
                from_zero=False,
            ),
        )


def _quarters(numbers: list[float]) -> list[float]:
    """Return the means over each quarter."""
    n = len(numbers)
    ends = [n * quarter // _QUARTERS for quarter in range(_QUARTERS + 1)]
    return [fmean(numbers[a:b]) for a, b in zip(ends, ends[1:], strict=False)]


def _parts(one: Trained) -> tuple[list[float], list[float], list[float]]:
    up, down = ([bits[way] for bits in one.rounds] for way in (0, 1))
    return _quarters(list(one.losses)), _quarters(up), _quarters(down)


def _cells(one: Trained) -> tuple[str, ...]:
    losses, up, down = (" ".join(f"{n:.2g}" for n in part) for part in _parts(one))
    return losses, f"{one.accuracy:.1%}", up, down


def _values(label: str, one: Trained) -> dict[str, Any]:
    return {
        "design": label,
        "losses": one.losses,
        "bits": one.rounds,
        "curve": one.curve,
        "paper": None,
    }
