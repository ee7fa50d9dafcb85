"""Jobs with aggregation = "optireduce": runs, replays, records of losses, refusals."""

import json
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

JOB = (
    "job.aggregation=optireduce", "job.push=float32", "job.observed=3", "job.epochs=2",
    "job.reliability=lossy", "output.baseline=false", "topology.workers=3",
)  # fmt: skip
LOSSES = (
    "impairment=["
    '{model="bernoulli", rate=0.02},'
    '{model="straggler", count=1, probability=0.2, delay_ms=40}]',
)


def test_a_run_with_losses_and_stragglers_and_its_replay(tmp_path: Path) -> None:
    done = run("thc-star", tmp_path / "run", net="sim", settings=(*JOB, *LOSSES))
    (job,) = done.values["jobs"]
    assert job["missed"] == job["lost"]["means"]["lost"] > 0
    assert 0 < job["lost"]["parts"]["lost"] < job["lost"]["parts"]["sent"]
    assert done.test_accuracy > 0.5
    found = replay(tmp_path / "run")
    assert found.difference is None
    again = run("thc-star", tmp_path / "again", net="sim", settings=(*JOB, *LOSSES))
    assert again.weights == done.weights


def test_losses_of_its_packets_by_type(tmp_path: Path) -> None:
    only = 'impairment=[{model="bernoulli", rate=0.1, flow="mean", direction="down"}]'
    done = run("thc-star", tmp_path / "run", net="sim", settings=(*JOB, only))
    (job,) = done.values["jobs"]
    dropped = done.values["losses_injected"]["drop"]
    assert dropped.keys() == {"down"} and 0 < dropped["down"] <= job["missed"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "impairments.jsonl").open()]
    assert {line["type"] for line in lines} == {"mean"}


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("job.push=thc", "use float32, float16, bfloat16"),
        ("job.quorum=2", "a sum waits for a time, not for a number of workers"),
        ("job.reliability=retransmit", "nothing is sent again"),
        ("job.pull=float32", "workers answer each other as they push: pull is for"),
        ("job.observed=0", "observed"),
        ("job.local_steps=2", "only a parameter server's workers"),
    ],
)
def test_what_is_refused(setting: str, reason: str) -> None:
    with pytest.raises(ExperimentError, match=reason):
        load_deployment("thc-star", (*JOB, setting))
