"""One worker's training as a generator of steps, each answered by the host that drives it.

    Compute -> Reduce -> Report("round"), round after round; after an epoch's last:
    Synchronise -> Report("epoch"); at the end Report("done")

A worker that crashes ends with Crash; its next life begins with the Join of a later round, which
all workers of that round take part in.

SGD with momentum (sgd.py), at each worker unless the job's server holds the weights: then the
server answers with them, or with their change, which the worker adds to its own. With a device the
gradient is computed with the weights as they arrived there (device.py). The mean gradient is the
estimate that this worker got from the network, so in lossy mode workers drift apart until they
synchronise. A synchronisation replaces the parameters; each worker keeps its momentum and error
feedback. A worker that joins takes another's parameters and momentum.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._finite import all_finite, is_known_finite, known_finite
from gradplane._plugins import is_reference
from gradplane.hosts.absences import joining, of_worker, present
from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest_by, function
from gradplane.hosts.protocols.job_codec import adaptive
from gradplane.hosts.protocols.once import Common, Once
from gradplane.hosts.protocols.results import Joined, Reduced, Synchronised
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models
from gradplane.hosts.training.compute_times import compute_ns
from gradplane.hosts.training.datasets import Dataset
from gradplane.hosts.training.models import Model, check_parameters, checked_gradient
from gradplane.hosts.training.sgd import descend

Floats = npt.NDArray[np.float32]

TIMES = ("norm", "pack", "down", "unpack", "up")
"""The parts of a batch's time on the bus and at its ends, in a worker's record of a round."""


@dataclass(frozen=True)
class OnDevice:
    """The weights that a batch is computed with, and what it took to send them there.

    precision: bytes of each tensor's values, empty if no policy chooses them. times: ns by name of
    TIMES, the gradient's way back included.
    """

    weights: Floats
    precision: tuple[int, ...]
    times: dict[str, int]

    @property
    def ns(self) -> int:
        """The time of all parts together."""
        return sum(self.times.values())


class Device:
    """A worker's device.

    `keys` are JobConfig.device: rate and back_rate (bit/s); pack_ns, unpack_ns and norm_ns, per
    value; policy, the configuration of codecs.AdaptiveADT, or None.
    """

    def __init__(self, keys: dict[str, Any], initial: Floats) -> None:
        self._keys = keys
        self._codec = None if keys["policy"] is None else adaptive(keys["policy"])
        if self._codec is not None:  # the policy sees the initial weights before any batch
            self._state = self._codec.start(initial.size)

    def send(self, parameters: Floats, pulled: tuple[int, tuple[int, ...]] | None) -> OnDevice:
        """Send the weights, float32[n], for a batch.

        pulled: bytes and precision that a server has sent them in; None if the host packs them.
        """
        if pulled is not None:
            nbytes, precision = pulled
            times = {"norm": 0, "pack": 0, "unpack": self._ns("unpack_ns", parameters.size)}
            return self._sent(parameters, precision, nbytes, times)
        if self._codec is None:
            none = {"norm": 0, "pack": 0, "unpack": 0}
            return self._sent(parameters, (), parameters.nbytes, none)
        data, self._state = self._codec.encode(parameters, state=self._state)
        n = self._codec.compressed
        times = {part: self._ns(f"{part}_ns", n) for part in ("norm", "pack", "unpack")}
        arrived = self._codec.decode(data, parameters.size)
        return self._sent(arrived, self._codec.precision(data), len(data), times)

    def arrived(self, parameters: Floats) -> Floats:
        """Return the weights as the next batch would be computed with them, float32[n]."""
        if self._codec is None:
            return parameters
        data, _ = self._codec.encode(parameters, state=self._state)
        return self._codec.decode(data, parameters.size)

    def _sent(
        self, weights: Floats, precision: tuple[int, ...], nbytes: int, times: dict[str, int]
    ) -> OnDevice:
        down, up = self._keys["rate"], self._keys["back_rate"]
        bus = {"down": _bus_ns(nbytes, down), "up": _bus_ns(weights.nbytes, up)}
        ordered = {part: (times | bus)[part] for part in TIMES}
        return OnDevice(weights, precision, ordered)

    def _ns(self, key: str, values: int) -> int:
        return round(float(self._keys[key]) * values)


def _bus_ns(nbytes: int, rate: int) -> int:
    return round(8e9 * nbytes / rate)


class TrainingError(ValueError):
    """Training cannot continue; the message says in which round and why."""


@dataclass(frozen=True)
class Compute:
    """The emulated compute time of a round, in ns. Answered with None once it has passed."""

    round: int
    ns: int


@dataclass(frozen=True)
class Reduce:
    """The gradient of a round, float32[n], to average over the workers. Answered with a Reduced."""

    round: int
    vector: Floats
    tensor: int = 0  # whose error feedback is used


@dataclass(frozen=True)
class Synchronise:
    """An epoch's end: the results missed in it, the parameters, and the workers that take part.
    Answered with a Synchronised."""

    epoch: int
    missed: int
    parameters: Floats
    workers: tuple[int, ...]


@dataclass(frozen=True)
class Join:
    """The start of a round in which workers join: this worker's state, of a newcomer only its
    sizes. Answered with a Joined."""

    round: int
    state: Joined


@dataclass(frozen=True)
class Crash:
    """The worker dies at the start of a round, and is back in round `back`. Never answered."""

    round: int
    back: int


@dataclass(frozen=True)
class Report:
    """A log record's kind and those of its fields that training knows. Answered with None."""

    kind: str
    fields: dict[str, Any]


Step = Compute | Reduce | Synchronise | Join | Crash | Report
Steps = Generator[Step, Any, None]


def train(job: JobConfig, worker: int, joins: int = 0, tested: bool = True) -> Steps:
    """Return the training of `worker` in `job`; each step is answered as its class says.

    joins: the round that it begins with, 0 or the end of one of the worker's absences. tested:
    whether it reports accuracies.

    Raises LoadError at once for an unusable model, data set or batch size, and TrainingError during
    training when a gradient is not finite.
    """
    data = datasets.build(job.training.data, job.training.data_args, job.seed)
    learner = _Learner(job, worker, data)
    learner.batches(0)
    return _steps(job, learner, joins, tested)


def _steps(job: JobConfig, learner: "_Learner", joins: int, tested: bool) -> Steps:
    for epoch in range(job.training.epochs):
        rounds = len(learner.batches(epoch))
        if learner.rounds + rounds <= joins:
            learner.rounds += rounds
            continue
        missed = yield from _epoch(job, learner, epoch, joins)
        synced = Synchronised(learner.parameters, None, 0)
        if job.training.sync:
            here = present(job.absences, job.workers, learner.rounds - 1)
            synced = yield Synchronise(epoch, missed, learner.parameters, here)
        learner.parameters = synced.parameters
        outcome = {"missed": missed, "source": synced.source, "bytes": synced.nbytes}
        accuracies = learner.accuracies() if tested else {}
        yield Report("epoch", {"epoch": epoch} | accuracies | outcome)
    last = {"test_accuracy": learner.accuracies()["test_accuracy"]} if tested else {}
    yield Report("done", last | {"weights": _digest(function(), learner.parameters)})


def _epoch(
    job: JobConfig, learner: "_Learner", epoch: int, joins: int
) -> Generator[Step, Any, int]:
    """Train one epoch, without rounds before `joins`; return the number of results missed."""
    missed = 0
    for rows in learner.batches(epoch):
        number = learner.rounds
        if number < joins:
            learner.rounds += 1
            continue
        yield from _membership(job, learner, number)
        loss, gradient = learner.gradient(rows)
        own = compute_ns(job.training.compute_ns, job.seed, learner.worker, number)
        yield Compute(number, own + learner.batch.ns)
        more = learner.batch_fields()
        reduced: Reduced = yield Reduce(number, gradient)
        learner.update(reduced)
        missed += reduced.missed
        fields = {"round": number, "epoch": epoch, "loss": loss, "missed": reduced.missed}
        yield Report("round", fields | _digests(reduced, learner.parameters) | more)
    return missed


def _membership(job: JobConfig, learner: "_Learner", round: int) -> Generator[Step, Any, None]:
    """Begin a round: crash, or wait for the workers that join, this one perhaps."""
    for absence in of_worker(job.absences, learner.worker):
        if absence.first == round > 0:
            yield Crash(round, absence.back)
    if joining(job.absences, round):
        state: Joined = yield Join(round, Joined(learner.parameters, learner.velocity))
        learner.parameters, learner.velocity = state.parameters, state.momentum


def _digests(reduced: Reduced, parameters: Floats) -> dict[str, str]:
    return {
        "gradient": reduced.gradient,
        "codes": reduced.codes,
        "sums": reduced.sums,
        "weights": _digest(function(), parameters),
    }


_common_parameters, _common_velocity = Common(), Common()
_digest = Once(digest_by)


class _Learner:
    """Parameters, momentum and the arithmetic on them."""

    def __init__(self, job: JobConfig, worker: int, data: Dataset) -> None:
        self.job, self.worker, self.data = job, worker, data
        own = job.training
        self.model: Model = models.build(own.model, own.model_args, data.features, data.classes)
        self.parameters = self.model.parameters(job.seed)
        check_parameters(own.model, self.parameters)
        self.velocity = np.zeros_like(self.parameters)
        if not is_reference(own.model):  # a user's model may change them
            self.parameters = _common_parameters(self.parameters)
            self.velocity = _common_velocity(self.velocity)
        self.rounds = 0
        self._steps = own.epochs * datasets.rounds(len(data.train_y), job.workers, own.batch)
        self._device = None if own.device is None else Device(own.device, self.parameters)
        self._pulled: tuple[int, tuple[int, ...]] | None = None  # bytes and precision
        if job.coding.pulls_weights:
            self._pull_initial()
        self.batch = OnDevice(self.parameters, (), {})

    def _pull_initial(self) -> None:
        """Take the initial weights as the server would have sent them."""
        codec = adaptive(self.job.coding.pull_codec[1])
        n = self.parameters.size
        data, _ = codec.encode(self.parameters, state=codec.start(n))
        self.parameters = codec.decode(data, n)
        self._pulled = len(data), codec.precision(data)

    def batches(self, epoch: int) -> npt.NDArray[np.int64]:
        job, rows = self.job, len(self.data.train_y)
        return datasets.batches(rows, job.workers, self.worker, job.training.batch, job.seed, epoch)

    def gradient(self, rows: npt.NDArray[np.int64]) -> tuple[float, Floats]:
        """Send the weights to where gradients are computed; return the loss and the gradient."""
        self.batch = self._sent()
        x, y = self.data.train_x[rows], self.data.train_y[rows]
        training = self.job.training
        found = self.model.loss_and_gradient(self.batch.weights, x, y)
        loss, gradient = checked_gradient(training.model, found, self.parameters.size)
        if not all_finite(gradient):
            raise TrainingError(
                f"job {self.job.number}, worker {self.worker}, round {self.rounds}: the gradient"
                f" is not finite (loss {loss}): training diverged, lower lr ({training.lr})"
            )
        if is_known_finite(gradient):
            return loss, gradient
        return loss, known_finite(gradient.copy())  # a model may use its memory again

    def _sent(self) -> OnDevice:
        if self._device is not None:
            return self._device.send(self.parameters, self._pulled)
        precision = () if self._pulled is None else self._pulled[1]
        return OnDevice(self.parameters, precision, {})

    def batch_fields(self) -> dict[str, Any]:
        """Return the fields of a round's record that only jobs with a policy or a device have."""
        precision, times = self.batch.precision, self.batch.times
        fields: dict[str, Any] = {"precision": list(precision)} if precision else {}
        return fields | ({"device": times} if times else {})

    def update(self, reduced: Reduced) -> None:
        """Take the result of a round: a mean gradient, the weights after it, or their change."""
        if self.job.coding.pulls_weights:
            codec = adaptive(self.job.coding.pull_codec[1])
            nbytes = codec.encoded_size(reduced.precision)
            self.parameters, self._pulled = reduced.mean, (nbytes, reduced.precision)
        elif self.job.coding.pull_deltas:
            self.parameters = self.parameters + reduced.mean
        else:
            done = self.rounds / self._steps
            own, mean = self.job.training, reduced.mean
            stepped = descend(own, self.parameters, self.velocity, mean, done)
            self.parameters, self.velocity = stepped
        self.rounds += 1

    def accuracies(self) -> dict[str, float]:
        model, data, device = self.model, self.data, self._device
        weights = self.parameters if device is None else device.arrived(self.parameters)
        return {
            "train_accuracy": models.accuracy(model, weights, data.train_x, data.train_y),
            "test_accuracy": models.accuracy(model, weights, data.test_x, data.test_y),
        }
