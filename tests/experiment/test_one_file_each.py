"""An aggregation scheme and a target are one file each: copies of the package with one more run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane.runs.run_experiment import mininet_possible

SOURCE = Path(__file__).parents[2] / "src" / "gradplane"
MININET, WHY_NOT = mininet_possible()

SCHEME = '''
"""Each worker keeps its gradient: nothing is exchanged but parameters, after each epoch."""

import numpy as np

from gradplane.aggregations.aggregation import Aggregation, reference
from gradplane.hosts.digest import digest
from gradplane.hosts.drivers.training_host import TrainingHost
from gradplane.hosts.protocols.actions import Deliver
from gradplane.hosts.protocols.results import Reduced


def alone(vector):
    return Reduced(vector, np.ones(1, np.int64), 0, digest(vector), "", "")


class Hermit(TrainingHost):
    def connect(self):
        self.reduce_port = self.stream_port

    def reduce(self, step):
        self.machines.perform([Deliver(step.round, alone(step.vector))])


class Alone(Aggregation):
    worker_role = reference(Hermit)
    no_pull = "a hermit gets no answers"

    def check(self, placed, others):
        yield from super().check(placed, others)
        if not placed.job.sync:
            yield "sync", "sync = false: workers would never meet"

    def replay(self, replayed):
        def reduce():
            for worker in replayed.workers:
                worker.take(Deliver(worker.step.round, alone(worker.step.vector)))

        return reduce
'''

TARGET = '''
"""The embedded switch with a device id of its own, few updates at a time, on a port it is given."""

from pathlib import Path

from gradplane.controller.targets.embedded import Embedded


class Toy(Embedded):
    device_id = 7
    batch = 3
    announces = False

    def missing(self):
        return "apt-get install toys" if Path("no-toys").exists() else None
'''

EXPERIMENT = """
[topology]
workers = 3

[[job]]
model = "softmax"
epochs = 1
batch = 150

[output]
baseline = false
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of gradplane in it that has the scheme and the target."""
    folder: Path = tmp_path_factory.mktemp("package")
    copy = folder / "gradplane"
    shutil.copytree(SOURCE, copy)  # with the cached kernels, which take long to compile
    (copy / "aggregations" / "alone.py").write_text(SCHEME)
    (copy / "controller" / "targets" / "toy.py").write_text(TARGET)
    (folder / "e.toml").write_text(EXPERIMENT)
    return folder


def gradplane(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "80"}
    command = [sys.executable, "-m", "gradplane", *arguments]
    return subprocess.run(command, cwd=package, env=env, capture_output=True, text=True)


def run(package: Path, out: str, *settings: str, net: str = "sim") -> str:
    words = [word for setting in settings for word in ("--set", setting)]
    done = gradplane(package, "run", "e.toml", "--net", net, "--out", out, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(package: Path, *settings: str) -> str:
    words = [word for setting in settings for word in ("--set", setting)]
    done = gradplane(package, "run", "e.toml", "--net", "sim", "--out", "refused", *words)
    assert done.returncode == 1 and not (package / "refused").exists()
    return done.stderr


def test_a_new_scheme_trains_and_replays(package: Path) -> None:
    output = run(package, "alone", "job.aggregation=alone", "job.sync=true")
    assert "test accuracy" in output
    replayed = gradplane(package, "replay", "alone")
    assert replayed.stdout.startswith("equal: 3 rounds, every gradient, code, sum and weight\n")


def test_a_new_scheme_says_what_cannot_work(package: Path) -> None:
    assert refused(package, "job.aggregation=alone") == (
        "gradplane: --set job.aggregation=alone: sync = false: workers would never meet\n"
    )
    assert refused(package, "job.aggregation=alon") == (
        'gradplane: --set job.aggregation=alon: job.0.aggregation = "alon": expected "alone",'
        ' "optireduce", "plan", "ps", "ring", "shared" or "switch", or your own: "module:object",'
        ' or "file.py" (docs/own-parts.md)\n'
    )


def test_a_new_target_runs_the_program(package: Path) -> None:
    weights = run(package, "toy", "switch.target=toy").splitlines()
    assert "report: toy/report.html" in weights
    replayed = gradplane(package, "replay", "toy")
    assert replayed.stdout.startswith("equal: 3 rounds, every gradient, code, sum and weight\n")


@pytest.mark.skipif(not MININET, reason=WHY_NOT)
def test_a_new_target_is_started_in_mininet(package: Path) -> None:
    run(package, "toy-mininet", "switch.target=toy", "job.timeout_ms=20000", net="mininet")


def test_a_target_that_is_not_installed_is_refused_before_a_folder_is_made(package: Path) -> None:
    (package / "no-toys").touch()
    assert refused(package, "switch.target=toy") == (
        'gradplane: target = "toy" cannot be used here: apt-get install toys\n'
    )
    assert refused(package, "switch.target=absent") == (
        'gradplane: --set switch.target=absent: no target "absent": known: bmv2, embedded, tna,'
        ' tofino, toy, or your own: "module:object", or "file.py" (docs/own-parts.md)\n'
    )
    (package / "no-toys").unlink()
