"""Copies of users' Python files in a run's folder: what is read back there needs these files
neither in their place nor as they were.

parts/files.json has the path of each file by its copy's name. The file itself is taken while it is
the same, and so are those beside it that it imports; else the copies of all these, if they were
made here: to look into a folder that came from elsewhere runs nothing of it. The digests of copies
that were made here are names of files in $XDG_CACHE_HOME/gradplane/parts.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from gradplane._plugins import file_of, helpers
from gradplane._user_folders import cache_folder
from gradplane._whole_files import write_whole
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load_deployment
from gradplane.experiment.schema import Experiment
from gradplane.runs.records.run_folder import EXPERIMENT, PARTS, FolderError

_FILES = "files.json"


def keep(folder: Path, experiment: Experiment) -> None:
    """Copy the files that an experiment names, and those beside them that they import, into a run's
    folder; no folder if there are none."""
    own = (folder / PARTS).resolve()  # a run that is made anew from its own copies
    files = [one for one in dict.fromkeys(_files(experiment.values())) if one.parent != own]
    kept = _kept(folder)
    places = {_root(name, file): _prefix(name, file) for name, file in kept.items()}
    new: dict[str, Path] = {}
    for file in files:
        prefix = places.setdefault(file.parent, str(len(places) + 1) if places else "")
        for path in (file, *helpers(file)):
            new[str(Path(prefix, path.relative_to(file.parent)))] = path
    for name, file in new.items():
        (folder / PARTS / name).parent.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        write_whole(folder / PARTS / name, content)
        with suppress(OSError):  # then it is as if it came from elsewhere
            (made := _mark(content)).parent.mkdir(parents=True, exist_ok=True)
            made.touch()
    if kept | new:
        listed = kept | {name: str(file) for name, file in new.items()}
        write_whole(folder / PARTS / _FILES, json.dumps(listed, indent=1) + "\n")


def recorded_deployment(folder: Path) -> Deployment:
    """Return the deployment of a run's folder, with copies in place of files that are gone or are
    not those of the run, and of those beside them. Raises ExperimentError, FolderError."""
    return _deployment(folder, _changed(folder))


def renewed_deployment(folder: Path) -> Deployment:
    """Return the deployment of a run that begins anew, with its files as they are today, or with
    copies where these are gone. Raises as `recorded_deployment`."""
    gone = {name: file for name, file in _changed(folder).items() if not Path(file).is_file()}
    return _deployment(folder, gone)


def notes(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file in whose place its copy is taken."""
    for name, file in _changed(folder).items():
        what = "was changed since the run" if Path(file).is_file() else "is gone"
        yield f"{file} {what}: its copy is used, {folder / PARTS / name}."


def _deployment(folder: Path, instead: Mapping[str, str]) -> Deployment:
    """Return a run's deployment, with the copies of these files and of those beside them."""
    roots = {_root(name, file) for name, file in instead.items()}
    kept = _kept(folder)
    taken = {name: file for name, file in kept.items() if _root(name, file) in roots}
    if taken:
        _check_made_here(folder, kept, instead)
    copies = {file: folder / PARTS / name for name, file in taken.items()}
    return load_deployment(folder / EXPERIMENT, recorded=True, copies=copies)


def _root(name: str, file: str) -> Path:
    """Return the folder of the user's file that imports this one, or is it."""
    return Path(file).parents[_same_parts(name, file) - 1]


def _prefix(name: str, file: str) -> str:
    """Return the folder of parts/ that stands for that one."""
    return str(Path(*Path(name).parts[: -_same_parts(name, file)]))


def _same_parts(name: str, file: str) -> int:
    """Return how many parts the ends of both paths have in common, at least 1: releases of before
    made the second own.py own-2.py."""
    both = zip(reversed(Path(name).parts), reversed(Path(file).parts), strict=False)
    return max(1, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both)))


def _check_made_here(folder: Path, kept: Mapping[str, str], instead: Mapping[str, str]) -> None:
    """Raise FolderError unless all that a copy could import there was made here."""
    parts = folder / PARTS
    for cache in parts.rglob("__pycache__"):  # bytecode is taken for its source unseen
        shutil.rmtree(cache)
    for copy in parts.rglob("*"):
        name = str(copy.relative_to(parts))
        if copy.is_dir() or name == _FILES or name in kept and _mark(copy.read_bytes()).exists():
            continue
        name = name if name in instead else next(iter(instead))
        what = "was changed" if Path(instead[name]).is_file() else "is gone"
        raise FolderError(
            f"{instead[name]} {what}, and its copy {parts / name} was not made on this machine: it"
            f" is code that would run. Read it; to use it, put it in the place of {instead[name]}"
        )


def _mark(content: bytes) -> Path:
    return cache_folder("parts") / hashlib.sha256(content).hexdigest()


def _changed(folder: Path) -> dict[str, str]:
    """Return the copies' names, and their files, of files that are not as they were."""
    return {
        name: file
        for name, file in _kept(folder).items()
        if _content(folder / PARTS / name) not in (None, _content(Path(file)))
    }


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
