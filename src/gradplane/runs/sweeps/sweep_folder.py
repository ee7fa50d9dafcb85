"""A sweep's folder: the plan, the runs' folders, the tables and the report.

sweep.json          the plan: axes, seeds, and each point's experiment, resolved
runs/NAME/          each run's folder, as `gradplane run` writes it
failures.json       by run, the error of those that failed last time
results.csv, .parquet   a row for each point; runs.csv, .parquet   a row for each run
report.html
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.runs.records import run_folder
from gradplane.runs.records.run_folder import FolderError, write_json
from gradplane.runs.sweeps.plan import Plan, PlannedRun
from gradplane.runs.sweeps.plan_file import PLAN, SweepError
from gradplane.runs.sweeps.run_task import RunTask, is_finished

FAILURES = "failures.json"
REPORT = run_folder.REPORT


@dataclass(frozen=True)
class SweepFolder:
    """A sweep's folder and its plan."""

    path: Path
    plan: Plan

    @classmethod
    def create(cls, out: str | Path | None, plan: Plan) -> "SweepFolder":
        """Make a new folder: `out`, or the first of runs/NAME-sweep-N that is free.

        Raises FolderError if it exists."""
        folder = cls(run_folder.create(out, f"{plan.name}-sweep"), plan)
        folder.write_plan()
        return folder

    @classmethod
    def read(cls, path: str | Path) -> "SweepFolder":
        """Read the sweep in a folder. Raises SweepError if there is none, if it is damaged, or if a
        file or a run of it is a link."""
        file = Path(path) / PLAN
        for one in (
            file,
            *(Path(path) / name for name in (FAILURES, "runs")),
            *Path(path).glob("runs/*"),
        ):
            if one.is_symlink():
                raise SweepError(
                    f"{one}: a link: no links in a sweep's folder are followed; put a copy in its"
                    " place"
                )
        try:
            return cls(Path(path), Plan.from_json(json.loads(file.read_text("utf-8"))))
        except FileNotFoundError:
            raise SweepError(f"{path}: not a sweep's folder: it has no {PLAN}") from None
        except OSError as error:
            raise SweepError(f"{file}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, SweepError) as error:
            raise SweepError(f"{file}: damaged: {error!r}") from None

    def write_plan(self) -> None:
        """Write sweep.json."""
        write_json(self.path / PLAN, self.plan.as_json())

    def run_path(self, run: PlannedRun) -> Path:
        """Return a run's folder."""
        return self.path / "runs" / run.name

    def task(self, run: PlannedRun) -> RunTask:
        """Return the task of a run."""
        return RunTask(
            name=run.name,
            experiment=self.plan.experiments[run.point],
            seed=run.seed,
            network=self.plan.network,
            sweep=str(self.path.resolve()),
            identity=self.plan.identity,
        )

    def unfinished(self) -> list[PlannedRun]:
        """Return the runs whose folders are not those of a whole run, with its report."""
        return [run for run in self.plan.runs if not self._is_whole(run)]

    def _is_whole(self, run: PlannedRun) -> bool:
        path, output = self.run_path(run), self.plan.experiments[run.point]["output"]
        reported = (path / run_folder.REPORT).exists() or not output.get("report", True)
        return reported and is_finished(path)

    def finished(self) -> int:
        """Return how many runs have a summary; unlike `unfinished` it checks no digests."""
        return sum(self.summary(run) is not None for run in self.plan.runs)

    def summary(self, run: PlannedRun) -> dict[str, Any] | None:
        """Return a run's summary.json; None if the run is not finished, baseline included."""
        try:
            found = run_folder.read_summary(self.run_path(run))
        except FolderError:
            return None
        wanted = self.plan.experiments[run.point]["output"]["baseline"]
        return found if found is not None and ("baseline" in found or not wanted) else None

    def write_failures(self, failures: dict[str, str]) -> None:
        """Write by run's name why it failed; no file if none did."""
        if failures:
            write_json(self.path / FAILURES, failures)
        else:
            (self.path / FAILURES).unlink(missing_ok=True)

    def failures(self) -> dict[str, str]:
        """Return by run's name why it failed."""
        try:
            found = json.loads((self.path / FAILURES).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise SweepError(f"{self.path / FAILURES}: damaged: {error}") from None
        return {str(name): str(text) for name, text in found.items()}
