"""A server that makes the steps and answers with the changes of its weights, as 3LC's does."""

from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import Experiment, load
from gradplane.runs.records import run_folder
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run


def experiment(**job: object) -> Experiment:
    keys = {
        "aggregation": "ps",
        "push": "float32",
        "pull_deltas": True,
        "model": {"name": "mlp", "hidden": [16]},
        "epochs": 3,
        "weight_decay": 5e-4,
    }
    values = {
        "name": "changes",
        "topology": {"workers": 3},
        "job": [keys | job],
        "output": {"baseline": False, "report": False},
    }
    return load(Experiment.model_validate(values))


def losses(folder: Path) -> list[float]:
    lines = run_folder.read_lines(folder / run_folder.METRICS)
    return [line["workers"][0]["loss"] for line in lines if line["workers"]]


def test_exact_changes_train_as_mean_gradients_do(tmp_path: Path) -> None:
    run(experiment(), tmp_path / "changes", net="sim")
    run(experiment(pull_deltas=False), tmp_path / "gradients", net="sim")
    changes, gradients = losses(tmp_path / "changes"), losses(tmp_path / "gradients")
    assert changes == pytest.approx(gradients, rel=1e-3)  # they differ in how float32 rounds


def test_workers_have_the_same_weights_and_the_run_replays(tmp_path: Path) -> None:
    keys = {"push": "threelc", "pull": "threelc", "pull_feedback": True}
    summary = run(experiment(**keys), tmp_path / "run", net="sim")
    assert len(set(summary.weights["changes"].values())) == 1
    assert replay(tmp_path / "run").equal


def test_coarse_codes_of_changes_train_faster_than_those_of_gradients(tmp_path: Path) -> None:
    """A coarse code of a gradient has no part of the momentum, so its error does not cover that."""
    coarse = {"name": "threelc", "s": 1.9}
    keys = {"push": coarse, "pull": coarse, "pull_feedback": True, "epochs": 10}
    run(experiment(**keys), tmp_path / "changes", net="sim")
    run(experiment(**keys, pull_deltas=False), tmp_path / "gradients", net="sim")
    changes, gradients = losses(tmp_path / "changes"), losses(tmp_path / "gradients")
    assert sum(changes[-9:]) < sum(gradients[-9:])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"aggregation": "ring", "reliability": "retransmit"}, "pull_deltas is for aggregation"),
        ({"aggregation": "switch", "push": "thc"}, "pull_deltas is for aggregation"),
        ({"pull": {"name": "adt", "policy": "awp"}}, "pull_deltas with a policy"),
    ],
)
def test_what_is_refused(keys: dict, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        experiment(**keys)
