"""Carry a sweep out: plan, cluster, results as they come, tables, report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from gradplane.experiment.loading import Experiment
from gradplane.runs.progress import PLAIN_SECONDS, left
from gradplane.runs.records import run_folder
from gradplane.runs.sweeps import cluster
from gradplane.runs.sweeps.axes import axes
from gradplane.runs.sweeps.plan import continued, make_plan, with_seeds
from gradplane.runs.sweeps.plan_file import SweepError
from gradplane.runs.sweeps.run_task import RunResult, unpack
from gradplane.runs.sweeps.sweep_folder import SweepFolder
from gradplane.runs.sweeps.tables import Results

if TYPE_CHECKING:
    from pandas import DataFrame
import time

from rich.progress import BarColumn, Progress, TextColumn


class Pages(NamedTuple):
    """The writers of pages; `run` is pickled, as workers call it."""

    run: Callable[[Path], object]  # of a finished run's folder, where its experiment wants one
    sweep: Callable[[Results], object]


Over = Sequence[str] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class SweepRequest:
    """The arguments of `sweep`; `carry_out` checks them."""

    experiment: str | Path | Experiment | None = None
    over: Over = ()
    out: str | Path | None = None
    seeds: int | None = None
    net: str | None = None
    settings: Sequence[str] = ()
    target_accuracy: float | None = None
    cluster: str | None = None
    workers: int | None = None
    resume: bool = False
    pages: Pages | None = None

    @property
    def set_keys(self) -> list[str]:
        """The overrides of all runs, the target accuracy among them."""
        if self.target_accuracy is None:
            return [*self.settings]
        return [*self.settings, f"output.target_accuracy={self.target_accuracy}"]


@dataclass(frozen=True)
class Swept:
    """A sweep that was carried out: its folder, its tables, and by run's name what failed."""

    folder: SweepFolder
    results: Results
    table: "DataFrame"

    @property
    def failures(self) -> dict[str, str]:
        """The errors of failed runs, by the run's name."""
        return self.results.failures


def sweep(
    experiment: str | Path | Experiment | None = None,
    over: Over = (),
    out: str | Path | None = None,
    *,
    seeds: int | None = None,
    net: str | None = None,
    settings: Sequence[str] = (),
    target_accuracy: float | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    console: bool = False,
    pages: Pages | None = None,
) -> "DataFrame":
    """Run an experiment at every point of a grid and under several seeds; return the results.

    experiment: a file, a shipped experiment's name, or an Experiment. over: by key, as in `--set`,
    the values that it takes: `{"job.push.granularity": [20, 30]}`, or texts as behind `--over`.
    out: the sweep's folder, which must not exist (default: runs/NAME-sweep-N). seeds: how many
    (default 1), counted up from the experiment's. net: "sim" (default) or "mininet". settings:
    `KEY=VALUE` overrides of all runs. target_accuracy: sets `output.target_accuracy`. cluster: the
    address of a Dask scheduler; by default a cluster of local processes, `workers` of them
    (default: one for each core). resume: go on with the sweep in `out`: its finished runs are kept;
    without an experiment, it is the folder's, and `seeds` may be more than before. console: show
    progress. pages: what writes the report and the runs' reports; `gradplane.sweep` fills it in.

    Returns a row for each point: a column for each key, `runs` and `failed`, and for each metric
    its mean over the runs, `METRIC.low` and `METRIC.high`, the ends of the mean's 95 % interval
    (Student). `attrs["folder"]` is the sweep's folder, `attrs["failures"]` has the errors of failed
    runs by name: a failed run does not stop the others. The folder has the same table as Parquet
    and CSV, one with a row for each run, the runs' folders and a report.

    Call it under `if __name__ == "__main__":` in a script, as its processes import the script.
    Raises ExperimentError, CompileError or SweepError before anything starts, and FolderError.
    """
    asked = SweepRequest(
        *(experiment, over, out, seeds, net, settings, target_accuracy, cluster, workers, resume),
        pages,
    )
    done = carry_out(asked, Console() if console else None)
    done.table.attrs |= {"folder": str(done.folder.path), "failures": done.failures}
    return done.table


def carry_out(asked: SweepRequest, console: Console | None = None) -> Swept:
    """Carry a sweep out as `sweep` does; also return its folder and what failed."""
    cluster.check_installed()
    if asked.workers is not None and asked.workers < 1:
        raise SweepError(f"--workers {asked.workers}: at least 1 is needed")
    folder = _resumed(asked) if asked.resume else _created(asked)
    with run_folder.in_use(folder.path):
        folder.write_plan()
        _run(folder, asked, console)
    return conclude(folder, asked.pages)


def _created(asked: SweepRequest) -> SweepFolder:
    """Return the new folder of a sweep."""
    if asked.experiment is None:
        raise SweepError("no experiment: give EXPERIMENT.toml, or --resume with -o DIR")
    seeds, network = asked.seeds or 1, asked.net or "sim"
    plan = make_plan(
        asked.experiment, axes(asked.over), seeds, network=network, set_keys=asked.set_keys
    )
    return SweepFolder.create(asked.out, plan)


def _resumed(asked: SweepRequest) -> SweepFolder:
    """Return the sweep's folder with the plan that is asked for."""
    if asked.out is None:
        raise SweepError("--resume: of which sweep? Give its folder: -o DIR")
    folder = SweepFolder.read(asked.out)
    stored = folder.plan
    count = len(stored.seeds) if asked.seeds is None else asked.seeds
    if asked.experiment is None:
        if asked.over or asked.set_keys or asked.net not in (None, stored.network):
            raise SweepError(
                "--resume: the folder has the experiment: give EXPERIMENT.toml too, or leave"
                " --over, --set, --net and --target-accuracy out"
            )
        return SweepFolder(folder.path, with_seeds(stored, count))
    network = asked.net or stored.network
    plan = make_plan(
        asked.experiment, axes(asked.over), count, network=network, set_keys=asked.set_keys
    )
    return SweepFolder(folder.path, continued(stored, plan))


def _run(folder: SweepFolder, asked: SweepRequest, console: Console | None) -> None:
    """Carry out the runs that are not finished, and record which fail and why.

    An error, KeyboardInterrupt too, gets a note that says how to continue."""
    failures: dict[str, str] = {}
    left = folder.unfinished()
    if console is not None:
        kept = len(folder.plan.runs) - len(left)
        runs = "1 run" if len(left) == 1 else f"{len(left)} runs"
        text = f"{folder.path}: {runs}" + (f", {kept} finished before" if kept else "")
        console.print(text, soft_wrap=True, highlight=False)
    try:
        if not left:
            return
        with cluster.connected(asked.cluster, folder.plan.network, asked.workers) as client:
            write_page = asked.pages and asked.pages.run
            tasks = [replace(folder.task(run), write_page=write_page) for run in left]
            with SweepProgress(console, len(left)) as progress:
                for result in cluster.results(client, tasks):
                    _take(folder, result, failures)
                    progress.done(result.error is not None)
    except BaseException as error:
        with suppress(OSError):
            error.add_note(_way_on(folder))
        raise
    finally:
        folder.write_failures(failures)


def _take(folder: SweepFolder, result: RunResult, failures: dict[str, str]) -> None:
    if result.files is not None:
        unpack(result.files, folder.path / "runs" / result.name)
    if result.error is not None:
        failures[result.name] = result.error


def _way_on(folder: SweepFolder) -> str:
    return (
        f"{folder.path}: {folder.finished()} of {len(folder.plan.runs)} runs are finished\n"
        f"  gradplane sweep --resume -o {folder.path}    the others"
    )


def conclude(folder: SweepFolder, pages: Pages | None = None) -> Swept:
    """Write the tables and the report of what is in a sweep's folder."""
    results = Results(folder)
    table = results.write()
    if pages is not None:
        pages.sweep(results)
    return Swept(folder, results, table)


# The progress of a sweep: a bar with the time left, or a line now and then


class SweepProgress:
    """A context manager; done() is called after each run. Shows nothing without a console.

    total: runs to carry out; the time left is that of the runs so far, divided by their number."""

    def __init__(
        self, console: Console | None, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._total, self._clock = console, total, clock
        self._finished = self._failed = 0
        self._started = self._printed = clock()
        self._bar: Progress | None = None
        if console is not None and console.is_terminal:
            columns = (
                TextColumn("runs"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[facts]}"),
            )
            self._bar = Progress(*columns, console=console)

    def __enter__(self) -> "SweepProgress":
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("runs", total=self._total, facts=self.facts())
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, failed: bool) -> None:
        """Count a run that has ended."""
        self._finished += 1
        self._failed += failed
        if self._bar is not None:
            self._bar.update(self._task, completed=self._finished, facts=self.facts())
        elif self._console is not None:
            self._print()

    def _print(self) -> None:
        now = self._clock()
        if now - self._printed >= PLAIN_SECONDS or self._finished == self._total:
            self._printed = now
            self._console_line(f"runs: {self.facts()}")

    def _console_line(self, text: str) -> None:
        assert self._console is not None
        self._console.print(text, soft_wrap=True, highlight=False)

    def facts(self) -> str:
        """Return runs done and failed, and the time left, in words."""
        text = f"{self._finished} of {self._total}"
        if self._failed:
            text += f", {self._failed} failed"
        return text + left(self._clock() - self._started, self._finished, self._total)
