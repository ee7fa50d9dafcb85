"""The run folder: created once, never overwritten, and it says when a run did not finish."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradplane.experiment.document import dumps
from gradplane.experiment.schema import Experiment

EXPERIMENT = "experiment.toml"
METRICS = "metrics.jsonl"
IMPAIRMENTS = "impairments.jsonl"
ARRIVALS = "arrivals.jsonl"
SUMMARY = "summary.json"
REPORT = "report.html"
FAILURE = "failure.txt"
BASELINE = "baseline"


class FolderError(Exception):
    """A run folder that cannot be made or read; the message says which and what to do."""


def create(out: str | Path | None, name: str) -> Path:
    """A new folder: `out`, or the first of runs/NAME-1, runs/NAME-2, ... that does not exist."""
    if out is not None:
        return _make(Path(out))
    number = 1
    while True:
        try:
            return _make(Path("runs") / f"{name}-{number}")
        except FolderError:
            number += 1


def _make(path: Path) -> Path:
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise FolderError(
            f"{path} exists, and runs are never overwritten: use another --out"
        ) from None
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None
    return path


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """experiment.toml: resolved, so that it alone repeats the run."""
    (folder / EXPERIMENT).write_text(dumps(experiment.values()), "utf-8")


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """summary.json, which only a finished run has: under another name first, then renamed."""
    partial = folder / f".{SUMMARY}.part"
    partial.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8")
    partial.rename(folder / SUMMARY)


def write_failure(folder: Path, reason: str) -> None:
    """failure.txt: why the run did not finish."""
    (folder / FAILURE).write_text(f"{reason}\n", "utf-8")


def read_summary(folder: Path) -> dict[str, Any]:
    """summary.json; FolderError says why there is none."""
    path = folder / SUMMARY
    if path.exists():
        summary: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return summary
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such run folder")
    failure = folder / FAILURE
    if failure.exists():
        raise FolderError(f"{folder}: the run failed: {failure.read_text('utf-8').strip()}")
    raise FolderError(f"{folder}: no {SUMMARY}: the run is not finished, or was killed")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file; none if there is no such file."""
    if not path.exists():
        return
    with path.open("r", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise FolderError(f"{path}:{number}: damaged: {error}") from None
