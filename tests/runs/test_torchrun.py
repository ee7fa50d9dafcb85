"""`gradplane torchrun` in real namespaces: scripts as users have them, and what they leave."""

import json
import re
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gradplane.aggregations.aggregation import ReplayError
from gradplane.experiment.loading import ExperimentError
from gradplane.pages.report import page
from gradplane.runs import isolation
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.replayer import replay_run, replay_script
from gradplane.runs.torchrun import RankError, _check_statuses, torchrun

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
    assert [line["training_round"] for line in rounds] == list(range(92))
    drops = sum(row["kind"] == "verdict" for log in logs for row in log)
    assert sum(values["losses_injected"]["drop"].values()) == drops
    assert re.search(rf"losses injected +drop {drops} ", done.stdout)
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
    assert "The network reduced nothing" in page.write([done.folder]).read_text()
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
    with pytest.raises(FolderError, match="run: its ranks reduced nothing together"):
        replay_run.replay(out)


def test_an_abort_is_explained():
    task = SimpleNamespace(ranks=[SimpleNamespace(name="h1"), SimpleNamespace(name="h2")])
    text = r"^rank 1 \(host h2\) ended with signal 6; .* torch\.distributed\.destroy_process_gr"
    with pytest.raises(RankError, match=text):
        _check_statuses(task, [None, -signal.SIGABRT])


REDUCES = """
import os
from pathlib import Path

import numpy as np

from gradplane.hosts.config import HostConfig
from gradplane.hosts.reducer import Reducer

path = Path(os.environ["GRADPLANE_NETWORK"], os.environ["GRADPLANE_HOST"] + ".json")
with Reducer(HostConfig.from_json(path.read_text())) as reducer:
    random = np.random.default_rng(reducer.rank)
    for step in range(4):
        reducer.begin_round()
        large = random.standard_normal(3000).astype(np.float32)
        small = random.standard_normal(500).astype(np.float16).astype(np.float32)
        flying = reducer.start(large, 0), reducer.start(small, 1)
        for each in flying:
            each.result()
        reducer.start(large[:100], None, scattered=step % 2 == 1).result()
"""


@pytest.fixture
def reducing(tmp_path):
    script = tmp_path / "reducing.py"
    script.write_text(REDUCES)
    return script


LOSSY = ["job.reliability=lossy", "job.timeout_ms=300", "impairment.0.rate=0.1"]
SERVER = ["job.aggregation=ps", "job.push=threelc", "job.pull=threelc", "job.quorum=1"]


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """Return a function that runs the reduces with some settings, once, and returns its folder,
    which nobody changes."""

    @cache
    def run(*settings):
        folder = tmp_path_factory.mktemp("exchanged")
        (folder / "lossy.toml").write_text(EXPERIMENT)
        (folder / "reducing.py").write_text(REDUCES)
        files = folder / "lossy.toml", folder / "reducing.py"
        torchrun(*files, out=folder / "run", settings=settings)
        return folder / "run"

    return run


@pytest.mark.parametrize("settings", [LOSSY, SERVER], ids=["switch", "server"])
def test_exchanges_replay(exchanged, tmp_path, settings):
    """Several in flight, with losses, and reduce-scatters; error feedback goes on from round to
    round."""
    out = tmp_path / "run"
    shutil.copytree(exchanged(*settings), out)
    found = replay_run.replay(out)
    assert found.text() == "equal: 12 reduces of each rank in 4 rounds, every code, sum and mean"

    log = out / "hosts" / "h2.jsonl"
    lines = rows(log)
    (changed,) = [line for line in lines if line["kind"] == "reduce" and line["ticket"] == 7]
    changed["sums"] = "0" * 16
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = replay_run.replay(out)
    assert (found.reduces, found.equal) == (7, False)
    assert found.text().splitlines()[1].startswith("first difference: job 0, round 2, ")
    assert "worker 1: sums " in found.text()


ORDERS = """
import os
from pathlib import Path

import numpy as np

from gradplane.hosts.config import HostConfig
from gradplane.hosts.reducer import Reducer

path = Path(os.environ["GRADPLANE_NETWORK"], os.environ["GRADPLANE_HOST"] + ".json")
with Reducer(HostConfig.from_json(path.read_text())) as reducer:
    x = np.float32([1e8, 1, -1e8, 1])[reducer.rank]
    for scattered in (False, True):
        for n in (4, 400, 4000):
            found = reducer.start(np.full(n, x), None, None, scattered).result().sum
            part = n // 4
            own = found[reducer.rank * part :][:part] if scattered else found
            assert set(own.tolist()) == {1.0}, (n, scattered, set(own.tolist()))
"""


def test_a_rings_sums_are_in_the_order_of_the_ranks(experiment, tmp_path):
    """The order holds with losses and in the replay; the experiment may ask for another."""
    script = tmp_path / "orders.py"
    script.write_text(ORDERS)
    settings = [*RING, "topology.workers=4"]
    done = torchrun(experiment, script, out=tmp_path / "run", settings=settings)
    assert (done.values["reduces"], done.values["losses_injected"] != {}) == (6, True)
    assert 'sum_order = "workers"' in (done.folder / "experiment.toml").read_text()
    assert replay_run.replay(done.folder).equal
    with pytest.raises(RankError):
        torchrun(
            experiment,
            script,
            out=tmp_path / "rotated",
            settings=[*settings, "job.sum_order=rotated"],
        )


def test_programs_join_from_the_prompt(experiment, reducing, tmp_path):
    """The hosts' shells have the two variables; what the programs exchange replays."""
    out = tmp_path / "run"
    program = f"{sys.executable} {reducing}"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gradplane",
            "torchrun",
            "--out",
            str(out),
            "--cli",
            str(experiment),
        ],
        input=f"h1 {program} &\nh2 {program}\nexit\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((out / "torchrun.json").read_text())["reduces"] == 12
    assert "programs from the prompt" in (out / "report.html").read_text()
    assert replay_run.replay(out).equal
    with pytest.raises(FolderError, match="its programs were started from the prompt"):
        replay_run.replay(out, ["job.quorum=1"])


def test_gradients_are_kept_up_to_a_limit(experiment, reducing, tmp_path):
    """And those of half precision take two bytes a value."""
    out = tmp_path / "run"
    torchrun(experiment, reducing, out=out, settings=[*RING, "output.gradients_mb=0.056"])
    assert (out / "hosts" / "h1.gradients").stat().st_size == 2 * (4 * 3100 + 2 * 500)
    assert replay_run.replay(out).text().splitlines() == [
        "equal: 6 reduces of each rank in 2 rounds, every code, sum and mean",
        "6 later reduces cannot be replayed: their gradients were not kept (output.gradients_mb)",
    ]
    with (out / "hosts" / "h2.gradients").open("r+b") as kept:
        kept.write(b"\1\2")
    assert "worker 1: stored gradient " in replay_run.replay(out).text()


def test_recorded_losses_apply_to_a_changed_experiment(exchanged, tmp_path):
    """First attempts of workers are sent in any case; later ones depend on the timers."""
    out, again = exchanged(*LOSSY), tmp_path / "again"
    replay_run.replay(out, ["job.error_feedback=false"], out=again)
    losses = [
        {(line["slot"], line["use"], line["attempt"], line["link"], line["direction"])
         for name in ("h1", "h2") for line in rows(folder / "hosts" / f"{name}.jsonl")
         if line["kind"] == "verdict" and line["attempt"] == 0
         and line["type"] in ("norm", "indices")}
        for folder in (out, again)
    ]  # fmt: skip
    assert losses[0] == losses[1] != set()
    assert replay_run.replay(again).equal


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


RESTARTED = """
import os, pickle, signal, sys
from pathlib import Path

import numpy as np

from gradplane.hosts import HostConfig, Reducer

path = Path(os.environ["GRADPLANE_NETWORK"], os.environ["GRADPLANE_HOST"] + ".json")
folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
life, saved = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), folder / f"saved-{rank}"
with Reducer(HostConfig.from_json(path.read_text()), timeout=20) as reducer:
    step, means = 0, []
    if saved.exists():
        step, means, state = pickle.loads(saved.read_bytes())
        reducer.load_state_dict(state)
    while step < 6:
        if rank == 1 and (life, step) in ((0, 3), (1, 5)):
            os.kill(os.getpid(), signal.SIGKILL)
        x = np.random.default_rng([rank, step]).normal(size=3000).astype(np.float32)
        means.append(reducer.reduce(x))
        step += 1
        if step % 2 == 0:
            saved.write_bytes(pickle.dumps((step, means, reducer.state_dict())))
np.save(folder / f"means-{rank}.npy", means)
"""


def restarted(experiment, folder, *settings, script=RESTARTED, **keys):
    folder.mkdir()
    file = folder / "restarted.py"
    file.write_text(script)
    settings = ("impairment=[]", *settings)
    return torchrun(experiment, file, [str(folder)], out=folder / "run", settings=settings, **keys)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return a function that returns the ranks' means where none of them ends, [2, 6, 3000]."""

    @cache
    def run(*settings):
        folder = tmp_path_factory.mktemp("undisturbed")
        (folder / "lossy.toml").write_text(EXPERIMENT)
        script = RESTARTED.replace("life, saved = ", "life, saved = 9 +")
        restarted(folder / "lossy.toml", folder / "whole", *settings, script=script)
        return [np.load(folder / "whole" / f"means-{rank}.npy") for rank in range(2)]

    return run


@pytest.mark.parametrize(
    ("where", "how", "epochs"),
    [
        ((), (), [16, 32]),
        (("topology.kind=leaf-spine", "topology.leaves=2"), (), [16, 32]),
        ((), ("job.aggregation=ps", "job.push=threelc"), [1, 1]),
    ],
)
def test_ranks_that_start_again_go_on_bit_for_bit(
    experiment, undisturbed, tmp_path, capfd, where, how, epochs
):
    done = restarted(experiment, tmp_path / "restarted", *where, *how, max_restarts=2)
    assert [line["epoch"] for line in done.values["restarts"]] == epochs
    lines = [(line["rank"], line["reduces"], line["lost"]) for line in done.values["restarts"]]
    assert lines == [(1, 3, 1), (1, 5, 1)]
    said = "rank 1 ended with signal 9 after 3 reduces: all ranks start again (1 of 2)"
    assert said in capfd.readouterr().err
    assert replay_script.replay(done.folder / "life-0").equal
    for rank, whole in enumerate(undisturbed(*how)):  # by one switch or three: the same sums
        assert (np.load(tmp_path / "restarted" / f"means-{rank}.npy") == whole).all()
    with pytest.raises(ReplayError, match="its rank went on with a state that it loaded"):
        replay_script.replay(done.folder)


def test_restarts_end(experiment, tmp_path):
    with pytest.raises(RankError, match=r"^rank 1 \(host h2\) ended with signal 9; the others"):
        restarted(experiment, tmp_path / "one", max_restarts=1)
    assert (tmp_path / "one" / "run" / "life-0" / "hosts" / "h1.jsonl").exists()
