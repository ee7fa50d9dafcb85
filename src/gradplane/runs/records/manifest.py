"""The run folder's manifest.json: what the run was to do, and a digest of each file it wrote.

It is written when a run starts (with experiment.toml's digest), when its training is finished, and
when its baseline is. Reports, page by page, may be written again and are not listed. Folders of
older versions have no manifest: their files are checked for consistency only.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gradplane._shipped_programs import shipped
from gradplane._whole_files import write_whole
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import dumps
from gradplane.experiment.schema import Experiment
from gradplane.hosts.digest import OLDER
from gradplane.runs.records import own_parts
from gradplane.runs.records.run_folder import (
    EXPERIMENT,
    FAILURE,
    MANIFEST,
    SUMMARY,
    FolderError,
    write_json,
)

_NOT_RECORDS = ("*.html", FAILURE, MANIFEST, ".*")  # files that are written again, or not yet


class FileDigest(BaseModel):
    """Size and SHA-256 of a file; `lines` is how many lines a text file has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    lines: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "FileDigest":
        """Return the digest of a file as it is now; OSError if it cannot be read."""
        sha256, size, lines = hashlib.sha256(), 0, 0
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sha256.update(block)
                size += len(block)
                lines += block.count(b"\n")
        return cls(bytes=size, lines=lines, sha256=sha256.hexdigest())


class Extent(BaseModel):
    """The number of rounds that a job trains, and of values in its gradient."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int
    values: int


def extents(deployment: Deployment) -> tuple[Extent, ...]:
    """Return those of all jobs."""
    return tuple(Extent(rounds=job.rounds, values=job.values) for job in deployment.jobs)


def program_digest(deployment: Deployment) -> str | None:
    """Return the SHA-256 of users' P4 programs with their includes; None if all are shipped."""
    section = deployment.experiment.switch
    names = [name for name in deployment.setups if section.of(name).program not in shipped()]
    own = {id(program): program for program in map(deployment.program, names)}
    if not own:
        return None
    return hashlib.sha256(b"".join(one.packed_source() for one in own.values())).hexdigest()


class Manifest(BaseModel):
    """The contents of manifest.json. `files` is keyed by the path inside the folder.

    program: the digest of users' P4 programs, which are outside the folder. digests: the function
    that made those in the records.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = 1
    network: str
    machine: dict[str, Any]
    jobs: tuple[Extent, ...]
    program: str | None = None
    digests: str = OLDER
    files: dict[str, FileDigest] = {}

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Return the folder's manifest; None if it has none. Raises FolderError."""
        path = folder / MANIFEST
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FolderError(f"{path}: {error.strerror}") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            what = f"{place}: {first['msg']}" if place else first["msg"]
            raise FolderError(f"{path}: damaged: {what}") from None

    def write(self, folder: Path) -> None:
        """Write manifest.json in one step: it is the old one or the new one, never half of it."""
        write_json(folder / MANIFEST, self.model_dump())

    def without(self, name: str) -> "Manifest":
        """Return the manifest without that file."""
        files = {path: digest for path, digest in self.files.items() if path != name}
        return self.model_copy(update={"files": files})

    def including(self, folder: Path, names: Iterable[str]) -> "Manifest":
        """Return the manifest with the current digests of these files of the folder."""
        new = {name: FileDigest.of(folder / name) for name in names}
        return self.model_copy(update={"files": self.files | new})

    def mismatches(self, folder: Path) -> Iterator[str]:
        """Yield the listed files that are missing, or are not as the run wrote them."""
        for name, recorded in self.files.items():
            try:
                same = FileDigest.of(folder / name) == recorded
            except OSError:
                same = False
            if not same:
                yield name


def start(folder: Path, experiment: Experiment, manifest: Manifest) -> None:
    """Write experiment.toml, resolved, so that it alone repeats the run, and the manifest."""
    write_whole(folder / EXPERIMENT, dumps(experiment.values()))
    own_parts.keep(folder, experiment)
    manifest.including(folder, [EXPERIMENT]).write(folder)


def finish(folder: Path, summary: dict[str, Any]) -> None:
    """Write summary.json, and the digests of all records into the manifest if there is one.

    A training is finished when it is in summary.json; a baseline, when it is there too."""
    manifest = Manifest.read(folder)
    if manifest is not None:  # whenever this is interrupted, no digest is a wrong one
        manifest.without(SUMMARY).write(folder)
    write_json(folder / SUMMARY, summary)
    if manifest is not None:
        manifest.including(folder, _records(folder)).write(folder)


def _records(folder: Path) -> list[str]:
    """Return all files of the folder that a run writes once."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        path.relative_to(folder).as_posix()
        for path in files
        if not any(path.match(pattern) for pattern in _NOT_RECORDS)
    ]
