"""Plain SGD with momentum and weight decay, where the weights are: at each worker or at a server.

v = momentum * v + mean gradient + weight_decay * parameters; parameters - lr * v. lr is constant.
"""

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig, Training
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models

Floats = npt.NDArray[np.float32]


def descend(training: Training, parameters: Floats, velocity: Floats, mean: Floats) -> Floats:
    """Return the parameters after a step, float32[n]; `velocity` is updated in place."""
    from gradplane._vector_kernels import descend

    after = np.empty_like(parameters)  # the former parameters stay as they are
    momentum, decay, lr = map(np.float32, (training.momentum, training.weight_decay, training.lr))
    descend(parameters, velocity, mean, momentum, decay, lr, after)
    return after


class ServedWeights:
    """The weights of a job whose server holds them, and answers with them or with their change."""

    def __init__(self, job: JobConfig) -> None:
        training = job.training
        data = datasets.build(training.data, training.data_args, job.seed)
        model = models.build(training.model, training.model_args, data.features, data.classes)
        self._job, self.parameters = job, model.parameters(job.seed)
        self._velocity = np.zeros_like(self.parameters)

    def step(self, mean: Floats) -> Floats:
        """Apply a mean gradient, float32[n]; return the parameters after it, or their change."""
        before = self.parameters
        self.parameters = descend(self._job.training, before, self._velocity, mean)
        return self.parameters - before if self._job.coding.pull_deltas else self.parameters


def served(job: JobConfig) -> ServedWeights | None:
    """Return the weights of the job's server; None if it answers with mean gradients."""
    return ServedWeights(job) if job.coding.served_steps else None
