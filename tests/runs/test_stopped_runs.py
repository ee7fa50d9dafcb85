"""Runs that were stopped: what was recorded is replayed and shown, `resume` finishes the rest."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gradplane
from gradplane.pages.report import page
from gradplane.runs import progress, run_experiment
from gradplane.runs.records import run_folder
from gradplane.runs.records.recorder import Recorder
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay
from gradplane.runs.run_experiment import resume, run

EXPERIMENT = """
[topology]
workers = 3
[[job]]
model = { name = "mlp", hidden = [20] }
batch = 150
epochs = 2
quorum = 2
timeout_ms = 20
sync = true
[[impairment]]
model = "bernoulli"
rate = 0.1
"""
ROUNDS = 6


@pytest.fixture(scope="module")
def experiment_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def whole(experiment_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return run(experiment_file, tmp_path_factory.mktemp("whole") / "run", net="sim")


class Stop(progress.Silent):
    """Raises after the fourth round."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, recorder: Recorder, job: int) -> None:
        if recorder.jobs[job].rounds == 4:
            raise self._error


def stopped(
    experiment: Path, folder: Path, where: str, error: BaseException | None = None
) -> BaseException:
    """Run until the fourth round of the "run" or the "baseline"; the error that came out."""
    error = error or KeyboardInterrupt()
    with pytest.MonkeyPatch.context() as patch:

        def show(console: object, title: str, rounds: list[int], every: bool) -> progress.Show:
            return Stop(error) if title == where else progress.Silent()

        patch.setattr(run_experiment, "show", show)
        with pytest.raises(type(error)) as caught:
            run(experiment, folder, net="sim")
    return caught.value


@pytest.fixture(scope="module")
def stopped_in(
    experiment_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a folder of a run that was interrupted in the "run" or in the "baseline"."""
    made: dict[str, Path] = {}

    def get(where: str) -> Path:
        if where not in made:
            made[where] = tmp_path_factory.mktemp("stopped") / where
            stopped(experiment_file, made[where], where)
        return made[where]

    return get


def test_an_interrupt_says_where_the_records_are(experiment_file: Path, tmp_path: Path) -> None:
    error = stopped(experiment_file, tmp_path / "run", "run")
    assert error.__notes__ == [
        f"{tmp_path}/run: 4 of 6 rounds are recorded\n"
        f"  gradplane report {tmp_path}/run    what was recorded, as a page\n"
        f"  gradplane replay {tmp_path}/run    the same, bit for bit\n"
        f"  gradplane run --resume {tmp_path}/run    run it anew, from the first round on"
    ]


def test_a_failure_says_so_too(experiment_file: Path, tmp_path: Path) -> None:
    error = stopped(experiment_file, tmp_path / "run", "baseline", RuntimeError("broken"))
    (note,) = error.__notes__
    assert note.startswith(f"{tmp_path}/run: 4 of 6 rounds of the baseline are recorded\n")
    assert RunData.read(tmp_path / "run").state == (
        "4 of 6 rounds of the baseline are recorded, then RuntimeError: broken"
    )


def test_a_baseline_is_not_added_to_digests_by_another_function(
    stopped_in: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(stopped_in("baseline"), tmp_path / "old"))
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["digests"]  # as in those of older versions
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FolderError) as caught:
        resume(folder)
    assert str(caught.value) == (
        f"{folder}: the digests of its training are made by SHA-256, as in older versions, and"
        " those of its baseline would be made by XXH3-64: run it again: gradplane run"
        f" {folder}/experiment.toml"
    )


def test_the_recorded_rounds_replay(stopped_in: Callable[[str], Path], whole: Summary) -> None:
    folder = stopped_in("run")
    result = replay(folder)
    assert isinstance(result, ReplayResult)
    first, weights, note = result.text().splitlines()
    assert first == "equal: 4 rounds, every gradient, code, sum and weight"
    assert weights.startswith("last recorded weights of small, ")
    assert note == (
        "Not finished: 4 of 6 rounds are recorded, then it was interrupted"
        f" (gradplane run --resume {folder} finishes it)."
    )
    lines = list(run_folder.read_lines(whole.folder / "metrics.jsonl"))
    recorded = {str(worker["worker"]): worker["weights"] for worker in lines[3]["workers"]}
    assert result.weights == {"small": recorded}


def test_a_run_without_its_baseline_replays_whole(
    stopped_in: Callable[[str], Path], whole: Summary
) -> None:
    result = replay(stopped_in("baseline"))
    assert isinstance(result, ReplayResult)
    assert (result.rounds, result.weights) == (ROUNDS, whole.weights)


@pytest.mark.parametrize("where", ["run", "baseline"])
def test_the_report_says_how_far_it_went(
    stopped_in: Callable[[str], Path], tmp_path: Path, where: str
) -> None:
    text = page.write([stopped_in(where)], tmp_path / "r.html").read_text()
    of_what = "" if where == "run" else " of the baseline"
    assert f"4 of 6 rounds{of_what} are recorded, then it was interrupted" in text


def test_a_stopped_run_replays_under_other_settings(
    stopped_in: Callable[[str], Path], tmp_path: Path
) -> None:
    changed = replay(
        stopped_in("run"), ["job.quorum=3", "output.baseline=false"], out=tmp_path / "other"
    )
    assert isinstance(changed, Summary)
    assert changed.values["rounds"] == ROUNDS


def kept(folder: Path) -> dict[str, bytes]:
    """Return the records of the training, as they are on disk."""
    names = ("metrics.jsonl", "arrivals.jsonl", "impairments.jsonl")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("where", ["run", "baseline"])
def test_resume_finishes_what_is_missing(
    stopped_in: Callable[[str], Path], whole: Summary, tmp_path: Path, where: str
) -> None:
    folder = Path(shutil.copytree(stopped_in(where), tmp_path / "run"))
    before = {name: (folder / name).stat().st_mtime_ns for name in kept(folder)}
    summary = resume(folder)
    assert kept(folder) == kept(whole.folder)
    assert summary.values == whole.values == json.loads((folder / "summary.json").read_text())
    assert not (folder / "failure.txt").exists()
    unchanged = {name: (folder / name).stat().st_mtime_ns for name in kept(folder)} == before
    assert unchanged == (where == "baseline")
    assert RunData.read(folder).state == "finished"
    with pytest.raises(FolderError) as caught:
        gradplane.resume(folder)
    assert str(caught.value) == f"{folder}: the run is finished, there is nothing to resume"


def test_resume_leaves_a_running_run_alone(
    stopped_in: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(stopped_in("run"), tmp_path / "run"))
    with run_folder.in_use(folder):
        assert RunData.read(folder).state == (
            "4 of 6 rounds are recorded, the run is still running"
        )
        with pytest.raises(FolderError) as caught:
            resume(folder)
    assert str(caught.value) == f"{folder}: the run is still running"
    assert kept(folder) == kept(stopped_in("run"))


def test_a_failed_start_leaves_nothing_that_blocks_the_next_one(
    experiment_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without records the folder goes; without a whole round it is taken again, and only then."""
    folder = tmp_path / "run"

    def fail(task: object) -> None:
        raise RuntimeError("broken")

    def fail_later(task: object) -> None:
        (folder / "arrivals.jsonl").write_text("{}\n")
        fail(task)

    monkeypatch.setattr(run_experiment, "_isolated", fail)
    with pytest.raises(RuntimeError):
        run(experiment_file, folder, net="sim")
    assert not folder.exists()
    monkeypatch.setattr(run_experiment, "_isolated", fail_later)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run(experiment_file, folder, net="sim")
    assert (folder / "failure.txt").read_text() == "RuntimeError: broken\n"
    with pytest.raises(RuntimeError):
        resume(folder)
    with run_folder.in_use(folder), pytest.raises(FolderError, match="use another --out"):
        run(experiment_file, folder, net="sim")
    (folder / "mine.txt").touch()
    with pytest.raises(FolderError, match="use another --out"):
        run(experiment_file, folder, net="sim")
    (folder / "mine.txt").unlink()
    (folder / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(FolderError, match="use another --out"):
        run(experiment_file, folder, net="sim")


# A process in the background would ignore SIGINT.
COMMAND = """
import signal
from gradplane.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.fixture
def long_run(experiment_file: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Provide a process that trains for long, once its first round is over."""
    out = ["--out", str(tmp_path / "run"), "--net", "sim", "--set", "job.epochs=100000"]
    command = [sys.executable, "-c", COMMAND, "run", str(experiment_file), *out]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None and process.stderr is not None
        while not process.stdout.readline().startswith("run: training round 0 "):
            assert process.poll() is None, process.stderr.read()
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals(long_run: subprocess.Popen[str], tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "run"
    # By then all is compiled: llvmlite prints a traceback if it is interrupted at a certain place.
    while (folder / "metrics.jsonl").read_text().count("\n") < 10:
        assert long_run.poll() is None
    long_run.send_signal(number)
    _, errors = long_run.communicate(timeout=60)
    if number is signal.SIGKILL:
        assert (long_run.returncode, errors) == (-9, "")
        assert RunData.read(folder).state.endswith(" rounds are recorded, then the run was killed")
    else:
        assert long_run.returncode == 128 + number
        assert errors.startswith(f"gradplane: stopped\n{folder}: ")
        assert "Traceback" not in errors
        assert RunData.read(folder).state.endswith(", then it was interrupted")
