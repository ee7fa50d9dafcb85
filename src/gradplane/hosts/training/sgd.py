"""Plain SGD with momentum and weight decay, where the weights are: at each worker or at a server.

v = momentum * v + mean gradient + weight_decay * parameters; parameters - lr * v. lr is constant,
or falls from its value to 0 along half a cosine.
"""

from math import cos, pi

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig, Training
from gradplane.hosts.protocols.once import Once
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models

Floats = npt.NDArray[np.float32]


def descend(
    training: Training, parameters: Floats, velocity: Floats, mean: Floats, done: float = 0.0
) -> tuple[Floats, Floats]:
    """Return the parameters and the velocity after a step, float32[n] each.

    done: the share of the training's steps before this one."""
    keys = (training.momentum, training.weight_decay, _rate(training, done))
    after = _step(parameters, velocity, mean, *map(np.float32, keys))
    return after[0], after[1]


@Once
def _step(parameters: Floats, velocity: Floats, mean: Floats, *keys: np.float32) -> Floats:
    """Return parameters and velocity after a step, float32[2, n]; keys: momentum, weight decay and
    learning rate."""
    from gradplane._vector_kernels import descend

    after = np.empty((2, parameters.size), np.float32)
    descend(parameters, velocity, mean, *keys, after[0], after[1])
    return after


def _rate(training: Training, done: float) -> float:
    if training.schedule == "cosine":
        return training.lr * (1 + cos(pi * done)) / 2
    return training.lr


class ServedWeights:
    """The weights of a job whose server holds them, and answers with them or with their change."""

    def __init__(self, job: JobConfig) -> None:
        training = job.training
        data = datasets.build(training.data, training.data_args, job.seed)
        model = models.build(training.model, training.model_args, data.features, data.classes)
        self._job, self.parameters = job, model.parameters(job.seed)
        self._velocity = np.zeros_like(self.parameters)
        rounds = datasets.rounds(len(data.train_y), job.workers, training.batch)
        self._done, self._steps = 0, training.epochs * rounds // job.coding.local_steps

    def step(self, mean: Floats) -> Floats:
        """Apply a mean gradient, float32[n]; return the parameters after it, or their change."""
        before = self.parameters
        done = self._done / max(self._steps, 1)
        stepped = descend(self._job.training, before, self._velocity, mean, done)
        self.parameters, self._velocity = stepped
        self._done += 1
        return self.parameters - before if self._job.coding.pull_deltas else self.parameters


def served(job: JobConfig) -> ServedWeights | None:
    """Return the weights of the job's server; None if it answers with mean gradients."""
    return ServedWeights(job) if job.coding.served_steps else None
