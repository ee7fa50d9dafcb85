"""Lines of kind "arrivals": all chunks of one worker's reduce, as columns; and the lines of kind
"arrival", one a chunk, that they stand for.

docs/architecture.md lists the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradplane.hosts.packed_columns import unpack
from gradplane.runs.records.run_folder import FolderError

Line = dict[str, Any]

_COLUMNS = ("count", "bitmap", "attempts", "notices", "digest", "at")
_SENT = "sent"  # a column that lines of older versions lack


def expanded(lines: Iterable[Line], path: object) -> Iterator[Line]:
    """Yield the lines, each of kind "arrivals" as the lines of its chunks. Raises FolderError that
    names the line of `path` whose columns are damaged.
    """
    for number, line in enumerate(lines, 1):
        if line.get("kind") != "arrivals":
            yield line
            continue
        try:
            yield from _chunks(line)
        except (ValueError, TypeError, AttributeError) as error:
            raise FolderError(f"{path}:{number}: damaged: {error}") from None


def _chunks(line: Line) -> Iterator[Line]:
    columns = [unpack(line[name], line["chunks"]).tolist() for name in _COLUMNS]
    sent = unpack(line[_SENT], line["chunks"]).tolist() if _SENT in line else None
    who = {"kind": "arrival"} | {name: line[name] for name in ("job", "worker", "ticket")}
    slots = line["slots"]
    for index, values in enumerate(zip(*columns, strict=True)):
        number = line["first"] + index
        count, bitmap, attempts, notices, digest, at = values
        yield (
            who
            | {
                "slot": number % slots,
                "round": number // slots + 1,
                "result": "in time" if count else "lost",
                "count": count,
                "bitmap": f"{bitmap:016x}",
                "digest": f"{digest:016x}" if count else None,
                "attempts": attempts,
                "notices": notices,
                "at": at,
            }
            | ({} if sent is None else {_SENT: sent[index]})
        )
