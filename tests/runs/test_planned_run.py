"""A job with a plan on the simulated network: times, records, replay, report, refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment.loading import ExperimentError, load
from gradplane.pages.report.page import write as write_report
from gradplane.planner.experiment_file import experiment
from gradplane.planner.inputs import System
from gradplane.planner.planning import make
from gradplane.runs.records.run_folder import read_lines
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import mininet_possible, run

MININET, WHY_NOT = mininet_possible()

SYSTEM = """
name = "small"
machines = 2
gpus = 2
intra = { gbit = 100.0, latency_us = 10.0 }
inter = { gbit = 25.0, latency_us = 25.0 }
"""


LOSS = """
[[impairment]]
model = "bernoulli"
rate = 0.02
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return the folder of a plan's run on the simulated network, which is made once."""
    made: dict[Path, Path] = {}

    def get(plan: Path) -> Path:
        if plan not in made:
            made[plan] = tmp_path_factory.mktemp("runs") / "run"
            run(plan / "experiment.toml", made[plan], net="sim")
        return made[plan]

    return get


def with_losses(plan: Path, folder: Path) -> Path:
    """Run a plan on links that lose packets; return the run's folder."""
    (folder / "plan.json").write_text((plan / "plan.json").read_text())
    path = folder / "experiment.toml"
    path.write_text((plan / "experiment.toml").read_text() + LOSS)
    run(path, folder / "run", net="sim")
    return folder / "run"


def planned_seconds(plan: Path) -> float:
    found: float = json.loads((plan / "plan.json").read_text())["iteration_seconds"]
    return found


def seconds(run: Path) -> float:
    """Return the time that the run's only round took after its forward pass."""
    (line,) = read_lines(run / "metrics.jsonl")
    return max(each["finished"] - each["computed"] for each in line["workers"]) / 1e9


def summary_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan a small job and write its experiment."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "system.toml").write_text(SYSTEM)
    made = make("lstm", "dgc", folder / "system.toml", ["shape=hierarchical"], 20_000)
    (folder / "plan.json").write_text(made.to_json())
    (folder / "experiment.toml").write_text(experiment(made, "plan.json", rounds=2))
    return folder


def test_a_plan_runs_is_replayed_and_reported(
    folder: Path, simulated: Callable[[Path], Path]
) -> None:
    done = simulated(folder)
    planned = json.loads((folder / "plan.json").read_text())
    lines = list(read_lines(done / "arrivals.jsonl"))
    timelines = [line for line in lines if line["kind"] == "timeline"]
    assert len(timelines) == 2 * 4
    for ticket in range(2):
        took = max(
            line["forward"] + max(event[5] for event in line["events"])
            for line in timelines
            if line["ticket"] == ticket
        )
        assert took / 1e9 == pytest.approx(planned["iteration_seconds"], rel=0.08)
    parts = summary_of(done)["jobs"][0]["parts"]
    computing = planned["forward_seconds"] + sum(t["compute_seconds"] for t in planned["tensors"])
    assert parts["compute"] == pytest.approx(computing, rel=1e-3)
    assert min(parts.values()) >= 0
    assert replay(done).difference is None
    page = write_report([done]).read_text()
    assert "The plan and the run" in page
    (job,) = load(done / "experiment.toml").job
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan a small job whose tensors go to servers, and write its experiment."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "system.toml").write_text(SYSTEM + "servers = 2\n")
    constraints = ["compressions<=0", "without=allreduce", "shape=hierarchical"]
    constraints += ["without=reduce-scatter"]
    made = make("lstm", "thc", folder / "system.toml", constraints, 20_000)
    (folder / "plan.json").write_text(made.to_json())
    (folder / "experiment.toml").write_text(experiment(made, "plan.json"))
    assert any("server" in str(row.option) for row in made.rows)
    return folder


def test_tensors_go_to_servers(served: Path, simulated: Callable[[Path], Path]) -> None:
    done = simulated(served)
    assert seconds(done) == pytest.approx(planned_seconds(served), rel=0.08)
    assert replay(done).difference is None
    assert summary_of(done)["jobs"][0]["rounds"] == 1


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan a small job of which the switch sums values and codes, and write its experiment."""
    folder = tmp_path_factory.mktemp("switched")
    text = SYSTEM.replace("machines = 2", "machines = 3").replace("gpus = 2", "gpus = 1")
    (folder / "system.toml").write_text(text + '[switch]\nadd = ["int32", "codes"]\n')
    without = ["allreduce", "allgather", "alltoall", "gather", "reduce-scatter", "reduce"]
    constraints = [f"without={routine}" for routine in without]
    made = make("lstm", "thc", folder / "system.toml", constraints, 50_000)
    (folder / "plan.json").write_text(made.to_json())
    (folder / "experiment.toml").write_text(experiment(made, "plan.json"))
    used = {task.choice for row in made.rows for task in row.option}
    assert {"switch-int32", "switch-codes"} <= used
    return folder


def check_switch_sums(run: Path) -> None:
    assert replay(run).difference is None
    (job,) = summary_of(run)["jobs"]
    assert job["traffic"]["payload_down"] > 0


def test_the_switch_sums_tensors(switched: Path, simulated: Callable[[Path], Path]) -> None:
    done = simulated(switched)
    assert seconds(done) == pytest.approx(planned_seconds(switched), rel=0.05)
    check_switch_sums(done)


def test_the_switch_sums_tensors_though_packets_are_lost(switched: Path, tmp_path: Path) -> None:
    done = with_losses(switched, tmp_path)
    assert seconds(done) > planned_seconds(switched)
    check_switch_sums(done)


def test_a_plan_that_needs_what_runs_do_not_have_is_refused(served: Path, tmp_path: Path) -> None:
    text = (served / "plan.json").read_text().replace('"server"', '"pigeons"')
    (tmp_path / "plan.json").write_text(text)
    (tmp_path / "experiment.toml").write_text((served / "experiment.toml").read_text())
    with pytest.raises(ExperimentError, match="plan again with --constraint without=pigeons"):
        load(tmp_path / "experiment.toml")


EDGES = """
[switch]
fabric_gbit = 10.0
tos_ratio = 0.25
tos_bound = 8
"""


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan a small job whose tensors the edge switches compress, and write its experiment."""
    folder = tmp_path_factory.mktemp("marked")
    (folder / "system.toml").write_text(SYSTEM.replace("machines = 2", "machines = 3") + EDGES)
    constraints = ["compressions<=0", "shape=hierarchical", "without=allreduce"]
    made = make("lstm", "dgc", folder / "system.toml", constraints, 50_000)
    (folder / "plan.json").write_text(made.to_json())
    (folder / "experiment.toml").write_text(experiment(made, "plan.json"))
    assert sum(any(task.choice == "tos" for task in row.option) for row in made.rows) > 4
    return folder


def check_edges_compress(run: Path) -> None:
    switches = [each["compression"] for each in summary_of(run)["switches"].values()]
    edges = [each for each in switches if each["compressed"]["packets"]]
    assert len(edges) == 3 and all(each["malformed"] == 0 for each in edges)
    assert all(1 / each["ratio"] == pytest.approx(0.25, rel=0.05) for each in edges)
    assert replay(run).difference is None


def test_the_edge_switches_compress_tensors(
    marked: Path, simulated: Callable[[Path], Path]
) -> None:
    done = simulated(marked)
    assert seconds(done) == pytest.approx(planned_seconds(marked), rel=0.05)
    check_edges_compress(done)


def test_the_edge_switches_compress_tensors_though_packets_are_lost(
    marked: Path, tmp_path: Path
) -> None:
    done = with_losses(marked, tmp_path)
    assert seconds(done) > planned_seconds(marked)
    check_edges_compress(done)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("switch.program=thc.p4", 'compresses nothing: use program = "tos_compress.p4"'),
        ("job.marked=false", "or plan again with --constraint without=tos"),
    ],
)
def test_a_plan_needs_switches_that_compress(marked: Path, setting: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        load(marked / "experiment.toml", [setting])
    assert message in str(error.value)


def test_a_plan_whose_tensors_need_two_programs_is_refused(
    marked: Path, switched: Path, tmp_path: Path
) -> None:
    text = (marked / "plan.json").read_text().replace('"tos"', '"switch-int32"', 1)
    (tmp_path / "plan.json").write_text(text)
    (tmp_path / "experiment.toml").write_text((marked / "experiment.toml").read_text())
    with pytest.raises(ExperimentError, match="use switch-int32 and tos, and switches run one"):
        load(tmp_path / "experiment.toml")
    with pytest.raises(ExperimentError, match="plan again with --constraint without=switch-int32"):
        load(switched / "experiment.toml", ["switch.program=tos_compress.p4"])


def digests(run: Path) -> list[tuple[int, int, str]]:
    """Return what each worker ended each reduce with: ticket, worker, digest."""
    arrivals = [a for a in read_lines(run / "arrivals.jsonl") if a["kind"] == "arrival"]
    return sorted((a["ticket"], a["worker"], a["digest"]) for a in arrivals)


@pytest.mark.skipif(not MININET, reason=WHY_NOT)
@pytest.mark.parametrize("made", ["folder", "served", "switched"])
def test_on_mininet_a_plan_gives_the_same_sums(
    made: str,
    request: pytest.FixtureRequest,
    simulated: Callable[[Path], Path],
    tmp_path: Path,
) -> None:
    """Times are the processes', sums and codes those of the simulated network."""
    plan: Path = request.getfixturevalue(made)
    settings = ["topology.delay=0", "topology.fabric_delay=0"]  # not every kernel has netem
    run(plan / "experiment.toml", tmp_path / "run", net="mininet", settings=settings)
    assert digests(tmp_path / "run") == digests(simulated(plan)) != []
    assert replay(tmp_path / "run").difference is None


def test_a_scaled_system_keeps_its_times() -> None:
    plain, scaled = make("lstm", "dgc", "pcie-25g"), make("lstm", "dgc", "pcie-25g", (), 1_000_000)
    assert sum(row.values for row in scaled.rows) == pytest.approx(1_000_000, rel=1e-3)
    assert isinstance(scaled.system, System) and scaled.system.framing is not None
    assert plain.time <= scaled.time <= 1.3 * plain.time
