"""Plain SGD with momentum and weight decay, where the weights are: at each worker or at a server.

v = momentum * v + mean gradient + weight_decay * parameters; parameters - lr * v. lr is constant.
"""

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models

Floats = npt.NDArray[np.float32]


def descend(job: JobConfig, parameters: Floats, velocity: Floats, mean: Floats) -> Floats:
    """Return the parameters after a step, float32[n]; `velocity` is updated in place."""
    from gradplane._vector_kernels import descend

    after = np.empty_like(parameters)  # the former parameters stay as they are
    momentum, decay, lr = map(np.float32, (job.momentum, job.weight_decay, job.lr))
    descend(parameters, velocity, mean, momentum, decay, lr, after)
    return after


class ServedWeights:
    """The weights of a job whose server holds them, and answers with them or with their change."""

    def __init__(self, job: JobConfig) -> None:
        data = datasets.build(job.data, job.data_args, job.seed)
        model = models.build(job.model, job.model_args, data.features, data.classes)
        self._job, self.parameters = job, model.parameters(job.seed)
        self._velocity = np.zeros_like(self.parameters)

    def step(self, mean: Floats) -> Floats:
        """Apply a mean gradient, float32[n]; return the parameters after it, or their change."""
        before = self.parameters
        self.parameters = descend(self._job, before, self._velocity, mean)
        return self.parameters - before if self._job.pull_deltas else self.parameters


def served(job: JobConfig) -> ServedWeights | None:
    """Return the weights of the job's server; None if it answers with mean gradients."""
    return ServedWeights(job) if job.served_steps else None
