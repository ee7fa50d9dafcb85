"""INCEPTIONN, figure 13: the speed-up of a training to the same accuracy."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gradplane.studies import plot
from gradplane.studies.exchange import WITH_HALF, Epoch, Network, Setting, training
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome

Width = Annotated[int, Field(strict=True, ge=1)]


@dataclass(frozen=True)
class Run:
    """A scheme's training, and its first epoch with the accuracy that all schemes reach."""

    scheme: str
    epochs: list[Epoch]
    reached: Epoch

    @property
    def best(self) -> float:
        """The highest accuracy after any epoch."""
        return max(epoch.accuracy for epoch in self.epochs)


class Fig13(Study):
    """The training of a perceptron on handwritten digits under each scheme.

    The accuracy to reach is the highest that all schemes reach. rate is the rate of the links
    between switches."""

    name: Literal["inceptionn-fig13"] = "inceptionn-fig13"
    workers: int = Field(default=4, ge=2, le=16)
    hidden: tuple[Width, ...] = Field(default=(128,), strict=False)
    epochs: int = Field(default=12, ge=1)
    batch: int = Field(default=32, ge=1)
    lr: float = Field(default=0.1, gt=0)
    bound: Literal[6, 8, 10] = 10
    rate: str = "10Gbit"
    compute_ms: float = Field(default=0.05, ge=0)
    reduce_ns_per_value: float = Field(default=0.5, ge=0)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme."""
        setting = Setting(self.rate, self.bound, self.reduce_ns_per_value, self.net, seed)
        job = self.job_keys()
        found = {scheme: training(setting, scheme, self.workers, job) for scheme in WITH_HALF}
        target = min(max(epoch.accuracy for epoch in epochs) for epochs in found.values())
        runs = [
            Run(scheme, epochs, next(epoch for epoch in epochs if epoch.accuracy >= target))
            for scheme, epochs in found.items()
        ]
        wa = runs[0].reached
        return StudyOutcome(
            title=f"INCEPTIONN, figure 13: time to {target:.2%}, {self.workers} workers",
            head=("scheme", "best", "epochs", "ms to it", "speed-up", "the paper's"),
            rows=tuple(_cells(run, wa) for run in runs),
            notes=self._notes(runs),
            values=[
                {
                    "scheme": run.scheme,
                    "best": run.best,
                    "epochs": run.reached.number,
                    "seconds": run.reached.seconds,
                    "speed_up": wa.seconds / run.reached.seconds,
                    "paper": None,
                }
                for run in runs
            ],
            figure=plot.linear(
                {
                    run.scheme: (
                        [1e3 * epoch.seconds for epoch in run.epochs],
                        [epoch.accuracy for epoch in run.epochs],
                    )
                    for run in runs
                },
                "ms",
                "test accuracy",
                from_zero=False,
            ),
        )

    def _notes(self, runs: list[Run]) -> tuple[str, ...]:
        wa, last = runs[0], runs[3]
        more = last.reached.number - wa.reached.number
        return (
            f"INCEPTIONN with compression at 2^-{self.bound} needs {last.reached.number} epochs,"
            f" {abs(more)} {'more' if more >= 0 else 'fewer'} than WA without compression"
            f" ({wa.reached.number}), and reaches the accuracy"
            f" {wa.reached.seconds / last.reached.seconds:.1f} times faster. The paper reports that"
            " a few more epochs make up for the compression's loss, and that training still ends"
            " much earlier; its numbers are not in our copy.",
            "Where they would differ: this model is small enough to be trained packet by packet,"
            " and the computing time is a key of the file, which determines the size of the"
            " speed-up. The number of additional epochs comes from the training itself.",
        )


def _cells(run: Run, wa: Epoch) -> tuple[str, ...]:
    times = (f"{1e3 * run.reached.seconds:.1f}", f"{wa.seconds / run.reached.seconds:.2f}")
    return (run.scheme, f"{run.best:.2%}", str(run.reached.number), *times, NOT_IN_OUR_COPY)
