"""The log lines of reduces through the switch; their fields are listed in docs/architecture.md."""

from typing import Any

from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Record
from gradplane.hosts.protocols.partition import Chunk, WorkerPartition
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header


class SwitchLog:
    """The maker of one worker's Records."""

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._who = {"job": job.number, "worker": worker}

    def lost(self, chunk: Chunk, at: int) -> Record:
        """Return the line of a chunk without which the reduce was delivered."""
        nothing = {"result": "lost", "count": 0, "bitmap": _hex(0), "digest": None}
        return self._record("arrival", self._place(chunk) | nothing, at)

    def arrived(self, chunk: Chunk, header: Header, body: bytes, at: int) -> Record:
        """Return the line of a chunk's result that came in time."""
        return self._record("arrival", self._place(chunk) | _result("in time", header, body), at)

    def late(self, lost: Record, header: Header, body: bytes, at: int) -> Record:
        """Return the line of a late result, of a chunk that was recorded as lost."""
        return self._record("arrival", lost.fields | _result("late", header, body), at)

    def norm(
        self, result: str, part: WorkerPartition, at: int, header: Header | None = None
    ) -> Record:
        """Return the line of a norm stage's end: "in time" or "lost"; and "late" after "lost"."""
        chunk = part.chunks[0]
        place = {"ticket": part.ticket, "partition": part.index}
        slot = {"slot": chunk.slot, "round": chunk.round, "result": result}
        bits, bitmap = (header.norm, header.bitmap) if header else (None, 0)
        answer = {"norm": bits, "bitmap": _hex(bitmap)}
        return self._record("norm", place | slot | answer, at)

    def stall(self, chunk: Chunk, missing: list[int] | None, at: int) -> Record:
        """Return the line of a timeout; `missing` are the absent workers, None if unknown."""
        fields = {"slot": chunk.slot, "round": chunk.round, "missing": missing}
        return self._record("stall", fields, at)

    def _place(self, chunk: Chunk) -> dict[str, Any]:
        names = ("slot", "round", "attempts", "notices")
        return {"ticket": chunk.part.ticket} | {name: getattr(chunk, name) for name in names}

    def _record(self, kind: str, fields: dict[str, Any], at: int) -> Record:
        return Record(kind, self._who | fields | {"at": at})


def _result(result: str, header: Header, body: bytes) -> dict[str, Any]:
    return {
        "result": result,
        "count": header.worker,
        "bitmap": _hex(header.bitmap),
        "digest": digest(aggregation.unpack_sums(body, header.sum_bits)),
    }


def _hex(bitmap: int) -> str:
    return f"{bitmap:016x}"
