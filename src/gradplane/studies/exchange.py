"""INCEPTIONN's ways to exchange gradients, packet by packet, and the parts of their time.

Every host is alone on a P4 switch that stands for its NIC, so the link between the two stands for
its bus and has no rate limit; a spine switch connects the switches, or those of the hosts' racks.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradplane.experiment.loading import Experiment, load
from gradplane.pages.report import rows
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.studies import gradients
from gradplane.studies.nmse import Floats

SCHEMES: dict[str, dict[str, Any]] = {
    "WA": {"aggregation": "ps"},
    "WA+C": {"aggregation": "ps", "marked": True},
    "INC": {"aggregation": "ring"},
    "INC+C": {"aggregation": "ring", "marked": True},
}
"""Worker-aggregator (WA) and INCEPTIONN's ring (INC). With C, the network compresses the gradients;
in WA+C only those on their way to the aggregator."""

_HALF: dict[str, Any] = {"push": "bfloat16", "error_feedback": False}
WITH_HALF = SCHEMES | {
    "WA bf16": SCHEMES["WA"] | _HALF | {"pull": "bfloat16"},
    "INC bf16": SCHEMES["INC"] | _HALF,
}
"""The same, and both without compression but with 16 bits a value."""

WITH_GROUPS: dict[str, dict[str, Any]] = {
    name: keys
    for way, scheme in (("WA", "tree"), ("INC", "groups"))
    for more in ("", "+C", " bf16")
    for name, keys in (
        (f"{way}{more}", WITH_HALF[f"{way}{more}"]),
        (f"{way} {scheme}{more}", WITH_HALF[f"{way}{more}"] | {"groups": "racks"}),
    )
}
"""The same, each beside its two levels: a tree of aggregators (WA tree), and a ring in each rack
and one of their leaders (INC groups)."""

Network = Literal["sim", "mininet"]
_REAL_ROUNDS = 5
_QUEUE = 10_000  # packets: what all workers send to one aggregator at once is not dropped


@dataclass(frozen=True)
class Setting:
    """The settings that all schemes share.

    rate: of the links between switches. reduce_ns: the time to add a value. racks: that the hosts
    are in; 0: none. oversubscription: how many times a rack's rate is that of its link up."""

    rate: str
    bound: int
    reduce_ns: float
    network: Network
    seed: int
    racks: int = 0
    oversubscription: float = 1.0
    placement: str = "even"
    delay: str = "0us"

    def experiment(self, scheme: str, workers: int, job: Mapping[str, Any]) -> Experiment:
        """Return an experiment with one job under that scheme; `job` has its further keys."""
        topology: dict[str, Any] = {"kind": "leaf-spine", "spines": 1, "workers": workers}
        if self.racks:
            share = {"oversubscription": self.oversubscription, "placement": self.placement}
            links = {
                "rate": self.rate,
                "queue": _QUEUE,
                "fabric_queue": _QUEUE,
                "fabric_delay": self.delay,
            }
            topology |= {"leaves": self.racks, "nics": True} | share | links
        else:
            topology |= {"hosts_per_leaf": 1, "fabric_rate": self.rate, "fabric_queue": _QUEUE}
        common = {
            "push": {"name": "float32"},
            "reliability": "retransmit",
            "bound": self.bound,
            "reduce_ns_per_value": self.reduce_ns,
        }
        values = {
            "name": scheme.lower().replace("+", "-").replace(" ", "-"),
            "seed": self.seed,
            "topology": topology,
            "switch": {"program": "tos_compress.p4"},
            "job": [common | WITH_GROUPS[scheme] | dict(job)],
            "output": {"baseline": False},
        }
        return load(Experiment.model_validate(values))


@dataclass(frozen=True)
class Exchange:
    """One round's exchange. Times are in seconds, of the worker that waited longest."""

    scheme: str
    workers: int
    values: int
    reduce: float
    communication: float
    ratio: float | None  # of the values that the network compressed

    @property
    def seconds(self) -> float:
        """The time of the whole exchange."""
        return self.reduce + self.communication


def exchange(setting: Setting, scheme: str, workers: int, gradient: Floats) -> Exchange:
    """Exchange a gradient, float32[n], of which every worker has a copy, each rotated differently.

    On real links the last of several rounds counts: the first ones wait for code to be loaded.
    """
    waited, found = one_round(
        lambda job: setting.experiment(scheme, workers, job), workers, gradient, setting.network
    )
    reduce = found["jobs"][0]["parts"]["reduce"]
    return Exchange(scheme, workers, gradient.size, reduce, waited - reduce, rows.ratio(found))


def one_round(
    experiment: Callable[[dict[str, Any]], Experiment],
    workers: int,
    gradient: Floats,
    network: Network = "sim",
) -> tuple[float, dict[str, Any]]:
    """Return the seconds of one round of the worker that waited longest, and the run's summary.

    experiment: returns the experiment of a job's keys. On real links the last of several rounds
    counts, as `exchange` says."""
    rounds = 1 if network == "sim" else _REAL_ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gradient.npy"
        np.save(file, gradient)
        job = {
            "model": {"name": "synthetic", "file": str(file)},
            "data": {"name": "blank", "rows": rounds * workers},
            "epochs": 1,
            "batch": 1,
            "compute_ms": 0.0,
        }
        found = run_experiment.measure(experiment(job), Path(folder), network)
        *_, last = run_folder.read_lines(Path(folder) / run_folder.METRICS)
    waited = max(worker["finished"] - worker["computed"] for worker in last["workers"])
    return waited / 1e9, found


@dataclass(frozen=True)
class Epoch:
    """The state of a training after an epoch, counted from 1; seconds since its start."""

    number: int
    seconds: float
    accuracy: float


def training(setting: Setting, scheme: str, workers: int, job: Mapping[str, Any]) -> list[Epoch]:
    """Train a job under that scheme; `job` has its further keys."""
    return epochs(setting.experiment(scheme, workers, job), setting.network)


def epochs(experiment: Experiment, network: Network = "sim") -> list[Epoch]:
    """Run an experiment; return its job's epochs."""
    with tempfile.TemporaryDirectory() as folder:
        run_experiment.measure(experiment, Path(folder), network)
        rounds = list(run_folder.read_lines(Path(folder) / run_folder.METRICS))
    start = min(line["started"] for line in rounds)
    return [
        Epoch(line["epoch"] + 1, (line["finished"] - start) / 1e9, line["test_accuracy"])
        for line in rounds
        if "test_accuracy" in line
    ]


def recorded(values: int, seed: int) -> Floats:
    """Return gradients of a perceptron that learns handwritten digits, float32[values]."""
    steps = gradients.training(seed=seed, steps=-(-values // _step_size()))
    return np.concatenate([gradients.flat(step.gradients) for step in steps])[:values]


def _step_size() -> int:
    return int(gradients.flat(next(gradients.training(1)).gradients).size)
