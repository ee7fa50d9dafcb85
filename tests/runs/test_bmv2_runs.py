"""Whole runs on the real simple_switch_grpc, where it is on PATH and Mininet can be used."""

import json
import shutil
from pathlib import Path

import pytest

import gradplane
from gradplane.experiment.loading import ExperimentError
from gradplane.runs.replayer import compare_targets, replay_run
from gradplane.runs.run_experiment import mininet_possible

MININET, WHY_NOT = mininet_possible()
HERE = shutil.which("simple_switch_grpc") is not None
real = pytest.mark.skipif(
    not (HERE and MININET), reason=WHY_NOT or "simple_switch_grpc is not on PATH"
)

JOBS = """
[topology]
workers = 3

[switch]
target = "bmv2"

[[job]]
workers = 2
model = "softmax"
epochs = 1
batch = 300
reliability = "retransmit"

[[job]]
first_host = 3
workers = 1
model = "softmax"
epochs = 1
batch = 300
timeout_ms = 5000

[[impairment]]
model = "bernoulli"
rate = 0.05

[output]
baseline = false
"""

RING = """
[topology]
kind = "ring"
workers = 3

[switch]
target = "bmv2"
program = "tos_compress.p4"

[[job]]
aggregation = "ring"
reliability = "retransmit"
marked = true
bound = 10
push = "float32"
model = { name = "mlp", hidden = [20] }
epochs = 1
batch = 300

[[impairment]]
model = "bernoulli"
rate = 0.05

[output]
baseline = false
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(JOBS)
    return path


@real
def test_two_jobs_with_losses_replay_on_the_embedded_switch(experiment: Path) -> None:
    """The first one's workers are in two racks under two spines, which sum its slots in turn."""
    out = experiment.parent / "run"
    racks = ("topology.kind=leaf-spine", "topology.leaves=3")
    summary = gradplane.run(experiment, out, net="mininet", settings=racks)
    assert summary.values["target"].startswith("bmv2 (simple_switch_grpc ")
    for switch in ("s1", "s2", "s4", "s5"):
        assert summary.values["switches"][switch]["events"]["0"]["completed sums"] > 0
    assert sum(sum(w.values()) for w in summary.values["losses_injected"].values()) > 0
    result = replay_run.replay(out)
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


@real
@pytest.mark.parametrize("switch", ["s1", "s3"])
def test_a_leaf_and_a_root_that_start_again_change_no_sum(tmp_path: Path, switch: str) -> None:
    """The links between their own ports stay for the process that takes the place."""
    settings = ["switch.target=bmv2", "output.baseline=false", "job.epochs=1"]
    restart = f'{{ model = "restart", switch = "{switch}", time_ms = 200 }}'
    settings += ["job.compute_ms=200", f"impairment=[{restart}]"]
    out = tmp_path / "run"
    gradplane.run("thc-racks", out, net="mininet", settings=settings)
    lines = (out / "arrivals.jsonl").read_text().splitlines()
    assert sum('"kind":"redo"' in line for line in lines) == 8  # workers
    result = replay_run.replay(out)
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


@real
@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH")
@pytest.mark.parametrize("text", [JOBS, RING], ids=["thc", "tos_compress"])
def test_programs_compiled_by_p4c(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "p4c.toml").write_text(text)
    settings = ("switch.compiler=p4c", "job.timeout_ms=5000", "job.reliability=retransmit")
    summary = gradplane.run(path, tmp_path / "run", net="mininet", settings=settings)
    assert summary.values["target"].endswith("compiled by p4c)")
    result = replay_run.replay(tmp_path / "run")
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


@real
@pytest.mark.parametrize("kind", ["ring", "leaf-spine"])
def test_switches_that_compress(tmp_path: Path, kind: str) -> None:
    """Packets of 364 values cross BMv2's cable twice before they are restored."""
    (path := tmp_path / "ring.toml").write_text(RING)
    compared = compare_targets.compare(
        path,
        ["embedded", "bmv2"],
        tmp_path / "both",
        net="mininet",
        settings=(f"topology.kind={kind}",),
    )
    assert compared.equal, compared.text()
    found = json.loads((tmp_path / "both" / "bmv2" / "summary.json").read_text())
    counters = [switch["compression"] for switch in found["switches"].values()]
    assert sum(c["compressed"]["packets"] for c in counters) > 0
    assert {c["malformed"] for c in counters} == {0}
    result = replay_run.replay(tmp_path / "both" / "bmv2")
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


@real
def test_embedded_and_bmv2_are_equal(experiment: Path) -> None:
    settings = ("job.timeout_ms=5000", "job.reliability=retransmit")
    out = experiment.parent / "both"
    compared = compare_targets.compare(
        experiment, ["embedded", "bmv2"], out, net="mininet", settings=settings
    )
    assert compared.equal, compared.text()
    assert compared.text().count("rounds a second") == 2


@real
@pytest.mark.parametrize(("push", "sum_bits"), [("signsgd", 8), ("terngrad", 16), ("thc", 16)])
def test_results_that_are_much_longer_than_a_workers_packet(
    experiment: Path, push: str, sum_bits: int
) -> None:
    """BMv2 gives a packet room for 512 bytes more; these come back through a cable."""
    settings = (f"job.push={push}", f"job.sum_bits={sum_bits}", "job.timeout_ms=5000")
    settings += ("job.reliability=retransmit", "job.batch=700")
    out = experiment.parent / "both"
    compared = compare_targets.compare(
        experiment, ["embedded", "bmv2"], out, net="mininet", settings=settings
    )
    assert compared.equal, compared.text()


def test_the_simulated_network_is_refused(experiment: Path) -> None:
    with pytest.raises(ExperimentError) as error:
        gradplane.run(experiment, experiment.parent / "run", net="sim")
    assert 'target = "bmv2" cannot run on sim: use --net mininet' in str(error.value)


def test_one_target_is_nothing_to_compare(experiment: Path) -> None:
    with pytest.raises(ExperimentError) as error:
        compare_targets.compare(experiment, ["bmv2"], experiment.parent / "out")
    assert str(error.value) == "bmv2: name two targets or more of bmv2, embedded, tna, tofino"
