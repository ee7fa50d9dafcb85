"""Runs on machines that exist: docs/cluster.md's script and experiment, as they stand there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cluster_cases
import pytest

from gradplane.runs import isolation
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

TEXT = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
FILES = dict(re.findall(r"^```\w+ ([\w.-]+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
LOGS = ("scheduler.txt", "s.txt", "m1.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run among the machines that the page's script makes."""
    possible, reason = isolation.can_isolate()
    if not possible:
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("cluster")
    for name, text in FILES.items():
        (path / name).write_text(text)
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    words = ["sh", "machines.sh", sys.executable, cluster_cases.__file__, str(path)]
    done = subprocess.run(
        isolation.command(words, keep=[path]),
        cwd=path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    logs = "".join((path / name).read_text() for name in LOGS)
    assert done.returncode == 0, done.stdout + done.stderr + logs
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    return json.loads((folder / "found.json").read_text())


def summary(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())


def test_weights_are_those_of_the_simulated_network(folder: Path) -> None:
    run(folder / "lab.toml", folder / "sim", net="sim")
    cluster, sim = summary(folder / "cluster"), summary(folder / "sim")
    assert cluster["network"] == "cluster"
    assert cluster["jobs"][0]["weights"] == sim["jobs"][0]["weights"]
    assert cluster["baseline"]["jobs"][0]["weights"] == sim["baseline"]["jobs"][0]["weights"]


def test_a_replay_is_equal(folder: Path) -> None:
    assert replay(folder / "cluster").equal


def test_the_clocks_of_all_machines_were_compared(folder: Path) -> None:
    clocks = summary(folder / "cluster")["clocks"]
    assert [one["machine"] for one in clocks.values()] == ["m1", "m2", "m3"]
    for one in clocks.values():  # one kernel's
        assert abs(one["ahead_ns"]) <= one["error_ns"]
