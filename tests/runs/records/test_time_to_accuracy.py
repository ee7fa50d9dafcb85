"""The time to a target accuracy: in summary.json, for each job and for the run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load
from gradplane.runs.records.recorder import EpochEnd, Tally
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary, time_to_accuracy

Runs = Callable[..., Summary]


def test_the_first_epoch_that_reaches_the_target_counts() -> None:
    tally = Tally(workers=2, started=1_000)
    for number, accuracy in ((3, 0.5), (7, 0.8), (11, 0.7), (15, 0.9)):
        finished = 1_000 + number * 10**9
        tally.add_accuracy(
            {"training_round": number, "finished": finished, "test_accuracy": accuracy}
        )
    assert tally.reached(0.7) == EpochEnd(8, 7.0, 0.8)
    assert tally.reached(0.5) == EpochEnd(4, 3.0, 0.5)
    assert tally.reached(0.95) is None


def test_the_summary_has_it_for_the_run_and_its_jobs(small_run: Runs) -> None:
    summary = small_run("output.target_accuracy=0.2")
    values = json.loads((summary.folder / "summary.json").read_text())
    found = values["time_to_accuracy"]
    assert found == values["jobs"][0]["time_to_accuracy"]
    assert found["test_accuracy"] == 0.2
    lines = RunData.read(summary.folder).metrics
    reached = next(line for line in lines if line.get("test_accuracy", 0) >= 0.2)
    assert found["rounds"] == reached["training_round"] + 1
    assert found["seconds"] == pytest.approx((reached["finished"] - lines[0]["started"]) / 1e9)


def test_a_target_that_is_not_reached_is_null(small_run: Runs) -> None:
    found = small_run("output.target_accuracy=1.0").values["time_to_accuracy"]
    assert found == {"test_accuracy": 1.0, "seconds": None, "rounds": None}
    assert time_to_accuracy({"time_to_accuracy": found}) == "not reached"


def test_runs_without_a_target_have_no_such_key(small_run: Runs) -> None:
    assert "time_to_accuracy" not in small_run().values


def test_a_target_out_of_range_is_refused(experiment_file: Path) -> None:
    with pytest.raises(
        ExperimentError, match=r"target_accuracy = 1.5: expected above 0 and at most"
    ):
        load(experiment_file, ["output.target_accuracy=1.5"])
