"""THC, figure 14: accuracy of THC, and of uniform codes without rotation or error feedback."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import plot
from gradplane.studies.repeated import Ended, Estimate, Network, gap, trainings
from gradplane.studies.study import Study, StudyOutcome, number
from gradplane.studies.trainings import first_error

Width = Annotated[int, Field(strict=True, ge=1)]
_PLAIN, _ROTATED = "no compression", "UTHC"
_UNROTATED = "UTHC, no rotation"
_PAPER = {
    _PLAIN: "first",
    "bf16": "-",
    "THC": "nearly the first",
    _ROTATED: "below THC",
    "UTHC, no feedback": "a little below UTHC",
    _UNROTATED: "about 5 below",
}


class Fig14(Study):
    """Trainings of a perceptron on handwritten digits, summed by the P4 switch, on `net`.

    granularity and p are those of the paper's prototype, `bits` its 4 or fewer."""

    name: Literal["thc-fig14"] = "thc-fig14"
    bits: int = Field(default=4, ge=1, le=8)
    granularity: int = Field(default=30, ge=15, le=63)
    p: float = Field(default=1 / 32, gt=0, lt=1)
    hidden: tuple[Width, ...] = Field(default=(54,), strict=False)
    epochs: int = Field(default=8, ge=1)
    batch: int = Field(default=32, ge=1)
    lr: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: int = Field(default=3, ge=1)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each variant."""
        jobs = self._jobs()
        experiments = [self._experiment(job) for job in jobs.values()]
        found = trainings(experiments, self.net, seed, self.repetitions)
        ended = dict(zip(jobs, found, strict=True))
        gaps = {label: gap(those, ended[_PLAIN]) for label, those in ended.items()}
        errors = {label: self._error(job, seed) for label, job in jobs.items()}
        return StudyOutcome(
            title=f"THC, figure 14: accuracy less that without compression, {self.bits} bits",
            head=("variant", "test accuracy", "difference", "NMSE", "the paper's"),
            rows=tuple(
                (label, _accuracy(those).points, gaps[label].points, number(errors[label]))
                + (_PAPER[label],)
                for label, those in ended.items()
            ),
            notes=(
                "Points of the test accuracy after the last epoch, the mean and half of the 95 %"
                f" interval over {self.repetitions} seeds; differences are between trainings with"
                " the same seeds. UTHC has evenly spaced values. NMSE is that of the first round's"
                " mean.",
                "Why they differ: rotation lowers the error by"
                f" {errors[_UNROTATED] / errors[_ROTATED]:.1f} times here, too, but digits are"
                " learned with either; the paper fine-tunes RoBERTa on SST2, whose gradients have a"
                " few values far above all others, and is more sensitive to errors.",
            ),
            values=[
                {"variant": label, "gap": [gaps[label].mean, gaps[label].half]}
                | {"nmse": errors[label]}
                | {"test_accuracies": [one.test_accuracy for one in those], "paper": _PAPER[label]}
                for label, those in ended.items()
            ],
            figure=plot.pairs(
                [label.replace(", ", ",\n") for label in gaps],
                [100 * one.mean for one in gaps.values()],
                [-5.0 if label == _UNROTATED else None for label in gaps],
                "difference of test accuracy, points",
                spread=[100 * one.half for one in gaps.values()],
            ),
        )

    def _jobs(self) -> dict[str, dict[str, Any]]:
        uniform = {"name": "uniform_thc", "bits": self.bits, "p": self.p}
        table = {"bits": self.bits, "granularity": self.granularity, "p": self.p}
        served = {"aggregation": "ps"}
        return {
            _PLAIN: served | {"push": {"name": "float32"}},
            "bf16": served | {"push": {"name": "bfloat16"}, "pull": {"name": "bfloat16"}},
            "THC": {"push": {"name": "thc"} | table},
            _ROTATED: {"push": uniform},
            "UTHC, no feedback": {"push": uniform, "error_feedback": False},
            _UNROTATED: {"push": uniform | {"rotate": False}},
        }

    def _error(self, job: dict[str, Any], seed: int) -> float:
        return first_error(4, seed=seed, push=job["push"], **self.job_keys())

    def _experiment(self, job: dict[str, Any]) -> dict[str, Any]:
        topology = {"workers": 4, "rate": "10Gbit", "queue": 10_000}
        keys = self.job_keys() | {"reliability": "retransmit"} | job
        return {"name": self.name, "topology": topology, "job": [keys]}


def _accuracy(those: tuple[Ended, ...]) -> Estimate:
    return Estimate.of([one.test_accuracy for one in those])
