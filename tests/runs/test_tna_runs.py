"""Experiments with target = "tna": the programs for Tofino give what the others give."""

import json
from pathlib import Path
from typing import Any

import pytest

from gradplane.controller.controller_errors import ControllerError
from gradplane.experiment.loading import ExperimentError
from gradplane.runs import run_experiment
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

ROOT = Path(__file__).parents[2]
MININET, WHY_NOT = run_experiment.mininet_possible()
# Port 6 of a Tofino 2 is no port for a worker. Losses, so that packets are sent twice.
EXPERIMENT = """
[topology]
workers = 7
[switch]
target = "{target}"
[[job]]
epochs = 1
batch = 100
reliability = "retransmit"
timeout_ms = 1
quorum = 6
[[impairment]]
link = "*"
model = "bernoulli"
rate = 0.02
[output]
baseline = false
"""


def rounds(folder: Path) -> list[list[Any]]:
    """Return the digests of each round's gradients, codes, sums and weights."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    keys = ("gradient", "codes", "sums", "weights")
    return [[[worker[key] for key in keys] for worker in line["workers"]] for line in lines]


def experiment(folder: Path, target: str) -> Path:
    path = folder / f"{target}.toml"
    path.write_text(EXPERIMENT.format(target=target))
    return path


def test_the_same_sums_as_thc_p4(tmp_path: Path) -> None:
    found = {}
    for target in ("embedded", "tna"):
        path = experiment(tmp_path, target)
        calm, _, rest = path.read_text().partition("[[impairment]]")
        path.write_text(calm.replace("quorum = 6", "") + rest[rest.index("[output]") :])
        summary = run(path, tmp_path / target, net="sim")
        found[target] = rounds(tmp_path / target), summary.values["switches"]["s1"]["events"]
    assert found["tna"] == found["embedded"]


def test_a_run_with_losses_replays(tmp_path: Path) -> None:
    run(experiment(tmp_path, "tna"), tmp_path / "run", net="sim")
    assert replay(tmp_path / "run").equal


RING = """
[topology]
kind = "ring"
workers = 3
rate = "1Gbit"
fabric_rate = "1Gbit"
[switch]
program = "tos_compress.p4"
target = "{target}"
[[job]]
aggregation = "ring"
reliability = "retransmit"
marked = true
bound = 10
push = "float32"
epochs = 1
batch = 150
[output]
report = false
baseline = false
"""
LOSS = """
[[impairment]]
model = "bernoulli"
rate = 0.05
"""


def test_a_ring_compresses_as_with_tos_compress_p4(tmp_path: Path) -> None:
    """Short packets overtake long ones, which are then sent again: more are compressed."""
    found = {}
    for target in ("embedded", "tna"):
        (tmp_path / f"{target}.toml").write_text(RING.format(target=target))
        summary = run(tmp_path / f"{target}.toml", tmp_path / target, net="sim")
        found[target] = rounds(tmp_path / target)
        statistics = [switch["compression"] for switch in summary.values["switches"].values()]
        after = sum(switch["compressed"]["bytes_after"] for switch in statistics)
        assert 0 < after == sum(switch["decompressed"]["bytes"] for switch in statistics)
        assert not any(switch["malformed"] or switch["passed"] for switch in statistics)
    assert found["tna"] == found["embedded"]


NETS = ["sim", pytest.param("mininet", marks=pytest.mark.skipif(not MININET, reason=str(WHY_NOT)))]


@pytest.mark.parametrize("net", NETS)
def test_a_ring_with_losses_replays(net: str, tmp_path: Path) -> None:
    weights = []
    for target in ("embedded", "tna"):
        (tmp_path / f"{target}.toml").write_text(RING.format(target=target) + LOSS)
        chosen = net if target == "tna" else "sim"
        run(tmp_path / f"{target}.toml", tmp_path / target, net=chosen)
        weights.append(rounds(tmp_path / target))
    assert weights[0] == weights[1]
    assert replay(tmp_path / "tna").equal


def test_a_program_for_another_architecture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.p4").write_text((ROOT / "p4" / "thc.p4").read_text())
    path = experiment(tmp_path, "tna")
    path.write_text(path.read_text().replace("[[job]]", 'program = "mine.p4"\n[[job]]', 1))
    with pytest.raises((ControllerError, ExperimentError), match="is written for v1model"):
        run(path, tmp_path / "run", net="sim")
