"""One run of a sweep, as a worker process of the cluster carries it out.

A task is plain data: the experiment's values, not objects of a network. The run goes into its
folder in the sweep's folder where the worker sees that one, else into a temporary folder, whose
files then travel back with the result.
"""

import contextlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane._version import __version__
from gradplane.controller.controller_errors import NoAnswerError
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import Experiment
from gradplane.runs.records import run_folder
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.run_experiment import run
from gradplane.runs.sweeps.plan_file import PLAN

ATTEMPTS = 3


@dataclass(frozen=True)
class RunTask:
    """A run to carry out: values of an experiment, seed, network, folder, the sweep's identity."""

    name: str
    experiment: dict[str, Any]
    seed: int
    network: str
    sweep: str  # the sweep's folder, absolute
    identity: str  # of the sweep, as in its folder's file
    write_page: Callable[[Path], object] | None = None  # of a finished run's folder

    @property
    def folder(self) -> Path:
        """The run's folder, where the sweep's folder is seen."""
        return Path(self.sweep) / "runs" / self.name


@dataclass(frozen=True)
class RunResult:
    """The end of a run: an error's text, or None; and its files where the folder is not shared."""

    name: str
    error: str | None = None
    files: bytes | None = None  # tar


def carry_out(task: RunTask) -> RunResult:
    """Run the task's experiment, unless its folder has the finished run.

    An error of the run is a part of the result, so that any error can be returned."""
    if _sees(task):
        return RunResult(task.name, _error(task, task.folder))
    with tempfile.TemporaryDirectory(prefix="gradplane-run-") as scratch:
        folder = Path(scratch) / task.name
        error = _error(task, folder)
        return RunResult(task.name, error, _packed(folder))


def _sees(task: RunTask) -> bool:
    """Return whether this process sees the sweep's folder, and not another one of its name."""
    try:
        return task.identity in (Path(task.sweep) / PLAN).read_text("utf-8")
    except OSError:
        return False


def _error(task: RunTask, folder: Path) -> str | None:
    """Run into the folder; return the error's text, or None.

    A worker that was killed may have finished its run and not written the report."""
    try:
        experiment = Experiment.model_validate(task.experiment)
        if not is_finished(folder):
            _run(experiment, task, folder)
        if task.write_page is not None and not (folder / run_folder.REPORT).exists():
            task.write_page(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return None


def _run(experiment: Experiment, task: RunTask, folder: Path) -> None:
    """Run into the folder; again where the machine was too busy for a switch to answer in time.

    A sweep keeps all cores busy, and the first run of a program compiles it."""
    for attempt in range(1, ATTEMPTS + 1):
        remove(folder)
        try:
            run(experiment, folder, net=task.network, seed=task.seed)
            return
        except NoAnswerError:
            if attempt == ATTEMPTS:
                raise


def is_finished(folder: Path) -> bool:
    """Return whether a folder has a whole run, undamaged, its baseline too if it has one."""
    with contextlib.suppress(FolderError, ExperimentError):
        return folder.exists() and RunData.opened(folder).complete
    return False


def remove(folder: Path) -> None:
    """Remove what a stopped run left. Raises FolderError if the run is still running."""
    if folder.exists():
        with run_folder.in_use(folder):
            shutil.rmtree(folder)


def _packed(folder: Path) -> bytes | None:
    if not folder.exists():
        return None
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for path in _files(folder):
                archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
        return buffer.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_dir())


def unpack(files: bytes, folder: Path) -> None:
    """Write the files of a result into a folder, which replaces what is there."""
    remove(folder)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(files), mode="r:gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4
        archive.extractall(folder)


def version() -> str:
    """Return the version of gradplane in this process."""
    return __version__
