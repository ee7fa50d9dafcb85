"""The exchanges of a script's run: what each rank gave to each reduce, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.hosts import vector_file
from gradplane.hosts.reducer import VECTORS
from gradplane.hosts.vector_file import Array
from gradplane.runs.records.arrival_columns import expanded
from gradplane.runs.records.run_folder import FolderError, read_lines
from gradplane.runs.records.script_run import HOSTS

Line = dict[str, Any]

_ARRIVALS = ("arrivals", "arrival", "norm")


@dataclass(frozen=True)
class RankLog:
    """The log of a rank that joined: its lines, and the file of its vectors beside it."""

    path: Path
    lines: list[Line]

    @property
    def reduces(self) -> list[Line]:
        """The reduces that ended, by ticket."""
        return sorted(self.of("reduce"), key=lambda line: int(line["ticket"]))

    def of(self, *kinds: str) -> list[Line]:
        """Return the lines of some kinds."""
        return [line for line in self.lines if line["kind"] in kinds]

    def arrivals(self) -> Iterator[Line]:
        """Yield the results that came, chunk by chunk. Raises FolderError for damaged lines."""
        return expanded(self.of(*_ARRIVALS), self.path)

    def vector(self, reduce: Line) -> Array | None:
        """Return what a reduce was given; None where it was not kept. Raises FolderError."""
        place = reduce.get("vector")
        if place is None:
            return None
        file = self.path.with_suffix(VECTORS)
        try:
            return vector_file.read(file, (place[0], place[1]), reduce["values"])
        except OSError as error:
            raise FolderError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise FolderError(f"{file}: damaged: {error}") from None


def read(folder: Path) -> list[RankLog]:
    """Return the logs of the ranks that reduced, in their order. Raises FolderError."""
    logs = [path.with_suffix(".jsonl") for path in (folder / HOSTS).glob("*.json")]
    found = [RankLog(path, list(read_lines(path, unfinished=True))) for path in logs]
    ranks = [log for log in found if log.of("reduce")]
    return sorted(ranks, key=lambda log: int(log.of("reduce")[0]["worker"]))
