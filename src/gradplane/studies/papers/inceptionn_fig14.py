"""INCEPTIONN, figure 14: accuracy and ratio under each error bound, and under plain truncation."""

from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane.experiment.schema import NamedModel
from gradplane.studies import plot, trainings
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, several
from gradplane.studies.trainings import Trained

Bound = Literal[6, 8, 10]
Drop = Literal[8, 16, 24]
Width = Annotated[int, Field(strict=True, ge=1)]


@dataclass(frozen=True)
class Scheme:
    """A codec of the figure, and the results of its trainings."""

    group: str
    label: str
    codec: NamedModel
    trained: tuple[Trained, ...]

    @property
    def ratio(self) -> float:
        """The mean compression ratio of the trainings."""
        return fmean(one.ratio for one in self.trained)

    @property
    def accuracy(self) -> float:
        """The mean accuracy of the trainings."""
        return fmean(one.accuracy for one in self.trained)


class Fig14(Study):
    """Whole trainings of a perceptron on handwritten digits, means over `repetitions` seeds.

    Gradients are compressed on their way to the server, without error feedback, as in the paper."""

    name: Literal["inceptionn-fig14"] = "inceptionn-fig14"
    bounds: tuple[Bound, ...] = several((10, 8, 6))
    drops: tuple[Drop, ...] = several((8, 16, 24))
    workers: int = Field(default=4, ge=1, le=64)
    hidden: tuple[Width, ...] = Field(default=(54,), strict=False)
    epochs: int = Field(default=15, ge=1)
    batch: int = Field(default=32, ge=1)
    lr: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: int = Field(default=5, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for no compression, for bf16, for each truncation and each error bound."""
        schemes = [self._scheme(group, label, codec, seed) for group, label, codec in self._all()]
        plain = schemes[0].accuracy
        return StudyOutcome(
            title=f"INCEPTIONN, figure 14: {self.workers} workers, {self.epochs} epochs",
            head=("scheme", "ratio", "accuracy", "relative", "the paper's"),
            rows=tuple(_cells(scheme, plain) for scheme in schemes),
            notes=_notes(schemes),
            values=[_values(scheme) for scheme in schemes],
            figure=_figure(schemes),
        )

    def _all(self) -> list[tuple[str, str, NamedModel]]:
        """Return group, label and codec of each scheme."""
        cut = [
            ("truncation", f"{drop} bits cut", _named("truncation", drop=drop))
            for drop in self.drops
        ]
        bounded = [
            ("INCEPTIONN", f"bound 2^-{bound}", _named("inceptionn", bound=bound))
            for bound in self.bounds
        ]
        half = ("16 bits", "bf16", _named("bfloat16"))
        return [("no compression", "none", _named("float32")), half, *cut, *bounded]

    def _scheme(self, group: str, label: str, codec: NamedModel, seed: int) -> Scheme:
        trained = tuple(self._train(codec, seed + r) for r in range(self.repetitions))
        return Scheme(group, label, codec, trained)

    def _train(self, codec: NamedModel, seed: int) -> Trained:
        job = trainings.job(
            self.workers,
            push=codec,
            error_feedback=False,
            model=_named("mlp", hidden=list(self.hidden)),
            epochs=self.epochs,
            batch=self.batch,
            lr=self.lr,
            momentum=self.momentum,
            seed=seed,
        )
        return trainings.run(job)


def _named(name: str, **args: object) -> NamedModel:
    return NamedModel.model_validate({"name": name} | args)


def _cells(scheme: Scheme, plain: float) -> tuple[str, ...]:
    relative = f"{scheme.accuracy / plain:.1%}" if plain else "-"
    return (
        *(scheme.label, f"{scheme.ratio:.2f}", f"{scheme.accuracy:.1%}", relative),
        NOT_IN_OUR_COPY,
    )


def _values(scheme: Scheme) -> dict[str, object]:
    return {
        "scheme": scheme.label,
        "codec": {"name": scheme.codec.name} | scheme.codec.args,
        "ratio": scheme.ratio,
        "accuracy": scheme.accuracy,
        "accuracies": [one.accuracies for one in scheme.trained],
        "paper": None,
    }


def _notes(schemes: list[Scheme]) -> tuple[str, ...]:
    plain = schemes[0].accuracy
    cut = max((s for s in schemes if s.group == "truncation"), key=lambda s: s.ratio)
    bounded = sorted((s for s in schemes if s.group == "INCEPTIONN"), key=lambda s: s.ratio)
    tight, loose = bounded[0], bounded[-1]
    return (
        f"Here {cut.label} cost {_points(plain, cut)} at a ratio of {cut.ratio:.1f};"
        f" {tight.label} costs {_points(plain, tight)} at {tight.ratio:.1f}, and {loose.label}"
        f" {_points(plain, loose)} at {loose.ratio:.1f}. Accuracy is that on test rows after the"
        " last epoch.",
        "The paper's numbers are not in our copy, so only the shape can be compared. In words it"
        " says that truncation loses much accuracy once it reaches the exponent and that its ratio"
        " is limited, while INCEPTIONN's ratio is higher, grows with the bound, and accuracy drops"
        " slightly.",
        "Why they differ: the paper's networks are Alexnet, Resnet, VGG and a perceptron; the small"
        " perceptron here takes digits of 8 by 8 pixels, which forgive more. Its ratio follows the"
        " size of its gradients, as a bound is absolute. The paper's ring compresses at every hop,"
        " here each gradient is compressed once.",
    )


def _points(plain: float, scheme: Scheme) -> str:
    lost = 100 * (plain - scheme.accuracy)
    return f"{lost:.1f} points" if lost >= 0.05 else "nothing"


def _figure(schemes: list[Scheme]) -> Figure:
    groups: dict[str, list[plot.Point]] = {}
    for scheme in schemes:
        point = (scheme.label, scheme.ratio, scheme.accuracy)
        groups.setdefault(scheme.group, []).append(point)
    return plot.points(groups, "compression ratio", "test accuracy")
