"""A training step is NumPy's, operation by operation: recorded runs keep their weights' digests.
A learning rate that falls does so alike at workers and at a server that holds the weights."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradplane.hosts.training.sgd import descend
from gradplane.runs.records.run_folder import read_lines
from gradplane.runs.run_experiment import run


@pytest.mark.parametrize("decay", [0.0, 1e-4])
def test_a_step_rounds_after_each_operation(decay: float) -> None:
    job: Any = SimpleNamespace(momentum=0.9, weight_decay=decay, lr=0.05, schedule="constant")
    draw = np.random.default_rng(1)
    parameters, velocity, mean = draw.normal(size=(3, 1001)).astype(np.float32)
    expected = velocity * np.float32(0.9)
    expected += mean
    if decay:
        expected += np.float32(decay) * parameters
    after, changed = descend(job, parameters, velocity, mean)
    assert changed.tobytes() == expected.tobytes()
    assert after.tobytes() == (parameters - np.float32(0.05) * expected).tobytes()


@pytest.mark.parametrize("done, rate", [(0.0, 0.05), (0.5, 0.025), (0.75, 0.00732), (1.0, 0.0)])
def test_a_cosine_falls_from_lr_to_nothing(done: float, rate: float) -> None:
    job: Any = SimpleNamespace(momentum=0.0, weight_decay=0.0, lr=0.05, schedule="cosine")
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    assert descend(job, zero, zero, one, done)[0][0] == pytest.approx(-rate, abs=1e-5)


def losses(folder: Path, keys: str) -> list[float]:
    """Return the loss of each round of a small training through a server."""
    text = f"""
[topology]
workers = 2
[[job]]
aggregation = "ps"
push = "float32"
model = {{ name = "mlp", hidden = [8] }}
epochs = 2
batch = 96
{keys}
[output]
baseline = false
report = false
"""
    path = folder / "x.toml"
    path.write_text(text)
    done = run(path, folder / f"run{len(list(folder.iterdir()))}", net="sim")
    return [line["loss"] for line in read_lines(done.folder / "metrics.jsonl")]


def test_the_rate_falls_alike_where_a_server_holds_the_weights(tmp_path: Path) -> None:
    constant = losses(tmp_path, "")
    workers = losses(tmp_path, 'schedule = "cosine"')
    server = losses(tmp_path, 'schedule = "cosine"\npull_deltas = true')
    assert workers[:2] == constant[:2] and workers[-1] > constant[-1]
    assert server == pytest.approx(workers, rel=1e-4) and len(server) == 14
