"""THC, figures 11 and 16: accuracy under packet loss, with synchronisation, and with stragglers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane.studies import plot
from gradplane.studies.repeated import Ended, Estimate, Network, gap, trainings
from gradplane.studies.study import Study, StudyOutcome

Rate = Annotated[float, Field(gt=0, lt=1)]
Width = Annotated[int, Field(strict=True, ge=1)]
_train, _test = attrgetter("train_accuracy"), attrgetter("test_accuracy")
Drop = tuple[float, float]
"""A drop below the baseline in percentage points, from and to."""

_WORKERS = 10  # the paper's

# The paper's drops (section 8.4 and appendix D.5) of training and test accuracy, by rate and
# synchronisation or by the number of stragglers; where it gives one number, both ends are equal.
_LOSS: dict[tuple[float, bool], tuple[Drop, Drop]] = {
    (0.001, False): ((11, 11), (3.2, 3.2)),
    (0.001, True): ((0.5, 0.5), (0.4, 0.4)),
    (0.01, False): ((24, 24), (6, 6)),
    (0.01, True): ((1.5, 1.5), (1.5, 1.5)),
}
_STRAGGLERS: dict[int, tuple[Drop, Drop]] = {
    1: ((0, 0), (0, 0)),
    2: ((5, 6), (0.5, 0.5)),
    3: ((5, 6), (0.5, 0.5)),
}


@dataclass(frozen=True)
class Bar:
    """A bar of the figure: its experiment, and the paper's drops of training and test accuracy."""

    label: str
    experiment: dict[str, Any]
    paper: tuple[Drop, Drop] | None


@dataclass(frozen=True)
class Case:
    """A bar's trainings, and the paper's drops of training and test accuracy."""

    label: str
    trained: tuple[Ended, ...]
    paper: tuple[Drop, Drop] | None

    def drop(self, plain: "Case", accuracy: Callable[[Ended], float]) -> Estimate:
        """Return by how much the accuracy is below that of `plain`, seed by seed."""
        return gap(plain.trained, self.trained, accuracy)


class Fig11(Study):
    """Trainings of a perceptron on handwritten digits through the P4 switch, on `net`.

    Rates of loss hold in both directions, with and without synchronisation after each epoch, and
    for bf16 through a parameter server; all packets of the stragglers, drawn in each round, come
    too late for a quorum of the others. The granularity, p and the number of workers are the
    paper's; each case runs under `repetitions` seeds."""

    name: Literal["thc-fig11"] = "thc-fig11"
    losses: tuple[Rate, ...] = Field(default=(0.001, 0.01), strict=False)
    stragglers: tuple[Width, ...] = Field(default=(1, 2, 3), strict=False)
    workers: int = Field(default=_WORKERS, ge=2, le=64)
    granularity: int = Field(default=20, ge=15)
    p: float = Field(default=1 / 512, gt=0, lt=1)
    hidden: tuple[Width, ...] = Field(default=(54,), strict=False)
    epochs: int = Field(default=15, ge=1)
    batch: int = Field(default=8, ge=1)
    lr: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: int = Field(default=5, ge=1)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each rate without and with synchronisation, and number of stragglers."""
        bars = [*self._lossy(), *self._slow()]
        experiments = [self._experiment({}, []), *(bar.experiment for bar in bars)]
        first, *others = trainings(experiments, self.net, seed, self.repetitions)
        plain = Case("no losses", first, None)
        cases = [Case(b.label, t, b.paper) for b, t in zip(bars, others, strict=True)]
        drops = [(case, case.drop(plain, _train), case.drop(plain, _test)) for case in cases]
        return StudyOutcome(
            title=f"THC, figure 11: drop of accuracy in points, {self.workers} workers",
            head=("", "training", "the paper's", "test", "the paper's"),
            rows=tuple(
                (case.label, train.points, _papers(case, 0), test.points, _papers(case, 1))
                for case, train, test in drops
            ),
            notes=self._notes(plain),
            values=[_values(plain, None, None), *(_values(*drop) for drop in drops)],
            figure=_figure(drops),
        )

    def _lossy(self) -> Iterator[Bar]:
        for rate in self.losses:
            for sync in (False, True):
                impairments = [{"model": "bernoulli", "rate": rate}]
                label = f"{100 * rate:g} % loss{', synchronised' if sync else ''}"
                experiment = self._experiment({"sync": sync}, impairments)
                yield Bar(label, experiment, self._paper(_LOSS.get((rate, sync))))
            yield Bar(f"{100 * rate:g} % loss, bf16", self._half(impairments), None)

    def _slow(self) -> Iterator[Bar]:
        for count in self.stragglers:
            impairments = [{"model": "straggler", "count": count, "leave_out": True}]
            label = f"{count} straggler{'s' if count > 1 else ''}"
            experiment = self._experiment({"quorum": self.workers - count}, impairments)
            yield Bar(label, experiment, self._paper(_STRAGGLERS.get(count)))

    def _paper(self, drops: tuple[Drop, Drop] | None) -> tuple[Drop, Drop] | None:
        return drops if self.workers == _WORKERS else None

    def _experiment(self, job: dict[str, Any], impairments: list[dict[str, Any]]) -> dict[str, Any]:
        push = {"name": "thc", "bits": 4, "granularity": self.granularity, "p": self.p}
        widths = {"sum_bits": 8 if self.granularity * self.workers < 256 else 16}
        return self._trained({"push": push} | widths | job, impairments)

    def _half(self, impairments: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the 16-bit baseline: no switch sums it, so a server does, over streams."""
        half = {"name": "bfloat16"}
        job = {"aggregation": "ps", "push": half, "pull": half, "error_feedback": False}
        return self._trained(job, impairments)

    def _trained(self, job: dict[str, Any], impairments: list[dict[str, Any]]) -> dict[str, Any]:
        common = self.job_keys() | {"timeout_ms": 20.0 if self.net == "sim" else 200.0}
        return {
            "name": self.name,
            "topology": {"workers": self.workers, "rate": "10Gbit"},
            "job": [common | job],
            "impairment": impairments,
        }

    def _notes(self, plain: Case) -> tuple[str, ...]:
        train, test = (Estimate.of([a(one) for one in plain.trained]) for a in (_train, _test))
        return (
            f"Without losses the training accuracy is {train.points} %, the test accuracy"
            f" {test.points} %: mean and half of the 95 % interval over {self.repetitions} seeds."
            " A drop is that of trainings with the same seeds. The paper's numbers are those of its"
            ' text in section 8.4 (figure 11, training) and appendix D.5 (figure 16, test); "0" is'
            " its phrase that 90 % of the workers reach the baseline.",
            "Where they differ: the paper trains ResNet50 on CIFAR100 with the losses applied to a"
            " simulated aggregation; here every packet of a small perceptron on digits of 8 by 8"
            " pixels crosses the P4 switch. Compare the order of the rows, not their sizes.",
            "The switch waits for all workers where packets are lost, so a packet that is lost on"
            " its way to the switch costs all workers that part of the mean, and one lost on its"
            " way back only its receiver, whose weights drift. bf16, which no switch sums, goes to"
            " a parameter server over streams that send again what is lost: it loses time, not"
            " accuracy.",
        )


def _papers(case: Case, which: int) -> str:
    if case.paper is None:
        return "-"
    low, high = case.paper[which]
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _values(case: Case, train: Estimate | None, test: Estimate | None) -> dict[str, Any]:
    drops = {"train_drop": train, "test_drop": test}
    return {
        "case": case.label,
        "train_accuracies": [one.train_accuracy for one in case.trained],
        "test_accuracies": [one.test_accuracy for one in case.trained],
        "missed": [one.missed for one in case.trained],
        **{key: None if e is None else [e.mean, e.half] for key, e in drops.items()},
        "paper": case.paper,
    }


def _figure(drops: list[tuple[Case, Estimate, Estimate]]) -> Figure:
    paper = [None if case.paper is None else sum(case.paper[0]) / 2 for case, _, _ in drops]
    return plot.pairs(
        [case.label.replace(", ", ",\n") for case, _, _ in drops],
        [100 * train.mean for _, train, _ in drops],
        paper,
        "drop of training accuracy, points",
        spread=[100 * train.half for _, train, _ in drops],
    )
