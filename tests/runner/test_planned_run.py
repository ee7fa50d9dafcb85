"""A job with a plan on the simulated network: times, records, replay, report, refusals."""

import json
from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError, load
from gradplane.planner.experiment_file import experiment
from gradplane.planner.inputs import System
from gradplane.planner.plan import Plan, make
from gradplane.records.run_folder import read_lines
from gradplane.replayer.replay_run import replay
from gradplane.runner.run_experiment import run

SYSTEM = """
name = "small"
machines = 2
gpus = 2
intra = { gbit = 100.0, latency_us = 10.0 }
inter = { gbit = 25.0, latency_us = 25.0 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan a small job and write its experiment."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "system.toml").write_text(SYSTEM)
    made = make("lstm", "dgc", folder / "system.toml", ["shape=hierarchical"], 20_000)
    (folder / "plan.json").write_text(made.to_json())
    (folder / "experiment.toml").write_text(experiment(made, "plan.json", rounds=2))
    return folder


def test_a_plan_runs_is_replayed_and_reported(folder: Path, tmp_path: Path) -> None:
    run(folder / "experiment.toml", tmp_path / "run", net="sim")
    planned = json.loads((folder / "plan.json").read_text())
    lines = list(read_lines(tmp_path / "run" / "arrivals.jsonl"))
    timelines = [line for line in lines if line["kind"] == "timeline"]
    assert len(timelines) == 2 * 4
    for ticket in range(2):
        took = max(
            line["forward"] + max(event[5] for event in line["events"])
            for line in timelines
            if line["ticket"] == ticket
        )
        assert took / 1e9 == pytest.approx(planned["iteration_seconds"], rel=0.08)
    assert replay(tmp_path / "run").difference is None
    page = (tmp_path / "run" / "report.html").read_text()
    assert "The plan and the run" in page
    (job,) = load(tmp_path / "run" / "experiment.toml").job
    assert job.aggregation == "plan" and json.loads(job.plan or "") == planned
    assert job.push.args == {"fraction": 0.01}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("job.plan=none.json", "none.json: No such file or directory"),
        ("job.plan=experiment.toml", "Expecting value"),
        ("job.workers=3", "3 workers, and the plan is for 2 machines with 2 GPUs"),
        ("job.model.values=7", "model synthetic has 7 values, and the plan 2"),
        ("job.push=float32", 'push is "float32", and the plan is made for "dgc"'),
        ("job.aggregation=ring", 'aggregation = "ring" with plan: use "plan"'),
        ("job.quorum=2", "its collectives need every worker"),
        ("job.reliability=lossy", "so hosts send it again"),
    ],
)
def test_what_does_not_fit_a_plan_is_refused(folder: Path, setting: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        load(folder / "experiment.toml", [setting])
    assert message in str(error.value)


def test_a_plan_that_needs_what_runs_do_not_have_is_refused(tmp_path: Path) -> None:
    system = tmp_path / "system.toml"
    system.write_text(SYSTEM + "servers = 2\n")
    made: Plan = make("lstm", "dgc", system, ["compressions<=0", "without=allreduce"], 20_000)
    content = made.to_json()
    if "server" not in content.replace("servers", ""):
        pytest.skip("no tensor goes to the server")
    (tmp_path / "plan.json").write_text(content)
    (tmp_path / "experiment.toml").write_text(experiment(made, "plan.json"))
    with pytest.raises(ExperimentError, match="plan again with --constraint without="):
        load(tmp_path / "experiment.toml")


def test_a_scaled_system_keeps_its_times() -> None:
    plain, scaled = make("lstm", "dgc", "pcie-25g"), make("lstm", "dgc", "pcie-25g", (), 1_000_000)
    assert sum(row.values for row in scaled.rows) == pytest.approx(1_000_000, rel=1e-3)
    assert isinstance(scaled.system, System) and scaled.system.framing is not None
    assert plain.time <= scaled.time <= 1.3 * plain.time
