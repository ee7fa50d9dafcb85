"""The run folder: created once, never overwritten; it shows if a run did not finish.

A run adds to its folder as it goes: experiment.toml and manifest.json at its start, the .jsonl
files line by line, summary.json when its training is finished and again when the baseline is.

interventions.jsonl has a line for each impairment that was asked for while the run went on. It is
the way from the page of a running experiment to its network, which may be in namespaces of its own,
and the record of what was asked. What the packets suffered is in impairments.jsonl, as for the
impairments of the experiment file.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from gradplane._whole_files import write_whole
from gradplane.hosts.digest import FUNCTIONS
from gradplane.hosts.impairments.interventions import Intervention

EXPERIMENT = "experiment.toml"
METRICS = "metrics.jsonl"
IMPAIRMENTS = "impairments.jsonl"
ARRIVALS = "arrivals.jsonl"
LINKS = "links.jsonl"
INTERVENTIONS = "interventions.jsonl"
SUMMARY = "summary.json"
REPORT = "report.html"
FAILURE = "failure.txt"
MANIFEST = "manifest.json"
BASELINE = "baseline"
HOSTS = "hosts"  # of a script's run
PCAP = "pcap"
PARTS = "parts"  # copies of users' Python files
_BEGUN = {
    *(EXPERIMENT, METRICS, IMPAIRMENTS, ARRIVALS, LINKS, INTERVENTIONS, FAILURE, MANIFEST),
    *(REPORT, HOSTS, PCAP, PARTS),
}
"""The files and folders that a run may have before the end of its first round."""


class FolderError(Exception):
    """A run folder that cannot be made or read; the message says which and what to do."""


def create(out: str | Path | None, name: str, *, replaced: bool = False) -> Path:
    """Make a new folder: `out`, or the first of runs/NAME-1, runs/NAME-2, ... that is free.

    replaced: a folder of a run that stopped before the end of its first round is free, too."""
    if out is not None:
        return _make(Path(out), replaced)
    number = 1
    while True:
        try:
            return _make(Path("runs") / f"{name}-{number}", replaced)
        except FolderError:
            number += 1


def _make(path: Path, replaced: bool) -> Path:
    if replaced and _is_empty_run(path):
        shutil.rmtree(path)
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise FolderError(
            f"{path} exists, and runs are never overwritten: use another --out"
        ) from None
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None
    return path


def _is_empty_run(path: Path) -> bool:
    """Return whether a folder has a run that stopped without a whole round, and nothing else."""
    if path.is_symlink() or not (path / EXPERIMENT).is_file() or is_in_use(path):
        return False
    return {entry.name for entry in path.iterdir()} <= _BEGUN and not _size(path / METRICS)


def has_records(folder: Path) -> bool:
    """Return whether a run has recorded anything, which may show why it stopped."""
    return any(_size(folder / name) for name in (METRICS, ARRIVALS, IMPAIRMENTS))


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Mark the folder as a running run's, until this block ends or this process does.

    Raises FolderError if another run is using it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderError(f"{folder}: the run is still running") from None
        except OSError:  # some network file systems have no locks
            pass
        yield
    finally:
        os.close(descriptor)


def is_in_use(folder: Path) -> bool:
    """Return whether a run is running in the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def clear(folder: Path, *, training: bool) -> None:
    """Remove what a stopped run left of its baseline and, if wanted, of its training."""
    shutil.rmtree(folder / BASELINE, ignore_errors=True)
    names = (METRICS, ARRIVALS, IMPAIRMENTS, LINKS, INTERVENTIONS, SUMMARY) if training else ()
    for name in (FAILURE, *names):
        (folder / name).unlink(missing_ok=True)
    if training:
        shutil.rmtree(folder / PCAP, ignore_errors=True)


def write_json(path: Path, values: Any) -> None:
    """Write a JSON file as `write_whole` does."""
    write_whole(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def reason(error: BaseException) -> str:
    """Return why a run did not finish, for failure.txt."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "it was interrupted"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def write_failure(folder: Path, reason: str) -> None:
    """Write failure.txt: why the run did not finish; nothing where the disk is full."""
    with suppress(OSError):
        write_whole(folder / FAILURE, f"{reason}\n")


def with_name(error: OSError, path: Path) -> OSError:
    """Return an error of an open file with the file's name, which a write's has not."""
    return OSError(error.errno, error.strerror, str(path))


def close_named(file: TextIO) -> None:
    """Close a file; an error of what was still to be written has its name."""
    try:
        file.close()
    except OSError as error:
        raise with_name(error, Path(file.name)) from None


def read_failure(folder: Path) -> str | None:
    """Return the contents of failure.txt, or None."""
    with suppress(FileNotFoundError):
        return (folder / FAILURE).read_text("utf-8", "replace").strip()
    return None


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the contents of summary.json, or None. Raises FolderError if it is damaged."""
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise FolderError(f"{path}:{error.lineno}: damaged: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise FolderError(f"{path}: damaged: {error}") from None
    if not isinstance(summary, dict):
        raise FolderError(f"{path}:1: damaged: a JSON object is expected")
    return summary


def digest_function(place: Path, name: str) -> str:
    """Return the recorded name of a digest function, where it is known. Raises FolderError."""
    if name not in FUNCTIONS:
        raise FolderError(
            f"{place}: its digests are made by {name}, which this version of gradplane does not"
            f" know (it knows {', '.join(FUNCTIONS)}): use the version that recorded it"
        )
    return name


def read_lines(path: Path, *, unfinished: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the objects of a .jsonl file.

    Lines of older versions have today's names. unfinished: the run was stopped while it wrote the
    file, so it may be missing, and its last line may be cut, which is then left out. Raises
    FolderError, which names file and line."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if unfinished and not line.endswith(b"\n"):
                    return
                yield _renamed(path.name, _object(line, f"{path}:{number}"))
    except FileNotFoundError:
        if not unfinished:
            raise FolderError(f"{path}: missing") from None
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None


def _renamed(file: str, line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of an older version, which said `round` for a training round and for a use of
    a slot, with today's names."""
    if "round" not in line or line.get("kind") == "round":
        return line
    training = file in (METRICS, LINKS) or line.get("kind") in ("crash", "join")
    name = "training_round" if training else "use"
    return {name if key == "round" else key: value for key, value in line.items()}


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
        found = json.loads(text)
    except UnicodeDecodeError as error:
        byte = line[error.start]
        text = f"byte 0x{byte:02x} in column {error.start + 1} is no text"
        raise FolderError(f"{place}: damaged: {text}") from None
    except json.JSONDecodeError as error:
        cut = text.startswith("{") and text.isprintable()  # without the line's end
        what = "the line is cut" if cut else f"column {error.colno}: {error.msg}"
        raise FolderError(f"{place}: damaged: {what}") from None
    if not isinstance(found, dict):
        raise FolderError(f"{place}: damaged: a JSON object is expected")
    return found


def ask_intervention(folder: Path, intervention: Intervention) -> None:
    """Ask the run in the folder for an intervention."""
    with (folder / INTERVENTIONS).open("a", encoding="utf-8") as file:
        file.write(intervention.to_json() + "\n")


class AskedInterventions:
    """Called, returns the interventions that were asked for since the last call.

    The file is looked at every `pause` seconds of the wall clock at most."""

    def __init__(self, folder: Path, pause: float = 0.05) -> None:
        self._path, self._pause = folder / INTERVENTIONS, pause
        self._place, self._next = 0, 0.0

    def __call__(self) -> list[Intervention]:
        """Return the new interventions, in their order."""
        now = time.monotonic()
        if now < self._next:
            return []
        self._next = now + self._pause
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._place += len(whole)
        return [Intervention.from_json(line) for line in whole.decode().splitlines()]
