"""Whole sweeps: on a cluster of two processes of which one is killed, failed runs, going on."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from distributed.scheduler import KilledWorker
from rich.console import Console

import gradplane
from gradplane.cli import main
from gradplane.controller.controller_errors import NoAnswerError
from gradplane.experiment.document import ExperimentError
from gradplane.runs.progress import duration
from gradplane.runs.records import run_folder
from gradplane.runs.records.run_folder import FolderError, read_summary
from gradplane.runs.run_experiment import run
from gradplane.runs.sweeps import cluster as clusters
from gradplane.runs.sweeps import run_task
from gradplane.runs.sweeps import sweep as sweeping
from gradplane.runs.sweeps.axes import axes
from gradplane.runs.sweeps.plan import make_plan
from gradplane.runs.sweeps.plan_file import SweepError
from gradplane.runs.sweeps.run_task import RunResult
from gradplane.runs.sweeps.sweep import SweepProgress
from gradplane.runs.sweeps.sweep_folder import SweepFolder

OVER = ["job.push.granularity=20,30", "impairment.0.rate=0.0,0.3"]


def kill_one_after(runs: int, folder: Path, pids: list[int], stop: threading.Event) -> None:
    """Kill the first process once so many runs of the sweep are finished."""
    while len(list(folder.glob("runs/*/summary.json"))) < runs:
        if stop.wait(0.02):
            return
    os.kill(pids[0], signal.SIGKILL)


@pytest.fixture(scope="module")
def swept(cluster: Any, swept_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of 4 points and 2 seeds; one of the cluster's processes is killed in the middle."""
    folder = tmp_path_factory.mktemp("sweeps") / "sweep"
    with clusters.connected(cluster.scheduler_address, "sim") as client:
        pids = list(client.run(os.getpid).values())
    stop = threading.Event()
    killer = threading.Thread(target=kill_one_after, args=(3, folder, pids, stop))
    killer.start()
    try:
        table = gradplane.sweep(
            swept_file, OVER, folder, seeds=2, cluster=cluster.scheduler_address
        )
    finally:
        stop.set()
        killer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert table.attrs == {"folder": str(folder), "failures": {}}
    return folder


def test_all_runs_finish_though_a_worker_was_killed(swept: Path) -> None:
    table = pandas.read_parquet(swept / "results.parquet")
    assert list(table["runs"]) == [2, 2, 2, 2] and list(table["failed"]) == [0, 0, 0, 0]
    assert list(table["job.push.granularity"]) == [20, 20, 30, 30]
    assert list(table["impairment.0.rate"]) == [0.0, 0.3, 0.0, 0.3]
    names = sorted(path.name for path in (swept / "runs").iterdir())
    assert names == sorted(f"point-{p}-seed-{s}" for p in (1, 2, 3, 4) for s in (1, 2))


def test_each_run_is_the_run_of_its_settings(swept: Path, swept_file: Path, tmp_path: Path) -> None:
    settings = ["job.push.granularity=30", "impairment.0.rate=0.3"]
    alone = run(swept_file, tmp_path / "run", net="sim", settings=settings, seed=2)
    among = read_summary(swept / "runs" / "point-4-seed-2")
    assert among is not None
    assert among["jobs"][0]["weights"] == alone.values["jobs"][0]["weights"]
    assert among["losses_injected"] == alone.values["losses_injected"] != {}


def test_the_table_has_means_and_intervals_of_the_runs(swept: Path) -> None:
    points = pandas.read_csv(swept / "results.csv")
    runs = pandas.read_parquet(swept / "runs.parquet")
    own = runs[(runs["job.push.granularity"] == 20) & (runs["impairment.0.rate"] == 0.3)]
    assert len(own) == 2 and own["error"].isna().all()
    row = points.iloc[1]
    for metric in ("test_accuracy", "seconds", "injected"):
        sample = own[metric].to_numpy()
        half = 12.706205 * sample.std(ddof=1) / np.sqrt(2)
        assert row[metric] == pytest.approx(sample.mean())
        assert row[f"{metric}.high"] - row[metric] == pytest.approx(half, rel=1e-5)
        assert row[metric] - row[f"{metric}.low"] == pytest.approx(half, rel=1e-5)


def test_the_report_has_a_figure_of_each_metric_over_each_parameter(swept: Path) -> None:
    page = (swept / "report.html").read_text()
    sections = re.findall(
        r"<section><h2>([^<]*)</h2>\n<div class=\"grid\">(.*?)</section>", page, re.S
    )
    drawn = {title: body.count("<svg xmlns") or body.count("<svg ") for title, body in sections}
    assert drawn.keys() >= {
        "Test accuracy",
        "Seconds of the training",
        "Verdicts of the impairments",
    }
    assert all(
        "job.push.granularity" in body and "impairment.0.rate" in body for _, body in sections
    )
    assert 'href="runs/point-1-seed-1/report.html"' in page
    assert not re.search(r'(?:src|href)="https?:', page), "nothing from elsewhere"


def test_a_killed_sweep_goes_on_where_it_was(swept: Path, swept_file: Path) -> None:
    """With a run's folder cut, another one missing and a seed more, only these are run."""
    cut, missing = swept / "runs" / "point-2-seed-1", swept / "runs" / "point-3-seed-2"
    (cut / "summary.json").unlink()
    for path in missing.rglob("*"):
        path.unlink() if path.is_file() else None
    missing.rmdir()
    kept = {p: p.stat().st_mtime_ns for p in swept.glob("runs/*/summary.json")}
    table = gradplane.sweep(swept_file, OVER, swept, seeds=2, resume=True, workers=1)
    assert list(table["runs"]) == [2, 2, 2, 2]
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert len(list(swept.glob("runs/*/summary.json"))) == 8
    with pytest.raises(SweepError, match="is over job.push.granularity=20,30 .*, and this one"):
        gradplane.sweep(swept_file, OVER[:1], swept, resume=True)
    with pytest.raises(FolderError, match="exists, and runs are never overwritten"):
        gradplane.sweep(swept_file, OVER, swept)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry runs out here, one after another, without a cluster."""
    monkeypatch.setattr(clusters, "connected", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(clusters, "results", lambda _, tasks: map(run_task.carry_out, tasks))


def test_a_failed_run_stops_no_other_and_is_named(
    swept_file: Path, tmp_path: Path, in_process: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a command: the table, then on standard error what failed, and status 1."""
    folder = tmp_path / "sweep"
    over = ["--over", "impairment.0.rate=1.0,0.0", "--set", "patience_s=0.5", "-o", folder]
    with pytest.raises(SystemExit) as ended:
        main.main(["sweep", str(swept_file), *map(str, over)])
    output, errors = capsys.readouterr()
    assert ended.value.code == 1
    assert output.startswith(f"{folder}: 2 runs\n") and f"report: {folder}/report.html" in output
    first, failed, *_, last = errors.splitlines()
    assert first == "1 of 2 runs failed:"
    assert failed.startswith("  point-1-seed-1: StallError: stalled: no round ended for 0.5 s")
    assert last == f"gradplane sweep --resume -o {folder} runs them again"
    points = pandas.read_csv(folder / "results.csv")
    assert list(points["runs"]) == [0, 1] and list(points["failed"]) == [1, 0]
    runs = pandas.read_csv(folder / "runs.csv")
    assert runs["error"][0].startswith("StallError") and np.isnan(runs["test_accuracy"][0])
    page = (folder / "report.html").read_text()
    assert "Failed runs" in page and "StallError" in page


class Interrupting:
    """A cluster's results, of which the second is Ctrl-C."""

    def __init__(self) -> None:
        self.left = 1

    def __call__(self, client: Any, tasks: list[run_task.RunTask]) -> Any:
        for task in tasks:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield run_task.carry_out(task)


def test_ctrl_c_leaves_a_folder_that_goes_on(
    swept_file: Path, tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    with monkeypatch.context() as patched:
        patched.setattr(clusters, "results", Interrupting())
        with pytest.raises(KeyboardInterrupt) as stopped:
            gradplane.sweep(swept_file, ["job.slots=2,4"], folder)
    (note,) = stopped.value.__notes__
    assert note.splitlines()[0] == f"{folder}: 1 of 2 runs are finished"
    assert f"gradplane sweep --resume -o {folder}" in note
    table = gradplane.sweep(out=folder, resume=True, seeds=2)
    assert list(table["runs"]) == [2, 2]


def test_files_come_back_from_a_worker_that_does_not_see_the_folder(
    swept_file: Path, tmp_path: Path
) -> None:
    plan = make_plan(swept_file, axes(["job.slots=4"]), 1)
    folder = SweepFolder.create(tmp_path / "here", plan)
    (planned,) = plan.runs
    task = folder.task(planned)
    elsewhere = run_task.RunTask(**vars(task) | {"sweep": str(tmp_path / "there")})
    result = run_task.carry_out(elsewhere)
    assert result.error is None and result.files is not None
    assert not folder.run_path(planned).exists()
    sweeping._take(folder, result, {})
    assert run_task.is_finished(folder.run_path(planned))
    assert sweeping.conclude(folder).table["runs"][0] == 1


def test_a_run_that_is_still_running_is_not_run_twice(swept_file: Path, tmp_path: Path) -> None:
    plan = make_plan(swept_file, (), 1)
    folder = SweepFolder.create(tmp_path / "sweep", plan)
    (planned,) = plan.runs
    path = folder.run_path(planned)
    path.mkdir(parents=True)
    with run_folder.in_use(path):
        result = run_task.carry_out(folder.task(planned))
    assert result == RunResult(planned.name, f"FolderError: {path}: the run is still running")


def test_a_run_is_tried_again_where_a_busy_machine_answered_too_late(
    swept_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SweepFolder.create(tmp_path / "sweep", make_plan(swept_file, (), 1))
    task = folder.task(folder.plan.runs[0])
    tries: list[Path] = []

    def late(experiment: object, out: Path, **options: object) -> None:
        tries.append(out)
        out.mkdir(parents=True)
        raise NoAnswerError("too late")

    monkeypatch.setattr(run_task, "run", late)
    assert run_task.carry_out(task).error == "NoAnswerError: too late"
    assert tries == [task.folder] * run_task.ATTEMPTS


class Killed:
    """The future of a run of which several workers died."""

    def result(self) -> None:
        raise KilledWorker.__new__(KilledWorker)


def test_a_run_that_its_workers_die_of_fails() -> None:
    result = clusters._result(Killed(), "name")
    text = "each worker process that ran it ended, killed or out of memory"
    assert result == RunResult("name", text)


def test_mininet_needs_the_resource_that_keeps_runs_apart(cluster: Any) -> None:
    with (
        pytest.raises(SweepError, match='worker a machine with --resources "mininet=1"'),
        clusters.connected(cluster.scheduler_address, "mininet"),
    ):
        pass


def test_what_cannot_start_is_refused_without_a_folder(swept_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with pytest.raises(ExperimentError, match="--over job.slotz=4: unknown key job.0.slotz"):
        gradplane.sweep(swept_file, ["job.slotz=4"], folder)
    with pytest.raises(SweepError, match="--resume: of which sweep"):
        gradplane.sweep(swept_file, ["job.slots=4"], resume=True)
    with pytest.raises(SweepError, match="not a sweep's folder: it has no sweep.json"):
        gradplane.sweep(out=tmp_path, resume=True)
    with pytest.raises(SweepError, match="no experiment"):
        gradplane.sweep()
    assert not folder.exists()


def test_the_time_left_follows_from_the_runs_so_far() -> None:
    now = [0.0]
    progress = SweepProgress(None, 10, clock=lambda: now[0])
    assert progress.facts() == "0 of 10"
    now[0] = 60.0
    for failed in (False, True):
        progress.done(failed)
    assert progress.facts() == "2 of 10, 1 failed, 4 min left"
    assert [duration(s) for s in (9.6, 150, 3900)] == ["10 s", "2 min", "1 h 5 min"]


def test_without_a_terminal_progress_is_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with SweepProgress(Console(force_terminal=False), 1) as progress:
        progress.done(False)
    assert capsys.readouterr().out == "runs: 1 of 1\n"


@pytest.mark.parametrize("name", ["sweep.json", "runs", "runs/one"])
def test_links_in_a_sweeps_folder_are_refused(tmp_path: Path, name: str) -> None:
    link = tmp_path / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path)
    with pytest.raises(SweepError, match=f"{link}: a link: no links in a sweep's folder"):
        SweepFolder.read(tmp_path)


def test_a_killed_sweep_leaves_no_folder_of_its_own(tmp_path: Path) -> None:
    """Not even SIGKILL: a shell waits for the end of the process."""
    code = """
import os, signal
from pathlib import Path
from gradplane.runs.sweeps.cluster import scratch
with scratch() as files:
    (Path(files) / "worker").mkdir()
    print(files, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    env = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        files = Path(killed.stdout.readline().decode().strip())
    assert files.parent == tmp_path
    deadline = time.monotonic() + 60
    while files.exists():
        assert time.monotonic() < deadline, files
        time.sleep(0.05)
    with clusters.scratch() as own:
        assert Path(own).is_dir()
    assert not Path(own).exists()
