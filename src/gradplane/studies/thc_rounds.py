"""The time of a training round under THC's schemes, part by part (THC, figures 2a, 6, 7, 8, 12).

The exchange is emulated packet by packet at two lengths of the gradient; other lengths follow
linearly. Times of a codec are the planner's (its data/codecs); those of training are assumptions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from gradplane.experiment.loading import Experiment, load
from gradplane.planner.inputs import Compression, Curve
from gradplane.planner.inputs import load as load_input
from gradplane.studies import gradients, parallel, plot
from gradplane.studies.exchange import one_round
from gradplane.studies.study import StudyOutcome, number

Size = Annotated[int, Field(strict=True, ge=1024)]

WORKERS = 4  # the paper's testbed
VALUES = (2**15, 2**16)  # of the exchanges that are emulated
Sizes = Annotated[tuple[Size, Size], Field(strict=False)]
_CPU_BYTES = 50e9  # that a server's CPUs move in a second, as the planner's codec files assume
_RECIRCULATION = 3_200_000.0  # Mbit/s: two ports of 400 Gbit/s in each of Tofino 2's four pipelines
_BACKWARD = 2 / 3  # of a training step's time
MODELS = {
    "VGG16": (138_357_544, 107.0),
    "VGG19": (143_667_240, 135.0),
    "BERT-base": (109_482_240, 27.0),
    "RoBERTa-base": (124_645_632, 27.0),
    "GPT-2": (124_439_808, 27.0),
    "RoBERTa-large": (355_359_744, 95.0),
    "Bart-large": (406_291_456, 110.0),
    "ResNet50": (25_557_032, 28.0),
    "ResNet101": (44_549_160, 58.0),
    "ResNet152": (60_192_808, 85.0),
}
"""Values, and ms of a training step: 32 images or 1024 tokens at twice the planner's rate of a V100
(28e12 operations a second), which is our assumption for an A100."""
_THC: dict[str, Any] = {"name": "thc", "bits": 4, "granularity": 30, "p": 1 / 32}


@dataclass(frozen=True)
class Scheme:
    """A way to exchange gradients.

    job: its keys. codec: the planner's, whose times it has; "" for none. added: bytes that a server
    moves to add a worker's value; recoded: it also decodes every vector and encodes the mean.
    colocated: each worker is the server of its share of the values; such an exchange crosses the
    links as a ring's does.
    """

    label: str
    job: dict[str, Any]
    codec: str = ""
    added: float = 0.0
    recoded: bool = False
    colocated: bool = False

    def worker(self, values: int) -> float:
        """Return the seconds that a worker's GPU takes to encode and decode."""
        if not self.codec:
            return 0.0
        gpu = load_input(Compression, self.codec).gpu
        return _at(gpu, gpu.compress, values) + _at(gpu, gpu.decompress, values)

    def server(self, values: int) -> float:
        """Return the seconds that the servers' CPUs take."""
        seconds = WORKERS * values * self.added / _CPU_BYTES
        if self.recoded:
            cpu = load_input(Compression, self.codec).cpu
            seconds += _at(cpu, cpu.compress, values)
            seconds += WORKERS * _at(cpu, cpu.decompress, values)
        return seconds / WORKERS if self.colocated else seconds


_RING = {"aggregation": "ring"}
_SUMS = {"aggregation": "ps", "pull": "sums", "by_tensor": False}
HOROVOD, TOPK, SERVER, SWITCH = "Horovod", "TopK", "THC-PS", "THC"
SCHEMES = (
    Scheme(HOROVOD, _RING | {"push": "float32"}),
    Scheme("bf16", _RING | {"push": "bfloat16"}),
    Scheme(
        TOPK,
        _RING | {"push": {"name": "topk", "fraction": 0.1}},
        codec="dgc",
        recoded=True,
        colocated=True,
    ),
    Scheme(
        "TernGrad",
        _SUMS | {"push": {"name": "terngrad", "clip": None}},
        codec="efsignsgd",
        added=2.25,
    ),
    Scheme(SERVER, _SUMS | {"push": _THC}, codec="thc", added=2.5),
    Scheme(SWITCH, {"push": _THC, "slots": 2048}, codec="thc"),
)
"""Horovod's ring, the same with 16 bits a value, and the schemes of the paper's figure 8. TopK is
DGC, too: in bytes and, by the planner's file, in time they are the same."""


def _at(curve: Curve, seconds: Sequence[float], values: int) -> float:
    return float(np.interp(values, curve.values, seconds))


@dataclass(frozen=True)
class Round:
    """A round's parts, in seconds: training, the workers' codec, the network, the servers."""

    training: float
    worker: float
    communication: float
    server: float

    @property
    def whole(self) -> float:
        """The time if nothing overlaps."""
        return self.training + self.worker + self.communication + self.server

    @property
    def overlapped(self) -> float:
        """The time if all but training hides behind backward propagation, as far as it can."""
        exchange = self.whole - self.training
        return self.training - _BACKWARD * self.training + max(_BACKWARD * self.training, exchange)


Rounds = dict[tuple[str, str], tuple[float, ...]]
"""The seconds of the exchanges of VALUES, by scheme and rate."""


def exchanges(rates: Sequence[str], sizes: Sequence[int], seed: int) -> Rounds:
    """Emulate an exchange under each scheme at each rate, at `sizes` as VALUES."""
    cases = [(scheme.label, rate, n, seed) for scheme in SCHEMES for rate in rates for n in sizes]
    found = iter(parallel.each(_seconds, cases, "exchange"))
    return {
        (scheme.label, rate): tuple(next(found) for _ in sizes)
        for scheme in SCHEMES
        for rate in rates
    }


@cache  # several figures have the same exchanges
def _seconds(label: str, rate: str, values: int, seed: int) -> float:
    scheme = next(scheme for scheme in SCHEMES if scheme.label == label)
    gradient = gradients.drawn("normal", values, seed)
    return one_round(partial(experiment, scheme, rate), WORKERS, gradient)[0]


def experiment(scheme: Scheme, rate: str, job: dict[str, Any]) -> Experiment:
    """Return the experiment of a job under a scheme, with links of a rate."""
    values = {
        "name": "round",
        "topology": {"workers": WORKERS, "rate": rate, "queue": 100_000},
        "switch": {"recirculation_mbit": _RECIRCULATION},
        "job": [{"reliability": "retransmit"} | scheme.job | job],
        "output": {"baseline": False},
    }
    return load(Experiment.model_validate(values))


def rounds(
    found: Rounds, rate: str, sizes: Sequence[int], values: int, training: float
) -> dict[str, Round]:
    """Return each scheme's round with so many values and seconds of training."""
    made = {}
    for scheme in SCHEMES:
        (small, large), (few, many) = found[scheme.label, rate], sizes
        seconds = large + (large - small) * (values - many) / (many - few)
        made[scheme.label] = Round(training, scheme.worker(values), seconds, scheme.server(values))
    return made


@dataclass(frozen=True)
class Case:
    """A row of a figure of throughputs. training: ms. paper: THC-Tofino's over Horovod's."""

    label: str
    values: int
    training: float
    rate: str = "100Gbit"
    paper: float | None = None


def throughputs(
    title: str, cases: Sequence[Case], sizes: Sequence[int], seed: int, notes: Sequence[str]
) -> StudyOutcome:
    """Return the throughput of each case over Horovod's, under each scheme."""
    found = exchanges(list(dict.fromkeys(case.rate for case in cases)), sizes, seed)
    made = [rounds(found, c.rate, sizes, c.values, c.training / 1e3) for c in cases]
    gains = [{k: one[HOROVOD].whole / r.whole for k, r in one.items()} for one in made]
    hidden = [{k: one[HOROVOD].overlapped / r.overlapped for k, r in one.items()} for one in made]
    labels = [scheme.label for scheme in SCHEMES[1:]]
    rows = tuple(
        (case.label, *(f"{gain[label]:.2f}" for label in labels), f"{over[SWITCH]:.2f}")
        + ("-" if case.paper is None else f"{case.paper:.2f}",)
        for case, gain, over in zip(cases, gains, hidden, strict=True)
    )
    return StudyOutcome(
        title=title,
        head=("", *labels, "hidden", "the paper's"),
        rows=rows,
        notes=(*notes, *NOTES),
        values=[
            {"case": case.label, "rate": case.rate, "values": case.values, "paper": case.paper}
            | {"training": case.training / 1e3, "overlapped": over, "throughput": gain}
            | {"seconds": {label: one.whole for label, one in each.items()}}
            for case, gain, over, each in zip(cases, gains, hidden, made, strict=True)
        ],
        figure=plot.pairs(
            [case.label for case in cases],
            [gain[SWITCH] for gain in gains],
            [case.paper for case in cases],
            "THC through the switch, Horovod = 1",
        ),
    )


NOTES = (
    "Numbers are throughputs over Horovod's, nothing of a round overlapping; THC is through the"
    " switch, and `hidden` the same if the exchange hides behind backward propagation as far as it"
    " can: a framework is between both. Horovod is a ring of float32 values, bf16 the same with 16"
    " bits. THC-PS and TernGrad have one server, which answers when it has whole vectors: the"
    " paper's partitions go up and down at once. TopK (10 %; DGC is the same here) has a server at"
    " each worker.",
    "Emulated packet by packet: the exchange, from which longer gradients follow linearly. Given:"
    " the time of training and of the codecs (operations over rates, as the planner has them).",
)


def parts(made: dict[str, Round]) -> tuple[tuple[str, ...], ...]:
    """Return a row of ms for each scheme: training, codec, network, servers, all."""
    return tuple(
        (label, *(number(1e3 * t) for t in (r.training, r.worker, r.communication, r.server)))
        + (number(1e3 * r.whole),)
        for label, r in made.items()
    )


PARTS = ("", "training, ms", "codec", "network", "server", "all")
_KEYS = ("training", "worker", "communication", "server")


def plain(made: dict[str, Round]) -> list[dict[str, Any]]:
    """Return a row of seconds for each scheme, for study.json."""
    return [{"scheme": label, **asdict(r), "whole": r.whole} for label, r in made.items()]


def bars(made: dict[str, Round]) -> dict[str, list[float]]:
    """Return the ms of each part that any scheme has, for a figure of stacked bars."""
    columns = {part.removesuffix(", ms"): key for part, key in zip(PARTS[1:], _KEYS, strict=False)}
    heights = {p: [1e3 * getattr(r, key) for r in made.values()] for p, key in columns.items()}
    return {part: ms for part, ms in heights.items() if any(ms)}


def known(models: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of MODELS; ValueError for another one."""
    for model in models:
        if model not in MODELS:
            raise ValueError(f'no model "{model}": there are {", ".join(MODELS)}')
    return models
