"""A study's training without packets against the same job of a run."""

from pathlib import Path

import pytest

from gradplane.experiment.schema import NamedModel
from gradplane.runs.run_experiment import run
from gradplane.studies import trainings

FILE = """
seed = 3
[topology]
workers = 3
[[job]]
aggregation = "ps"
push = { name = "thc", granularity = 20 }
model = { name = "mlp", hidden = [12] }
epochs = 2
batch = 150
error_feedback = %s
[output]
baseline = false
"""


@pytest.mark.parametrize("feedback", ["true", "false"])
def test_the_weights_are_those_of_a_run(feedback: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(FILE % feedback)
    summary = run(path, tmp_path / "run", net="sim").values
    job = trainings.job(
        3,
        push=NamedModel(name="thc", granularity=20),
        model=NamedModel(name="mlp", hidden=[12]),
        epochs=2,
        batch=150,
        error_feedback=feedback == "true",
        seed=3,
    )
    trained = trainings.run(job)
    assert set(summary["jobs"][0]["weights"].values()) == {trained.weights}
    assert trained.accuracy == summary["test_accuracy"] and len(trained.accuracies) == 2
    assert trained.ratio > 6
