"""THC, figure 5: the time until a training has an accuracy, by scheme."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import exchange, parallel, plot, thc_rounds
from gradplane.studies.exchange import Epoch
from gradplane.studies.study import Study, StudyOutcome
from gradplane.studies.thc_rounds import HOROVOD, SCHEMES, SWITCH, Scheme

Width = Annotated[int, Field(strict=True, ge=1)]
_PAPER = {HOROVOD: "1", SWITCH: "1.40 to 1.47", "THC-PS": "1.28 to 1.33", "TernGrad": "never"}


class Fig5(Study):
    """A perceptron learns handwritten digits, packet by packet, until `target`.

    Links are so slow that Horovod's ring takes two thirds of the time of computing, as figure 8
    has it for VGG16."""

    name: Literal["thc-fig5"] = "thc-fig5"
    hidden: tuple[Width, ...] = Field(default=(128,), strict=False)
    epochs: int = Field(default=12, ge=1)
    batch: int = Field(default=16, ge=1)
    lr: float = Field(default=0.05, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    target: float = Field(default=0.95, gt=0, le=1)
    rate: str = "700Mbit"
    compute_ms: float = Field(default=1.0, ge=0)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme."""
        cases = [(self, scheme, seed) for scheme in SCHEMES]
        trained = parallel.each(Fig5.train, cases, "training")
        curves = dict(zip((scheme.label for scheme in SCHEMES), trained, strict=True))
        times = {label: self._time(epochs) for label, epochs in curves.items()}
        base = times[HOROVOD]
        gains = {label: base / t if base and t else None for label, t in times.items()}
        return StudyOutcome(
            title=f"THC, figure 5: time to {self.target:.0%}, digits, {self.rate}/s",
            head=("scheme", "ms", "faster", "the paper's", "last accuracy"),
            rows=tuple(
                (
                    *(label, _shown(times[label], 1e3), _shown(gains[label])),
                    *(_PAPER.get(label, "-"), f"{epochs[-1].accuracy:.1%}"),
                )
                for label, epochs in curves.items()
            ),
            notes=(
                "`faster`: Horovod's time over the scheme's. The paper's are those of its text, of"
                " VGG16, GPT-2 and RoBERTa-base. Codecs take no time here.",
                "Why they differ: digits are easier than ImageNet, so TernGrad, which stalls in"
                " the paper, gets there as well; one server answers whole vectors, where the"
                " paper's partitions go up and down at once; and the GPU's encoding is left out.",
            ),
            values=[
                {"scheme": label, "seconds": times[label], "faster": gains[label], "paper": None}
                | {"curve": [[epoch.seconds, epoch.accuracy] for epoch in epochs]}
                for label, epochs in curves.items()
            ],
            figure=plot.linear(
                {
                    label: ([1e3 * e.seconds for e in epochs], [e.accuracy for e in epochs])
                    for label, epochs in curves.items()
                },
                *("ms", "test accuracy"),
                from_zero=False,
            ),
        )

    def train(self, scheme: Scheme, seed: int) -> list[Epoch]:
        """Return the epochs of a training under a scheme; TernGrad has no error feedback."""
        job: dict[str, Any] = {
            **self.job_keys(),
            "error_feedback": scheme.label != "TernGrad",
            "seed": seed,
        }
        return exchange.epochs(thc_rounds.experiment(scheme, self.rate, job))

    def _time(self, epochs: list[Epoch]) -> float | None:
        return next((e.seconds for e in epochs if e.accuracy >= self.target), None)


def _shown(value: float | None, scale: float = 1.0) -> str:
    return "never" if value is None else f"{scale * value:.3g}"
