"""`gradplane torchrun` in real namespaces: scripts as users have them, and what they leave."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError
from gradplane.records.run_folder import FolderError
from gradplane.replayer import replay_run
from gradplane.report import page
from gradplane.runner import isolation
from gradplane.runner.torchrun import RankError, torchrun

pytestmark = pytest.mark.skipif(
    not (isolation.can_isolate()[0] and shutil.which("mnexec")), reason="Mininet needs namespaces"
)
ROOT = Path(__file__).parents[2]
EXPERIMENT = """
[topology]
kind = "star"
workers = 2

[[job]]
reliability = "retransmit"
timeout_ms = 500

[[impairment]]
model = "bernoulli"
rate = 0.05
"""
RING = ["job.aggregation=ring", "job.push=float32"]
TWO_JOBS = """
[[job]]
workers = 2

[[job]]
first_host = 3
workers = 2
"""


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "lossy.toml"
    path.write_text(EXPERIMENT)
    return path


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_example_learns_through_a_switch_that_loses_packets(experiment, tmp_path):
    """As a user types it. Both hosts have the same sums, and each loss is in a log."""
    pytest.importorskip("torch", reason="needs PyTorch: pip install gradplane[torch]")
    out, script = tmp_path / "run", ROOT / "examples" / "digits_ddp.py"
    options = ["--out", str(out), str(experiment), str(script), "--epochs", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "gradplane", "torchrun", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    accuracies = [line for line in done.stdout.splitlines() if line.startswith("epoch ")]
    assert len(accuracies) == 4
    assert float(accuracies[-1].split()[-1].rstrip("%")) > 85
    values = json.loads((out / "torchrun.json").read_text())
    assert (values["ranks"], values["reduces"], values["missed"]) == (2, 92, 0)
    assert values["link_bytes"]["hosts"] > 92 * 2 * 2 * 2048
    logs = [rows(out / "hosts" / f"{name}.jsonl") for name in ("h1", "h2")]
    sums = [[row["sums"] for row in log if row["kind"] == "reduce"] for log in logs]
    assert sums[0] == sums[1] and len(set(sums[0])) > 80
    assert all(any(row["kind"] == "verdict" for row in log) for log in logs)
    rounds = rows(out / "metrics.jsonl")
    assert [line["round"] for line in rounds] == list(range(92))
    drops = sum(row["kind"] == "verdict" for log in logs for row in log)
    assert sum(sum(line["verdicts"].values()) for line in rounds) == drops
    assert "Time of each reduce" in (out / "report.html").read_text()


def test_the_readmes_script(experiment, tmp_path):
    """Each of its steps is a reduce."""
    pytest.importorskip("torch", reason="needs PyTorch: pip install gradplane[torch]")
    text = (ROOT / "README.md").read_text().partition("```python train.py\n")[2]
    script = tmp_path / "train.py"
    script.write_text(text.partition("```")[0])
    done = torchrun(experiment, script, out=tmp_path / "run", settings=RING)
    assert (done.values["reduces"], done.values["missed"]) == (100, 0)


SEEN = """
import os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "GRADPLANE_HOST", "USER_SETTING")
found = " ".join(os.environ.get(name, "") for name in names)
open(sys.argv[1] + os.environ["RANK"], "w").write(found)
if sys.argv[2:] == [os.environ["RANK"]]:
    sys.exit(3)
if sys.argv[2:]:
    import time
    time.sleep(600)
"""


def test_a_rank_has_torchruns_environment(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("USER_SETTING", "mine")
    script = tmp_path / "seen.py"
    script.write_text(SEEN)
    server = ["job.aggregation=ps", "job.push=float32"]
    done = torchrun(
        experiment, script, [str(tmp_path / "seen-")], out=tmp_path / "run", settings=server
    )
    assert done.values["reduces"] == 0
    assert "The network reduced nothing" in (tmp_path / "run" / "report.html").read_text()
    assert (tmp_path / "seen-0").read_text() == "0 2 0 10.0.0.1 h1 mine"
    assert (tmp_path / "seen-1").read_text() == "1 2 0 10.0.0.1 h2 mine"


def test_a_rank_that_fails_ends_the_others(experiment, tmp_path):
    script, out = tmp_path / "seen.py", tmp_path / "run"
    script.write_text(SEEN)
    text = r"^rank 1 \(host h2\) ended with status 3; the others are ended$"
    with pytest.raises(RankError, match=text):
        torchrun(experiment, script, [str(tmp_path / "seen-"), "1"], out=out)
    assert "rank 1 (host h2)" in (out / "failure.txt").read_text()
    assert "Not finished: RankError: rank 1 (host h2)" in page.write([out]).read_text()
    with pytest.raises(
        FolderError, match=r"run: a run of gradplane torchrun: .* cannot be replayed"
    ):
        replay_run.replay(out)


def test_what_cannot_run_starts_nothing(experiment, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ExperimentError, match=r"^there is no script .*none\.py$"):
        torchrun(experiment, tmp_path / "none.py", out=out)
    script = tmp_path / "seen.py"
    script.write_text(SEEN)
    experiment.write_text(TWO_JOBS)
    with pytest.raises(ExperimentError, match="^2 jobs: torchrun starts one script"):
        torchrun(experiment, script, out=out)
    assert not out.exists()
