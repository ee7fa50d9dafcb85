"""A2DTWP in whole trainings: the weights cross the bus to each device, at AWP's precision or fixed.

The bus and the conversions take what the paper's tables II and III say of VGG: a small model's
values cross a bus that is as much slower as the model is smaller, so that float32 weights take the
paper's milliseconds. Alexnet and Resnet, of which the paper has no such table, take VGG's times by
their numbers of weights and of multiplications. What is measured is which precision the training
has when, and with what accuracy.
"""

from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Any, Literal

from gradplane.studies import trainings

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


ModelName = Literal["Alexnet", "VGG", "Resnet"]


@dataclass(frozen=True)
class Size:
    """The paper's models (table I, 200 classes) beside VGG.

    weights: of all layers; connected: those of fully connected layers; convolution: the
    multiplications of an image in the others."""

    weights: float
    connected: float
    convolution: float


SIZES: dict[ModelName, Size] = {
    "Alexnet": Size(75.3e6, 72.1e6, 0.780e9),
    "VGG": Size(129.6e6, 120.4e6, 7.485e9),
    "Resnet": Size(21.4e6, 0.1e6, 3.644e9),
}


@dataclass(frozen=True)
class System:
    """One of the paper's machines: its profiles of a model with a batch of 64 images."""

    name: str
    plain: Profile
    adaptive: Profile

    def of(self, model: ModelName) -> "System":
        """Return what another model than VGG would take."""
        own, vgg = SIZES[model], SIZES["VGG"]
        factors = dict.fromkeys(PARTS, own.weights / vgg.weights)
        factors["connected"] = own.connected / vgg.connected
        factors["convolution"] = own.convolution / vgg.convolution
        plain, adaptive = (
            {part: factors[part] * times[part] for part in PARTS}
            for times in (self.plain, self.adaptive)
        )
        return System(self.name, plain, adaptive)

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
class DeviceTraining(trainings.WithCurve):
    """A whole training. profile: mean ms of the parts that take place, by name of PARTS.

    precision: bits of each layer's weights, by batch; empty for float32. curve: after each epoch,
    its seconds since the start and the test accuracy. Exchanges between devices take no time.
    """

    profile: Profile
    precision: tuple[tuple[int, ...], ...]
    curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Course:
    """A training as it goes on any system, since only times depend on that.

    shares: of each batch, what its parts take, 1: a whole model's float32 on the bus, or norms and
    conversions of all its values. precision, accuracies: as in DeviceTraining, by epoch."""

    shares: tuple[Profile, ...]
    precision: tuple[tuple[int, ...], ...]
    accuracies: tuple[float, ...]
    batch: int

    def on(self, system: System) -> DeviceTraining:
        """Return its times on a system."""
        full = _full(system)
        times = [{part: share * full[part] for part, share in s.items()} for s in self.shares]
        computing = system.computing(self.batch)
        ends = [ms / 1e3 for ms in accumulate(computing + sum(each.values()) for each in times)]
        each = len(ends) // len(self.accuracies)
        curve = zip(ends[each - 1 :: each], self.accuracies, strict=True)
        profile = {part: fmean(each[part] for each in times) for part in full}
        return DeviceTraining(profile, self.precision, tuple(curve))


def _full(system: System) -> Profile:
    """Return what the parts take that a precision changes, where all values take them."""
    plain = {part: system.plain[part] for part in ("to GPU", "to CPU")}
    return plain | {part: system.adaptive[part] for part in ("norm", "pack", "unpack")}


def train(policy: dict[str, Any] | None, setting: Setting) -> Course:
    """Train with weights under a policy, `policy` as in an experiment, or as float32."""
    system = SYSTEMS[0]
    job = trainings.job(
        DEVICES,
        push="float32",
        error_feedback=False,
        model={"name": "mlp", "hidden": list(setting.hidden)},
        epochs=setting.epochs,
        batch=setting.batch // DEVICES,
        lr=setting.lr,
        weight_decay=setting.decay,
        device=system.device(setting.values, policy),
        seed=setting.seed,
    )
    trained, full = trainings.run(job), _full(system)
    names = {"to GPU": "down", "to CPU": "up", "norm": "norm", "pack": "pack", "unpack": "unpack"}
    shares = tuple(
        {part: record["device"][name] / 1e6 / full[part] for part, name in names.items()}
        for record in trained.rounds
    )
    kept = (record.get("precision", [])[::2] for record in trained.rounds)  # without biases
    precision = tuple(tuple(8 * keep for keep in layers) for layers in kept)
    return Course(shares, precision, trained.accuracies, setting.batch)
