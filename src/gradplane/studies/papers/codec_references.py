"""Every codec beside its reference in the same trainings: a paper's formula, or PyTorch's hook."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import AfterValidator, Field

from gradplane.codecs import Floats, get, key
from gradplane.hosts.config import JobConfig
from gradplane.hosts.training import datasets, models
from gradplane.studies import parallel, plot, references, trainings
from gradplane.studies.references import Formula, alone, fed_back
from gradplane.studies.repeated import Estimate
from gradplane.studies.study import Study, StudyOutcome, several

PYTORCH, PAPER = "PyTorch's hook", "its paper"
NEAR = 0.02  # of accuracy
_LETTERS = "gradplane.studies.letters_transformer"
MODELS: dict[str, dict[str, Any]] = {
    "cnn": {"model": {"name": "gradplane.studies.digits_cnn:cnn", "channels": [8, 16]}},
    "mlp": {"model": {"name": "mlp", "hidden": [54]}},
    "transformer": {
        "model": {"name": f"{_LETTERS}:transformer"},
        "data": {"name": f"{_LETTERS}:sentences"},
        "batch": 4,
        "schedule": "cosine",
    },
}
"""The keys of [[job]] that are a model's own; the data are digits where they are not named."""
MXFP4: dict[str, Any] = {"mantissa": 1, "least": 0, "emax": 2, "largest": 6.0}
ModelName = Literal["cnn", "mlp", "transformer"]
Pairs = dict[tuple[str, str], list[tuple[float, float]]]
"""Accuracies of a codec and of its reference, by codec and model, a pair for each seed."""


@dataclass(frozen=True)
class Reference:
    """A codec's parameters and its formula, for each tensor by itself or for the whole vector.

    feedback: the job's error feedback; the formula has it where it belongs to it. by_tensor: the
    job's, where it is not the codec's own. momentum: the optimizer's, where the study's does not
    apply."""

    parameters: dict[str, Any]
    formula: Formula
    source: str = PAPER
    feedback: bool = False
    whole: bool = False
    by_tensor: bool | None = None
    momentum: float | None = None


def _thc(name: str) -> Reference:
    codec: Any = get(name, bits=4, p=1 / 32)
    formula = references.homomorphic(codec.table, 1 / 32)
    return Reference({"bits": 4, "p": 1 / 32}, formula, feedback=True, whole=True)


def _cut(**parameters: int) -> Reference:
    bits = parameters.get("drop", 32 - 8 * parameters.get("keep", 4))
    return Reference(parameters, alone(partial(references.cut, bits=bits)))


def _sparse(fraction: float, formula: Formula, **keys: Any) -> Reference:
    keys = {"feedback": True, "by_tensor": True} | keys
    return Reference({"fraction": fraction}, formula, **keys)


REFERENCES = {
    "float32": Reference({}, references.exact, PYTORCH),
    "float16": Reference({}, references.half, PYTORCH),
    "bfloat16": Reference({}, references.brain_half, PYTORCH),
    "powersgd": Reference({"rank": 2}, references.low_rank(2), PYTORCH, feedback=True),
    "adt": _cut(keep=2),
    "truncation": _cut(drop=16),
    "inceptionn": Reference({"bound": 10}, alone(partial(references.inceptionn, k=10))),
    "int8": Reference({}, alone(references.eight_bits), whole=True),
    "mxfp": Reference(
        *({"element": "e2m1"}, alone(partial(references.microscaled, **MXFP4))), whole=True
    ),
    "zeropp": Reference(
        *({"bits": 4, "block": 256}, alone(partial(references.block_integers, bits=4, size=256))),
        whole=True,
    ),
    "sdp4bit": Reference(
        *({"bits": 4, "block": 128}, alone(partial(references.rotated_integers, bits=4, size=128))),
        whole=True,
    ),
    "dynamiq": Reference({"bits": 5}, references.grouped(5), whole=True),
    "switchml": Reference({}, references.integers, whole=True),
    "thc": _thc("thc"),
    "uniform_thc": _thc("uniform_thc"),
    "threelc": Reference({"s": 1.0}, fed_back(partial(references.three_values, s=1.0))),
    "ternary": Reference({}, alone(references.ternary)),
    "terngrad": Reference({}, references.terngrad),
    "qsgd": Reference(
        *({"levels": 7, "bucket": 512}, alone(partial(references.levels, count=7, bucket=512))),
        whole=True,
    ),
    "natural": Reference({}, alone(references.powers)),
    "signsgd": Reference({"vote": True}, references.vote, whole=True),
    "efsignsgd": Reference({}, fed_back(references.sign)),
    "onebit": Reference({}, fed_back(references.one_bit), feedback=True),
    "topk": _sparse(0.1, fed_back(partial(references.large, fraction=0.1))),
    "sparse": _sparse(0.05, fed_back(partial(references.large, fraction=0.05))),
    "dgc": _sparse(0.05, references.deep(0.05), feedback=False, momentum=0.0),
    "randomk": _sparse(0.1, references.at_random(0.1), momentum=0.0),
}


def known(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of codecs that have a reference; ValueError for another one."""
    for name in names:
        if name not in REFERENCES:
            raise ValueError(f'no reference of codec "{name}": there are {", ".join(REFERENCES)}')
    return names


class Referenced:
    """The means that a formula makes of the workers' vectors."""

    def __init__(self, reference: Reference, job: JobConfig) -> None:
        training = job.training
        data = datasets.build(training.data, training.data_args, job.seed)
        model = models.build(training.model, training.model_args, data.features, data.classes)
        n = sum(tensor.size for tensor in model.tensors)
        self._tensors = (models.Tensor("all", (n,), 0),) if reference.whole else model.tensors
        self._memories: list[references.Memory] = [{} for _ in self._tensors]
        self._formula, self._seed = reference.formula, job.seed

    def __call__(self, ticket: int, vectors: Sequence[Floats]) -> Floats:
        """Return the mean of a round, float32[n]."""
        chance = np.random.default_rng([key(self._seed, "reference"), ticket])
        mean = np.empty_like(vectors[0])
        for tensor, memory in zip(self._tensors, self._memories, strict=True):
            views = np.stack([tensor.view(vector) for vector in vectors])
            tensor.view(mean)[...] = self._formula(views, memory, chance)
        return mean


class References(Study):
    """Trainings on handwritten digits and on sentences, each codec's twice: through its bytes, and
    by its formula.

    Both have the same initial weights and batches, and means through one server. Each has
    `repetitions` seeds, and `most` if that is more and the interval over these reaches beyond 2
    points."""

    name: Literal["codec-references"] = "codec-references"
    codecs: Annotated[tuple[str, ...], AfterValidator(known)] = several(tuple(REFERENCES))
    models: tuple[ModelName, ...] = several(("cnn", "mlp", "transformer"))
    workers: int = Field(default=4, ge=1)
    epochs: int = Field(default=4, ge=1)
    batch: int = Field(default=16, ge=1)
    lr: float = Field(default=0.05, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: int = Field(default=3, ge=1)
    most: int = Field(default=12, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each codec and model."""
        cases = [(self, model, name, seed) for name in self.codecs for model in self.models]
        found = parallel.each(References.pairs, cases, "codec and model")
        return self.outcome({(c[2], c[1]): own for c, own in zip(cases, found, strict=True)})

    def outcome(self, pairs: Pairs) -> StudyOutcome:
        """Return the table of accuracies."""
        gaps = {case: _gap(own) for case, own in pairs.items()}
        return StudyOutcome(
            title="Every codec beside its reference: accuracy in %",
            head=("codec", "model", "its own", "reference's", "points", "seeds"),
            rows=tuple((*case, *_cells(own)) for case, own in pairs.items()),
            notes=self._notes(pairs, gaps),
            values=[
                {
                    "codec": name,
                    "parameters": REFERENCES[name].parameters,
                    "source": REFERENCES[name].source,
                    "model": model,
                    "accuracies": [a for a, _ in own],
                    "reference_accuracies": [b for _, b in own],
                    "gap": [gaps[name, model].mean, gaps[name, model].half],
                    "paper": None,
                }
                for (name, model), own in pairs.items()
            ],
            figure=_figure({case: gap for case, gap in gaps.items() if case[1] == self.models[-1]}),
        )

    def pairs(self, model: str, name: str, seed: int) -> list[tuple[float, float]]:
        """Return the accuracies of a codec and of its reference, a pair for each seed."""
        found = [self._pair(model, name, seed + r) for r in range(self.repetitions)]
        if not _settled(_gap(found)):
            more = range(self.repetitions, self.most)
            found += [self._pair(model, name, seed + r) for r in more]
        return found

    def _pair(self, model: str, name: str, seed: int) -> tuple[float, float]:
        reference = REFERENCES[name]
        momentum = self.momentum if reference.momentum is None else reference.momentum
        job = trainings.job(
            self.workers,
            push={"name": name} | reference.parameters,
            error_feedback=reference.feedback,
            by_tensor=reference.by_tensor,
            epochs=self.epochs,
            lr=self.lr,
            momentum=momentum,
            seed=seed,
            **{"batch": self.batch} | MODELS[model],
        )
        own, other = trainings.run(job), trainings.run(job, Referenced(reference, job))
        return own.accuracy, other.accuracy

    def _notes(self, pairs: Pairs, gaps: dict[tuple[str, str], Estimate]) -> tuple[str, ...]:
        far = [" ".join(case) for case, gap in gaps.items() if abs(gap.mean) > NEAR]
        wide = [
            f"{' '.join(case)} ({_between(pairs[case])})"
            for case, gap in gaps.items()
            if not _settled(gap)
        ]
        named = dict.fromkeys(name for name, _ in gaps)
        hooks = [name for name in named if REFERENCES[name].source == PYTORCH]
        others = [
            f"{name} {' '.join(f'{k} {v}' for k, v in REFERENCES[name].parameters.items())}"
            for name in named
            if REFERENCES[name].parameters
        ]
        return (
            f"Within {100 * NEAR:g} points of its reference, in the mean of the seeds, are"
            f" {len(gaps) - len(far)} of {len(gaps)}"
            + (f"; not {', '.join(far)}." if far else ".")
            + f" Their whole 95 % interval is within them for {len(gaps) - len(wide)}"
            + (
                f"; not for those that chance moves most, in brackets their reference alone, from"
                f" the worst seed to the best: {', '.join(wide)}."
                if wide
                else "."
            ),
            "The reference is a formula on plain arrays (studies/references.py), in the same"
            " training: the same initial weights, batches, learning rate and error feedback, other"
            f" random numbers. It is that of the codec's paper; of {', '.join(hooks)} that of"
            " PyTorch's communication hook. Points are the mean and half of the 95 % interval over"
            " the seeds. 3LC, EF-SignSGD, 1-bit,"
            " TernGrad, PowerSGD, ternary and the sparsifiers take tensors by themselves on both"
            " sides.",
            f"Parameters: {', '.join(others)}. randomk and dgc, which has a momentum of its own,"
            f" train without the optimizer's {self.momentum:g}. The transformer's batches have"
            f" {MODELS['transformer']['batch']} pieces, and its rate falls along a cosine.",
            "Where they differ: accuracies are shares of 360 test images or of 720 pieces of text,"
            " so one is 0.28 or 0.14 points. Where both do the same, sums in another order change"
            " last bits, and a value between two steps then goes the other way: so int8, which has"
            " nothing random, is apart. No paper has these trainings.",
        )


def _gap(pairs: list[tuple[float, float]]) -> Estimate:
    return Estimate.of([own - other for own, other in pairs])


def _between(pairs: list[tuple[float, float]]) -> str:
    """Return the reference's lowest and highest accuracy."""
    others = [100 * other for _, other in pairs]
    return f"{min(others):.1f} to {max(others):.1f}"


def _settled(gap: Estimate) -> bool:
    """Return whether the whole interval is within 2 points."""
    return abs(gap.mean) + gap.half <= NEAR


def _cells(pairs: list[tuple[float, float]]) -> tuple[str, ...]:
    own, other = (f"{100 * fmean(each):.1f}" for each in zip(*pairs, strict=True))
    return own, other, _gap(pairs).points, str(len(pairs))


def _figure(gaps: dict[tuple[str, str], Estimate]) -> Figure:
    (_, model), *_ = gaps
    return plot.pairs(
        [name for name, _ in gaps],
        [100 * gap.mean for gap in gaps.values()],
        [None for _ in gaps],
        f"points from the reference, {model}",
        spread=[100 * gap.half for gap in gaps.values()],
    )
