"""The log lines of reduces through the switch; their fields are listed in docs/architecture.md.

`SlotStatus` asks who is missing in a slot when a wait takes long; only the log uses the answer.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest, function, row_digests
from gradplane.hosts.packed_columns import Packed, pack
from gradplane.hosts.protocols.actions import Action, Record
from gradplane.hosts.protocols.once import Once
from gradplane.hosts.protocols.partition import WorkerPartition
from gradplane.hosts.protocols.switch_packets import BITMAP, NUMBER, WORKERS, Results, SwitchPackets
from gradplane.hosts.protocols.switch_reduce import SwitchReduce
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type

_HEX = "%016x"


class SwitchLog:
    """The maker of one worker's Records."""

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job = job
        self._transport = job.transport
        self._who = {"job": job.number, "worker": worker}
        self._rack = job.rack(worker)
        # By slot: the last chunk that was delivered without its result, and its line.
        self._missed: dict[int, tuple[int, dict[str, Any]]] = {}

    def arrivals(self, reduce: SwitchReduce, at: int) -> Iterator[Record]:
        """Yield the line of all chunks of a reduce that is delivered, if it has any."""
        table = reduce.table
        if not len(table):
            return
        lost = table["count"] == 0
        none_lost = not lost.any()
        place: dict[str, Any] = {
            "ticket": reduce.ticket,
            "first": reduce.first,
            "slots": self._transport.slots,
        }
        place |= {"chunks": len(table)}
        columns = {name: table[name] for name in ("count", "bitmap", "attempts", "notices")}
        if self._job.leaves:
            place |= {"rack": list(self._rack), "workers": self._job.workers}
        arrived = table["at"] if none_lost else np.where(lost, at, table["at"])
        columns |= {"at": arrived, "sent": table["sent_at"]}
        packed: dict[str, Any] = {name: pack(column) for name, column in columns.items()}
        begin, end = reduce.own.tolist()
        if end - begin < len(table):
            packed["own"] = begin, end
        own = reduce.sums[begin:end], lost[begin:end]
        packed["digest"] = _packed_digests(function(), *own, begin, len(table))
        yield Record("arrivals", self._who | place | packed)
        for index in [] if none_lost else np.flatnonzero(lost).tolist():
            slot, round = self._slot(reduce.first + index)
            counts = {name: int(table[name][index]) for name in ("attempts", "notices")}
            line = {"ticket": reduce.ticket, "slot": slot, "use": round} | counts
            self._missed[slot] = reduce.first + index, line

    def late(self, results: Results, i: int, at: int) -> Iterator[Record]:
        """Yield the line of a result of a reduce that was delivered without it."""
        number = int(results.parsed[i, NUMBER])
        slot = number % self._transport.slots
        missed, line = self._missed.get(slot, (None, {}))
        if missed != number:
            return
        del self._missed[slot]
        sums = results.sums(i)
        answer = {
            "result": "late",
            "count": int(results.parsed[i, WORKERS]),
            "bitmap": self._hex(int(results.parsed[i, BITMAP])),
            "digest": sums and digest(aggregation.unpack_sums(sums, self._transport.sum_bits)),
        }
        yield Record("arrival", self._who | line | answer | {"at": at})

    def norm(
        self,
        result: str,
        reduce: SwitchReduce,
        part: WorkerPartition,
        at: int,
        norm: int | None = None,
        bitmap: int = 0,
    ) -> Record:
        """Return the line of a norm stage's end: "in time" or "lost"; and "late" after "lost"."""
        slot, round = self._slot(part.first)
        place = {"ticket": reduce.ticket, "partition": part.index}
        where = {"slot": slot, "use": round, "result": result}
        who = _HEX % 0 if norm is None else self._hex(bitmap)
        answer = {"norm": norm, "bitmap": who, "at": at}
        return Record("norm", self._who | place | where | answer)

    def timeout(
        self, reduce: SwitchReduce, stage: str, numbers: Sequence[int], since: int | None, at: int
    ) -> Record:
        """Return the line of a retransmission timer that ran out, for the norm or for chunks.

        stage: "norm", "sums" (they are sent again) or "given up". since: when the last attempt of
        the first was sent, None where nothing was."""
        slots = [list(self._slot(number)) for number in numbers]
        fields = {"ticket": reduce.ticket, "stage": stage, "slots": slots, "since": since, "at": at}
        return Record("timeout", self._who | fields)

    def redo(self, epoch: int, at: int) -> Record:
        """Return the line of a worker that goes on in another epoch, and sends packets again."""
        return Record("redo", self._who | {"epoch": epoch, "at": at})

    def window(self, reduce: SwitchReduce, window: dict[str, float], at: int) -> Record:
        """Return the line of a worker's congestion window at a reduce's end."""
        return Record("window", self._who | {"ticket": reduce.ticket} | window | {"at": at})

    def stall(self, number: int, missing: list[int] | None, at: int) -> Record:
        """Return the line of a long wait; `missing` are the absent workers, None if unknown."""
        slot, round = self._slot(number)
        fields = {"slot": slot, "use": round, "missing": missing, "at": at}
        return Record("stall", self._who | fields)

    def _hex(self, bitmap: int) -> str:
        """Return a bitmap of this worker's switch as one of the job's workers.

        Where several switches sum, those of the other racks are known only if all workers are."""
        job, bits = self._job, bitmap & (1 << 64) - 1
        if job.leaves and job.quorum == job.workers:
            bits = (1 << job.workers) - 1
        elif job.leaves:
            bits = sum((bits >> child & 1) << worker for child, worker in enumerate(self._rack))
        return _HEX % bits

    def _slot(self, number: int) -> tuple[int, int]:
        return aggregation.place(number, self._transport.slots)


@Once
def _packed_digests(
    function: str, sums: npt.NDArray[Any], lost: npt.NDArray[np.bool_], begin: int, chunks: int
) -> Packed:
    """Return the column of the rows' digests, 0 where one is lost; the rows are those from `begin`
    on of so many, and 0 stands for the others."""
    column = np.zeros(chunks, np.uint64)
    column[begin : begin + len(lost)] = np.where(lost, np.uint64(0), row_digests(function, sums))
    return pack(column)


class SlotStatus:
    """One worker's status requests: one at a time, and at most one in a `timeout_ns`."""

    def __init__(self, job: JobConfig, worker: int, packets: SwitchPackets, log: SwitchLog) -> None:
        self._packets, self._log = packets, log
        self._rack, self._levels = job.rack(worker), bool(job.leaves)
        self._transport = job.transport
        self._asked: int | None = None  # the chunk that it is about
        self._next = 0  # when the next one may be sent
        self.deadline: int | None = None
        """When a request counts as unanswered."""

    def ask(self, number: int, now: int, flags: int = 0) -> list[Action]:
        """Ask for the state of a chunk's slot, unless a request was made a short while ago."""
        if self._asked is not None or now < self._next:
            return []
        self._asked, self._next = number, now + self._transport.timeout_ns
        self.deadline = self._next
        return [self._packets.make(Type.STATUS, number, flags=flags)]

    def answer(self, number: int, bitmap: int, now: int) -> list[Action]:
        """Record the absent workers; `number` is that of the slot's present chunk."""
        asked = self._asked
        if asked is None or (number - asked) % self._transport.slots:
            return []
        self._asked = self.deadline = None
        missing = None
        if number <= asked:
            here = bitmap if number == asked else 0
            missing = [w for child, w in enumerate(self._rack) if not here >> child & 1]
        if self._levels and not missing:
            missing = None  # they are of another rack
        return [self._log.stall(asked, missing, now)]

    def timer(self, now: int) -> list[Action]:
        """Record a request that was not answered in time."""
        if self._asked is None or self.deadline is None or self.deadline > now:
            return []
        asked, self._asked, self.deadline = self._asked, None, None
        return [self._log.stall(asked, None, now)]
