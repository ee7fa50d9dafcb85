"""Workers in groups: rings of rings and trees of servers, on both networks, replayed."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradplane.experiment.loading import Experiment, load, load_deployment
from gradplane.hosts.digest import digest
from gradplane.hosts.training.train import Reduce, train
from gradplane.pages.report.page import write as write_report
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.runs.replayer.replay_run import ReplayResult, replay

MININET, WHY_NOT = run_experiment.mininet_possible()
RACKS = {"kind": "leaf-spine", "leaves": 2, "spines": 1, "workers": 4, "rate": "100Mbit"}
STAR = {"kind": "star", "workers": 4, "rate": "100Mbit"}
CARDS = RACKS | {"nics": True}
RING = {"aggregation": "ring", "push": "float32", "reliability": "retransmit"}
TREE = {"aggregation": "ps", "push": "float32"}
RELIABLE = {"reliability": "retransmit"}
RINGS = {"rings": True}
MARKED = {"marked": True, "bound": 10}
THREE_LC = {"push": "threelc", "pull": "threelc"}
LOSSES = (
    {"model": "bernoulli", "rate": 0.02},
    {"model": "straggler", "count": 1, "delay_ms": 4.0},
)


def experiment(topology: dict[str, Any], job: dict[str, Any], *impairments: Any) -> Experiment:
    common = {"groups": 2, "model": {"name": "mlp", "hidden": [16]}, "epochs": 1, "batch": 60}
    values = {
        "name": "groups",
        "topology": topology,
        "switch": {"program": "tos_compress.p4"},
        "job": [common | job],
        "impairment": impairments,
        "output": {"baseline": False, "report": False},
    }
    return load(Experiment.model_validate(values))


CASES = {
    "ring on a star": (STAR, RING),
    "ring over racks": (RACKS, RING | {"groups": "racks"}),
    "ring over racks, marked": (CARDS, RING | MARKED | {"groups": "racks"}),
    "ring, PowerSGD": (STAR, RING | {"push": "powersgd"}),
    "ring, three levels, marked": (
        RACKS | {"leaves": 4, "nics": True, "workers": 8},
        RING | MARKED | {"groups": ["racks", 2]},
    ),
    "rings under a tree, marked": (CARDS, TREE | RELIABLE | MARKED | RINGS),
    "rings under a tree, work takes time": (
        STAR | {"workers": 6},
        TREE | RELIABLE | THREE_LC | RINGS | {"groups": [3, 2], "codec_ns_per_value": 20.0},
    ),
    "rings under a tree, PowerSGD": (STAR, TREE | RELIABLE | RINGS | {"push": "powersgd"}),
    "tree of three levels, quorums": (
        STAR | {"workers": 8},
        TREE | THREE_LC | {"groups": [4, 2], "quorums": [1, 2, 1]},
    ),
    "tree of three levels, sums": (
        RACKS | {"leaves": 4, "workers": 8},
        TREE | {"push": "thc", "pull": "sums", "groups": ["racks", 2]},
    ),
    "tree on a star": (STAR, TREE | {"groups": [[0, 2], [1, 3]]}),
    "tree over racks, 3LC": (RACKS, TREE | THREE_LC | {"groups": "racks"}),
    "tree over racks, marked": (CARDS, TREE | MARKED | {"groups": "racks"}),
    "tree, quorums": (RACKS, TREE | THREE_LC | {"groups": "racks", "quorums": [1, 2]}),
    "tree, THC": (STAR, TREE | {"push": "thc", "quorums": [2, 1]}),
    "tree, sums": (STAR, TREE | {"push": "thc", "pull": "sums"}),
    "tree, local steps": (STAR, TREE | {"push": "threelc", "local_steps": 2}),
    "tree, the server's steps": (STAR, TREE | THREE_LC | {"pull_deltas": True}),
    "tree, work takes time": (STAR, TREE | THREE_LC | {"codec_ns_per_value": 20.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_with_losses_and_stragglers_replays_bit_for_bit(case: str, tmp_path: Path) -> None:
    topology, job = CASES[case]
    summary = run_experiment.run(experiment(topology, job, *LOSSES), tmp_path / "run", net="sim")
    if "quorums" not in job:
        assert len(set(summary.weights["groups"].values())) == 1
    result = replay(tmp_path / "run")
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()
    assert result.weights == summary.weights


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.skipif(not MININET, reason=WHY_NOT or "-"))
        for case in (
            *("ring over racks, marked", "tree over racks, 3LC", "tree over racks, marked"),
            "rings under a tree, marked",
        )
    ],
)
def test_both_networks_have_the_same_weights(case: str, tmp_path: Path) -> None:
    topology, job = CASES[case]
    loss = {"model": "bernoulli", "rate": 0.02}
    found = [
        run_experiment.run(experiment(topology, job, loss), tmp_path / net, net=net).weights
        for net in ("sim", "mininet")
    ]
    assert found[0] == found[1]
    assert replay(tmp_path / "mininet").equal


def _vectors(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).normal(0, 1, n).astype(np.float32)


@pytest.mark.parametrize("scheme", ["ring", "rings", "ps"])
def test_the_recorded_sum_is_that_of_numpy(scheme: str, tmp_path: Path) -> None:
    """Workers rotate one vector by their numbers; the docs say in which order they are added."""
    x = _vectors(1001)
    np.save(tmp_path / "x.npy", x)
    job = {"ring": RING, "ps": TREE, "rings": TREE | RELIABLE | RINGS}[scheme]
    more = {
        "model": {"name": "synthetic", "file": str(tmp_path / "x.npy")},
        "data": {"name": "blank", "rows": 4},
        "batch": 1,
    }
    run_experiment.run(experiment(STAR, job | more), tmp_path / "run", net="sim")
    (line,) = run_folder.read_lines(tmp_path / "run" / run_folder.METRICS)
    config = load_deployment(experiment(STAR, job | more)).jobs[0].config
    xs = []
    for worker in range(4):
        steps = train(config, worker, 0)
        step = next(steps)
        while not isinstance(step, Reduce):
            step = steps.send(None)
        xs.append(step.vector)
    assert [w["gradient"] for w in line["workers"]] == [digest(x) for x in xs]
    if scheme != "ring":
        wanted = ((xs[0] + xs[1]) + (xs[2] + xs[3])) / np.float32(4)
        expected = digest(wanted.tobytes())
    else:
        first, second = _ring(xs[0], xs[1]), _ring(xs[2], xs[3])
        expected = digest(_ring(first, second))
    assert {w["sums"] for w in line["workers"]} == {expected}


def _ring(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the sum round a ring of two: of two values, the order makes no difference."""
    return a + b


def test_a_report_has_a_row_for_each_group(tmp_path: Path) -> None:
    topology, job = CASES["tree over racks, 3LC"]
    run = run_experiment.run(experiment(topology, job, *LOSSES), tmp_path / "run", net="sim")
    page = html.unescape(write_report([run.folder]).read_text())
    racks = page.partition("<h2>Racks</h2>")[2].partition("</section>")[0]
    cells = re.findall(r"<td[^>]*>\s*([^<]*?)\s*</td>", racks)
    assert cells[1:3] == ["s1", "2"] and cells[8:10] == ["s2", "2"]
    assert "packets of its workers' streams" in racks


@pytest.mark.parametrize("name", ["thc-racks", "thc-fat-tree", "shared-slots"])
def test_network_cards_change_no_sum_of_switches(name: str, tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "experiments" / f"{name}.toml"
    keys = ["job.epochs=1", "output.baseline=false", "output.report=false"]
    found = [
        run_experiment.run(
            file, tmp_path / nics, net="sim", settings=[*keys, f"topology.nics={nics}"]
        )
        for nics in ("false", "true")
    ]
    assert found[0].weights == found[1].weights
    assert replay(found[1].folder).equal
