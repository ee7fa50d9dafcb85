"""CONTRIBUTING.md's topology and scheme work as they stand: a file each, and an experiment."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
DUMBBELL, HALF = re.findall(r"^```python(?: scheme)?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)

USE = """
from gradplane import topologies

assert "dumbbell" in topologies.kinds()
topology = topologies.build("dumbbell", workers=5, bottleneck="10Mbit")
assert topology.host_ports("s1") == {1: "h1", 2: "h2", 3: "h3"}
assert topology.routes("s2") == {"h1": 4, "h2": 4, "h3": 4, "h4": 1, "h5": 2}
assert [link.rate for link in topology.fabric_links()] == [10_000_000]
"""

EXPERIMENT = """
[topology]
kind = "dumbbell"
workers = 3
bottleneck = "1Gbit"

[switch]
engine = "interpreter"

[[job]]
aggregation = "ps"
epochs = 1
batch = 150

[output]
baseline = false
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of gradplane, the document's topology and scheme added."""
    folder: Path = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "src" / "gradplane", folder / "gradplane")
    (folder / "gradplane" / "topologies" / "dumbbell.py").write_text(DUMBBELL)
    (folder / "gradplane" / "aggregations" / "half.py").write_text(HALF)
    (folder / "dumbbell.toml").write_text(EXPERIMENT)
    return folder


def _python(package: Path, *arguments: str) -> str:
    env = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_new_topology_is_found(package: Path) -> None:
    _python(package, "-c", USE)


def test_an_experiment_runs_on_it(package: Path) -> None:
    arguments = ("run", "dumbbell.toml", "--net", "sim", "--set", "job.aggregation=half")
    output = _python(package, "-m", "gradplane", *arguments)
    assert "test accuracy" in output and "report: " in output
    resolved = next((package / "runs").glob("*/experiment.toml")).read_text()
    assert 'pull = { name = "float16" }' in resolved
