"""Run a study: from an experiment file with a [study] table to its folder."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model

from gradplane import _plugins
from gradplane._toml_documents import Section, explain, nearest
from gradplane._whole_files import write_whole
from gradplane.experiment import shipped
from gradplane.experiment.document import Document, ExperimentError, dumps, override, read
from gradplane.experiment.schema import Experiment
from gradplane.pages.kit import render
from gradplane.runs import isolation
from gradplane.runs.machine import OneBlasThread, describe
from gradplane.runs.records import run_folder
from gradplane.studies import papers
from gradplane.studies.study import Study, StudyOutcome

STUDY, FIGURE = "study.json", "figure"
INVENTORY = Path(__file__).parent / "inventory"
_SHORT = 120.0  # CPU seconds; of a shorter study nothing is said before it starts


class StudyFile(Section):
    """The keys at the top of a file with a study, as in other experiment files."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int = Experiment.model_fields["seed"]  # type: ignore[assignment]
    study: Study


@dataclass(frozen=True)
class Done:
    """A study's outcome, and its folder (study.json, figure.svg, figure.png, report.html)."""

    folder: Path
    outcome: StudyOutcome

    @property
    def report(self) -> Path:
        """The path of the self-contained report page."""
        return self.folder / run_folder.REPORT


def is_folder(folder: str | Path) -> bool:
    """Return whether a folder is that of a finished study."""
    return (Path(folder) / STUDY).exists()


def kinds() -> dict[str, type[Study]]:
    """Return every study by the name that files use for it."""
    found = {}
    for name in _plugins.names(papers.__path__):
        kind: type[Study] = _plugins.find(papers.__name__, name, Study)
        found[kind.model_fields["name"].default] = kind
    return found


def run(
    path: str | Path,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    seed: int | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> Done:
    """Run the study of a file and write its run folder, `out` (default: runs/NAME-N).

    settings: `KEY=VALUE` overrides, such as study.workers=8. seed: replaces the file's. announce:
    gets a line before the start of a study that takes minutes, or of which nothing is recorded.
    Raises ExperimentError before anything is written, and CodecError, whose reason is in
    failure.txt."""
    file = load(path, settings, seed)
    folder = run_folder.create(out, file.name)
    write_whole(folder / run_folder.EXPERIMENT, dumps(_values(file)))
    before = recorded(file.study.name)
    if before is None or "cpu_seconds" not in before:
        announce(f"{file.study.name}: how long it takes is not known; it may be over ten minutes")
    elif before["cpu_seconds"] > _SHORT:
        announce(_said(before, file))
    started = isolation.processor_seconds()
    try:
        with OneBlasThread():
            outcome = file.study.run(file.seed)
    except BaseException as error:
        run_folder.write_failure(folder, f"{type(error).__name__}: {error}".removesuffix(": "))
        raise
    _write(folder, file, outcome, isolation.processor_seconds() - started)
    return Done(folder, outcome)


def load(path: str | Path, settings: Sequence[str] = (), seed: int | None = None) -> StudyFile:
    """Return the checked file; ExperimentError has a line for each thing that is wrong."""
    path = shipped.find(path)
    document = read(path)
    document.values.setdefault("name", path.stem)
    override(document, [*settings, *([] if seed is None else [f"seed={seed}"])])
    model = create_model("StudyFile", __base__=StudyFile, study=(_kind(document), ...))
    try:
        return model.model_validate(document.values)
    except ValidationError as error:
        raise ExperimentError(explain(document, model, error)) from None


def recorded(study: str) -> dict[str, Any] | None:
    """Return what is kept of a study for docs/papers.md; None if nothing is.

    Keys of study.json: title, study, seed, head, cells, cpu_seconds."""
    path = INVENTORY / f"{study}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _said(before: dict[str, Any], file: StudyFile) -> str:
    processors = len(os.sched_getaffinity(0))
    minutes = before["cpu_seconds"] / 60 / processors
    taken = f"takes about {minutes:.0f} min on this machine's {processors} processors"
    if before["study"] == file.study.model_dump(mode="json"):
        return f"{file.study.name} {taken}"
    return f"{file.study.name} as shipped {taken}; with these parameters it may differ"


def _kind(document: Document) -> type[Study]:
    known, table = kinds(), document.values["study"]
    name = table.get("name") if isinstance(table, dict) else table
    if name in known:
        return known[name]
    place = document.place(("study", "name"))
    if name is None:
        raise ExperimentError(f"{place}: study.name is missing: {nearest('', known)}")
    raise ExperimentError(f'{place}: no study "{name}": {nearest(str(name), known)}')


def _values(file: StudyFile) -> dict[str, Any]:
    return file.model_dump(mode="json") | {"study": file.study.model_dump(mode="json")}


def _write(folder: Path, file: StudyFile, outcome: StudyOutcome, cpu_seconds: float) -> None:
    from gradplane.studies import plot  # Matplotlib takes long to load, and runs do not need it

    about = {"title": outcome.title, "rows": outcome.values, "notes": outcome.notes}
    shown = {"head": outcome.head, "cells": outcome.rows}
    took = {"cpu_seconds": round(cpu_seconds, 1)}
    values = about | shown | _values(file) | took | describe()
    text = json.dumps(values, indent=1, ensure_ascii=False)
    write_whole(folder / f"{FIGURE}.png", plot.render(outcome.figure, "png"))
    write_whole(folder / f"{FIGURE}.svg", plot.render(outcome.figure, "svg"))
    write_whole(folder / STUDY, f"{text}\n")
    write_report(folder)


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a finished study's folder to `out`, by default report.html in the folder.

    Raises FolderError if the folder is damaged."""
    try:
        study = json.loads((folder / STUDY).read_text("utf-8"))
        svg = (folder / f"{FIGURE}.svg").read_text("utf-8")
        text = _page(study, svg, (folder / run_folder.EXPERIMENT).read_text("utf-8"))
    except (OSError, ValueError, KeyError) as error:
        raise run_folder.FolderError(f"{folder}: no finished study: {error}") from None
    path = out or folder / run_folder.REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return path


def _page(study: dict[str, Any], svg: str, experiment: str) -> str:
    """Render the page from study.json and the files beside it."""
    return render(
        "study.html",
        {
            "title": study["title"],
            "lead": f"study {study['study']['name']}, seed {study['seed']}",
            "notes": study["notes"],
            "head": study["head"],
            "rows": study["cells"],
            "figure": svg[svg.index("<svg") :],
            "experiment": experiment,
        },
    )
