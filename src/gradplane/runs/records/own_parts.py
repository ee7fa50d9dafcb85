"""Copies of users' Python files in a run's folder: what is read back there needs these files
neither in their place nor as they were.

parts/files.json has the path of each file by its copy's name. The file itself is taken while it is
the same, as it may import others beside it; else its copy, if it was made here: to look into a
folder that came from elsewhere runs nothing of it. The digests of copies that were made here are
names of files in $XDG_CACHE_HOME/gradplane/parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradplane._plugins import file_of
from gradplane._whole_files import write_whole
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load_deployment
from gradplane.experiment.schema import Experiment
from gradplane.runs.records.run_folder import EXPERIMENT, PARTS, FolderError
from gradplane.switch import disk_cache

_FILES = "files.json"


def keep(folder: Path, experiment: Experiment) -> None:
    """Copy the files that an experiment names into a run's folder; no folder if there are none."""
    files = dict.fromkeys(_files(experiment.values()))
    kept = _kept(folder)
    for file in files:
        if Path(file).parent == (folder / PARTS).resolve():
            continue  # a run that is made anew from its own copies
        names = [file.stem, *(f"{file.stem}-{number}" for number in range(2, len(files) + 1))]
        name = next(f"{one}.py" for one in names if kept.get(f"{one}.py", str(file)) == str(file))
        kept[name] = str(file)
        (folder / PARTS).mkdir(exist_ok=True)
        content = file.read_bytes()
        write_whole(folder / PARTS / name, content)
        with suppress(OSError):  # then it is as if it came from elsewhere
            (made := _mark(content)).parent.mkdir(parents=True, exist_ok=True)
            made.touch()
    if kept:
        write_whole(folder / PARTS / _FILES, json.dumps(kept, indent=1) + "\n")


def recorded_deployment(folder: Path) -> Deployment:
    """Return the deployment of a run's folder, with copies in place of files that are gone or are
    not those of the run. Raises ExperimentError, FolderError."""
    copies = {file: _own_copy(folder / PARTS / name, file) for name, file in _changed(folder)}
    return load_deployment(folder / EXPERIMENT, recorded=True, copies=copies)


def renewed_deployment(folder: Path) -> Deployment:
    """Return the deployment of a run that begins anew, with its files as they are today, or with
    copies where these are gone. Raises as `recorded_deployment`."""
    gone = ((name, file) for name, file in _changed(folder) if not Path(file).is_file())
    copies = {file: _own_copy(folder / PARTS / name, file) for name, file in gone}
    return load_deployment(folder / EXPERIMENT, recorded=True, copies=copies)


def notes(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file in whose place its copy is taken."""
    for name, file in _changed(folder):
        what = "was changed since the run" if Path(file).is_file() else "is gone"
        yield f"{file} {what}: its copy is used, {folder / PARTS / name}."


def _own_copy(copy: Path, file: str) -> Path:
    """Return a copy that was made here; raise FolderError for another one."""
    if not _mark(copy.read_bytes()).exists():
        what = "was changed" if Path(file).is_file() else "is gone"
        raise FolderError(
            f"{file} {what}, and its copy {copy} was not made on this machine: it is code that"
            f" would run. Read it; to use it, put it in the place of {file}"
        )
    return copy


def _mark(content: bytes) -> Path:
    return disk_cache.folder("parts") / hashlib.sha256(content).hexdigest()


def _changed(folder: Path) -> list[tuple[str, str]]:
    """Return the copies' names, and their files, of files that are not as they were."""
    return [
        (name, file)
        for name, file in _kept(folder).items()
        if _content(folder / PARTS / name) not in (None, _content(Path(file)))
    ]


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _kept(folder: Path) -> dict[str, str]:
    path = folder / PARTS / _FILES
    try:
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise FolderError(f"{path}: damaged: {error}") from None
    return found


def _files(values: Any) -> Iterator[Path]:
    """Yield the files that texts among plain values refer to."""
    if isinstance(values, dict | list):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _files(value)
    elif isinstance(values, str) and (file := file_of(values)) and file.is_absolute():
        yield file
