"""Plain SGD with momentum and weight decay, where the weights are: at each worker or at a server.

v = momentum * v + mean gradient + weight_decay * parameters; parameters - lr * v. lr is constant,
or falls from its value to 0 along half a cosine.
"""

from math import cos, pi

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig, Training
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models

Floats = npt.NDArray[np.float32]


def descend(
    training: Training, parameters: Floats, velocity: Floats, mean: Floats, done: float = 0.0
) -> Floats:
    """Return the parameters after a step, float32[n]; `velocity` is updated in place.

    done: the share of the training's steps before this one."""
    from gradplane._vector_kernels import descend

    after = np.empty_like(parameters)  # the former parameters stay as they are
    keys = (training.momentum, training.weight_decay, _rate(training, done))
    momentum, decay, lr = map(np.float32, keys)
    descend(parameters, velocity, mean, momentum, decay, lr, after)
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
        self.parameters = descend(self._job.training, before, self._velocity, mean, done)
        self._done += 1
        return self.parameters - before if self._job.coding.pull_deltas else self.parameters


def served(job: JobConfig) -> ServedWeights | None:
    """Return the weights of the job's server; None if it answers with mean gradients."""
    return ServedWeights(job) if job.coding.served_steps else None
