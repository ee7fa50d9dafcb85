"""A2DTWP in whole trainings: the weights cross the bus to each device, at AWP's precision or fixed.

The bus and the conversions take what the paper's tables II and III say of VGG: a small model's
values cross a bus that is as much slower as the model is smaller, so that float32 weights take the
paper's milliseconds. What is measured is which precision the training has when, and with what
accuracy.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.experiment.loading import Experiment, load
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder

NEVER = -1e9  # a threshold that no change rate falls below: the precision never changes
DEVICES = 4  # both of the paper's systems have four GPUs
BATCH = 64  # of tables II and III

Profile = dict[str, float]
"""Milliseconds of each part of a batch, by its name in the paper's tables."""

PARTS = ("to GPU", "to CPU", "convolution", "connected", "update", "norm", "pack", "unpack")
_X86 = (
    (153.93, 68.51, 128.72, 33.51, 54.39, 0.0, 0.0, 0.0),
    (52.27, 73.55, 126.13, 34.17, 52.86, 3.88, 19.71, 4.51),
)
_POWER = (
    (39.12, 17.34, 69.78, 12.66, 41.29, 0.0, 0.0, 0.0),
    (12.21, 17.87, 71.21, 13.51, 42.98, 0.93, 10.51, 1.11),
)


@dataclass(frozen=True)
class System:
    """One of the paper's machines: its profiles of VGG with a batch of 64 images."""

    name: str
    plain: Profile
    adaptive: Profile

    def computing(self, batch: int) -> float:
        """Return the ms of what A2DTWP does not change; layers take time by the images."""
        layers = self.plain["convolution"] + self.plain["connected"]
        return layers * batch / BATCH + self.plain["update"]

    def device(self, values: int, policy: dict[str, Any] | None) -> dict[str, Any]:
        """Return the `device` of a [[job]] with so many values."""
        keys: dict[str, Any] = {
            "rate": round(32e3 * values / self.plain["to GPU"]),
            "back_rate": round(32e3 * values / self.plain["to CPU"]),
        }
        if policy is None:
            return keys
        parts = ("norm", "pack", "unpack")
        costs = {f"{part}_ns_per_value": 1e6 * self.adaptive[part] / values for part in parts}
        return keys | costs | {"policy": {"name": "awp", **policy}}


def _system(name: str, rows: tuple[tuple[float, ...], tuple[float, ...]]) -> System:
    plain, adaptive = (dict(zip(PARTS, row, strict=True)) for row in rows)
    return System(name, plain, adaptive)


SYSTEMS = (_system("x86", _X86), _system("POWER", _POWER))


@dataclass(frozen=True)
class Setting:
    """A training of a perceptron on handwritten digits; `batch` images a step on four devices."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    lr: float
    decay: float
    seed: int

    @property
    def values(self) -> int:
        """The number of parameters: the digits have 64 pixels and 10 classes."""
        widths = (64, *self.hidden, 10)
        return sum((a + 1) * b for a, b in zip(widths, widths[1:], strict=False))


@dataclass(frozen=True)
class DeviceTraining:
    """A whole training. profile: mean ms of the parts that take place, by name of PARTS.

    precision: bits of each layer's weights, by batch; empty for float32. curve: after each epoch,
    its seconds since the start and the test accuracy.
    """

    profile: Profile
    precision: tuple[tuple[int, ...], ...]
    curve: tuple[tuple[float, float], ...]

    @property
    def accuracy(self) -> float:
        """The test accuracy after the last epoch."""
        return self.curve[-1][1]

    def time_to(self, accuracy: float) -> float | None:
        """Return the end of the first epoch with at least that accuracy; None if there is none."""
        return next((at for at, reached in self.curve if reached >= accuracy), None)


def train(system: System, policy: dict[str, Any] | None, setting: Setting) -> DeviceTraining:
    """Train with weights under a policy, `policy` as in an experiment, or as float32."""
    job = {
        "aggregation": "ring",
        "push": "float32",
        "reliability": "retransmit",
        "model": {"name": "mlp", "hidden": list(setting.hidden)},
        "epochs": setting.epochs,
        "batch": setting.batch // DEVICES,
        "lr": setting.lr,
        "weight_decay": setting.decay,
        "compute_ms": system.computing(setting.batch),
        "device": system.device(setting.values, policy),
    }
    values = {
        "name": "awp",
        "seed": setting.seed,
        "topology": {"workers": DEVICES},
        "job": [job],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = run_experiment.measure(load(Experiment.model_validate(values)), folder, "sim")
        lines = list(run_folder.read_lines(folder / run_folder.METRICS))
    times = {part: 1e3 * seconds for part, seconds in found["jobs"][0]["device"].items()}
    profile = {"to GPU": times["down"], "to CPU": times["up"]}
    profile |= {part: times[part] for part in ("norm", "pack", "unpack")}
    start = min(line["started"] for line in lines)
    ends = [line for line in lines if "test_accuracy" in line]
    kept = (line["workers"][0].get("precision", [])[::2] for line in lines)  # without biases
    return DeviceTraining(
        profile,
        tuple(tuple(8 * keep for keep in layers) for layers in kept),
        tuple(((line["finished"] - start) / 1e9, line["test_accuracy"]) for line in ends),
    )
