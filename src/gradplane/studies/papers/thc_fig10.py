"""THC, figure 10: accuracy against no compression over the number of workers."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane.codecs import sum_overflow
from gradplane.studies import plot
from gradplane.studies.repeated import Ended, Estimate, Network, gap, trainings
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, number, several
from gradplane.studies.trainings import first_error

Workers = Annotated[int, Field(strict=True, ge=2, le=64)]
Width = Annotated[int, Field(strict=True, ge=1)]

_PLAIN = "no compression"
_CODECS = ("THC", "TopK", "QSGD", "bf16")  # in the order of the rows
_BITS = 4  # a value, to the switch or the server
_SPARSE_BITS = 64  # of a value that TopK sends, with its index

# The paper's differences in points, of BERT on SST2 (section 8.4), by codec and workers.
_PAPER = {("THC", 4): -0.1, ("THC", 64): 0.0, ("TopK", 4): -0.047, ("TopK", 64): -0.46}


@dataclass(frozen=True)
class Scheme:
    """A codec's trainings with a number of workers.

    error: the NMSE of the first round's mean. plain: the trainings without compression."""

    codec: str
    workers: int
    trained: tuple[Ended, ...]
    plain: tuple[Ended, ...]
    error: float

    @property
    def gap(self) -> Estimate:
        """The test accuracy above that without compression, seed by seed."""
        return gap(self.trained, self.plain)

    @property
    def paper(self) -> float | None:
        """The paper's difference, in points."""
        return _PAPER.get((self.codec, self.workers))


class Fig10(Study):
    """Trainings of a perceptron on handwritten digits, with the same epochs for all workers.

    THC is summed by the P4 switch. TopK and QSGD, whose codes no switch can sum, go through a
    parameter server with as many bits a value as THC in each direction: 4 up, and down those of
    THC's sums. Each point runs under `repetitions` seeds, on `net`."""

    name: Literal["thc-fig10"] = "thc-fig10"
    workers: tuple[Workers, ...] = several((4, 8, 16, 32, 64))
    granularity: int = Field(default=36, ge=15, le=1023)
    p: float = Field(default=1 / 32, gt=0, lt=1)
    hidden: tuple[Width, ...] = Field(default=(54,), strict=False)
    epochs: int = Field(default=6, ge=1)
    batch: int = Field(default=4, ge=1)
    lr: float = Field(default=0.05, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: int = Field(default=5, ge=1)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each codec and number of workers."""
        jobs = [(name, n, job) for n in self.workers for name, job in self._jobs(n).items()]
        experiments = [self._experiment(n, job) for _, n, job in jobs]
        ended = trainings(experiments, self.net, seed, self.repetitions)
        trained = {(name, n): those for (name, n, _), those in zip(jobs, ended, strict=True)}
        plain = {n: trained[_PLAIN, n] for n in self.workers}
        schemes = [
            Scheme(name, n, trained[name, n], plain[n], self._error(n, seed, job))
            for codec in _CODECS
            for name, n, job in jobs
            if name == codec
        ]
        return StudyOutcome(
            title="THC, figure 10: accuracy less that without compression, in points",
            head=("", "workers", "difference", "the paper's", "NMSE", "bits up, down"),
            rows=tuple(_cells(scheme) for scheme in schemes),
            notes=self._notes(schemes, plain),
            values=[_values(scheme) for scheme in schemes],
            figure=_figure(schemes),
        )

    def _error(self, n: int, seed: int, job: dict[str, Any]) -> float:
        return first_error(n, seed=seed, **self.job_keys() | {"push": job["push"]})

    def _jobs(self, n: int) -> dict[str, dict[str, Any]]:
        """Return the keys of each codec's job with n workers, and of that without compression."""
        down = (self.granularity * n).bit_length()
        thc = {"name": "thc", "bits": _BITS, "granularity": self.granularity, "p": self.p}
        served = {"aggregation": "ps"}
        return {
            _PLAIN: served | {"push": {"name": "float32"}},
            "bf16": served
            | {"push": {"name": "bfloat16"}, "pull": {"name": "bfloat16"}, "error_feedback": False},
            "THC": {"push": thc, "sum_bits": 16 if sum_overflow(self.granularity, n, 8) else 8},
            "TopK": served
            | {
                "push": {"name": "topk", "fraction": _BITS / _SPARSE_BITS},
                "pull": {"name": "topk", "fraction": down / _SPARSE_BITS},
            },
            "QSGD": served
            | {
                "push": {"name": "qsgd", "levels": 2 ** (_BITS - 1) - 1},
                "pull": {"name": "qsgd", "levels": 2 ** (down - 1) - 1},
                "error_feedback": False,
            },
        }

    def _experiment(self, n: int, job: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": self.name,
            "topology": {"workers": n, "rate": "10Gbit", "queue": 10_000},
            "job": [self.job_keys() | {"reliability": "retransmit"} | job],
        }

    def _notes(self, schemes: list[Scheme], plain: dict[int, tuple[Ended, ...]]) -> tuple[str, ...]:
        few, many = min(self.workers), max(self.workers)
        ends = {(s.codec, s.workers): s for s in schemes if s.workers in (few, many)}
        accuracy = {n: Estimate.of([one.test_accuracy for one in plain[n]]) for n in (few, many)}
        falls = [
            f"{codec}'s by {ends[codec, few].error / ends[codec, many].error:.1f}"
            for codec in ("THC", "QSGD", "TopK")
        ]
        return (
            f"Without compression the test accuracy is {accuracy[few].points} % with {few} workers"
            f" and {accuracy[many].points} % with {many}: mean and half of the 95 % interval over"
            f" {self.repetitions} seeds. Differences are between trainings with the same seeds.",
            f"NMSE is the error of the first round's mean of the workers. From {few} to {many}"
            f" workers it falls: {', '.join(falls)} times. THC and QSGD round without bias, so"
            " the workers' errors average out; TopK leaves out much the same values at all workers."
            " THC's sums cross the network as 8 or 16 bits; the other codecs' answers have exactly"
            " the bits that the sums need.",
            "Where they differ: the paper fine-tunes BERT and RoBERTa on SST2 for two epochs, whose"
            " numbers in the text of our copy are BERT's with 4 and 64 workers; here a small"
            f" perceptron learns digits from the beginning in {self.epochs} epochs. With more"
            " workers an epoch has fewer rounds, as in the paper; with 64 of them the training ends"
            " early, which magnifies every difference.",
        )


def _cells(scheme: Scheme) -> tuple[str, ...]:
    up, down = scheme.trained[0].bits_up, scheme.trained[0].bits_down
    paper = NOT_IN_OUR_COPY if scheme.paper is None else f"{scheme.paper:g}"
    return (
        *(scheme.codec, str(scheme.workers), scheme.gap.points, paper),
        *(number(scheme.error), f"{up:.1f}, {down:.1f}"),
    )


def _values(scheme: Scheme) -> dict[str, Any]:
    return {
        "codec": scheme.codec,
        "workers": scheme.workers,
        "difference": [scheme.gap.mean, scheme.gap.half],
        "paper": scheme.paper,
        "nmse": scheme.error,
        "bits_up": scheme.trained[0].bits_up,
        "bits_down": scheme.trained[0].bits_down,
        "test_accuracies": [one.test_accuracy for one in scheme.trained],
        "without_compression": [one.test_accuracy for one in scheme.plain],
    }


def _figure(schemes: list[Scheme]) -> Figure:
    lines: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for scheme in schemes:
        xs, ys, halves = lines.setdefault(scheme.codec, ([], [], []))
        xs.append(scheme.workers)
        ys.append(100 * scheme.gap.mean)
        halves.append(100 * scheme.gap.half)
    return plot.intervals(lines, "workers", "difference of test accuracy, points")
