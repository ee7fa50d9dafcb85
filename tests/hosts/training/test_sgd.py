"""A training step is NumPy's, operation by operation: recorded runs keep their weights' digests."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradplane.hosts.training.sgd import descend


@pytest.mark.parametrize("decay", [0.0, 1e-4])
def test_a_step_rounds_after_each_operation(decay: float) -> None:
    job: Any = SimpleNamespace(momentum=0.9, weight_decay=decay, lr=0.05)
    draw = np.random.default_rng(1)
    parameters, velocity, mean = draw.normal(size=(3, 1001)).astype(np.float32)
    expected = velocity * np.float32(0.9)
    expected += mean
    if decay:
        expected += np.float32(decay) * parameters
    after = descend(job, parameters, velocity, mean)
    assert velocity.tobytes() == expected.tobytes()
    assert after.tobytes() == (parameters - np.float32(0.05) * expected).tobytes()
