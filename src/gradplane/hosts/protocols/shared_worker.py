"""A worker's side of reduces in slots that jobs share (docs/shared-memory.md).

It is a switch's worker whose aggregator is, in the end, its job's server. Of a chunk, one packet is
for the switch to add: all others, which a timer or the server brought, are direct. As a switch may
lose what is in a slot, the server asks for the chunks that it lacks.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from gradplane._kernels import njit
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols import chunk_table
from gradplane.hosts.protocols.chunk_table import AFTER, PENDING, WAITING, Ints
from gradplane.hosts.protocols.partition import WorkerPartition
from gradplane.hosts.protocols.switch_packets import (
    BITMAP,
    NUMBER,
    WORKERS,
    Results,
    write_checksum,
)
from gradplane.hosts.protocols.switch_reduce import SwitchReduce
from gradplane.hosts.protocols.switch_states import PartitionState
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type

_DIRECT, _COUNT_AT = aggregation.DIRECT, aggregation.COUNT_AT


class SharedWorker(SwitchWorker):
    """One worker's reduces; see SwitchWorker. The job waits for all workers, and retransmits."""

    scatters = False  # the server has the sums of all chunks, for whoever asks

    def __init__(self, job: JobConfig, worker: int, granularity: int = 0) -> None:
        super().__init__(job, worker, granularity)
        self._bit = 1 << worker
        self._asked: set[int] = set()  # chunks that the server wants and that are not encoded yet

    def _attempt(self, reduce: SwitchReduce, indices: Ints, now: int) -> None:
        again = indices[reduce.table["attempts"][indices] > 0]
        for index in again.tolist():
            self._make_direct(reduce, index)
        super()._attempt(reduce, indices, now)

    def _open(self, reduce: SwitchReduce, part: WorkerPartition, norm: int | None) -> None:
        super()._open(reduce, part, norm)
        for number in [n for n in self._asked if n < part.stop]:
            self._asked.remove(number)
            if number >= part.first:
                self._make_direct(reduce, number - reduce.first)

    def _asked_for(self, results: Results, now: int) -> None:
        """Send chunks that the server lacks; one whose turn has not come is direct once it has."""
        for number, bitmap in results.parsed[:, [NUMBER, BITMAP]].tolist():
            if not bitmap & self._bit:
                continue
            reduce = self._find(number)
            if reduce is None:
                if number >= self._allocated:
                    self._asked.add(number)
                continue
            index = number - reduce.first
            row = reduce.table[index]
            row["notices"] += 1
            if row["state"] == PENDING:
                chunk = np.array([index])
                chunk_table.retry(reduce.table, chunk, AFTER)
                self._attempt(reduce, chunk, now)
            elif row["state"] == WAITING:
                if reduce.part_of(index).stage is PartitionState.SENDING:
                    self._make_direct(reduce, index)
                else:
                    self._asked.add(number)

    def _other_epoch(self, results: Results, now: int) -> None:
        """Heed notices about packets of the own epoch: those about others may be of other lives."""
        refused = results.packets[:, _COUNT_AT + 1]
        for epoch in results.parsed[refused == self._packets.epoch, WORKERS].tolist():
            self._enter(epoch, now)

    @staticmethod
    def _make_direct(reduce: SwitchReduce, index: int) -> None:
        """Write into a chunk's packet that no switch may add it."""
        part = reduce.part_of(index)
        _make_direct(part.packets[reduce.first + index - part.first])

    _handlers: ClassVar[dict[Type, Callable[..., None]]] = {
        **SwitchWorker._handlers,
        Type.STRAGGLER: _asked_for,
        Type.EPOCH: _other_epoch,
    }


@njit(cache=True, nogil=True)
def _make_direct(row):  # type: ignore[no-untyped-def]
    row[1] |= _DIRECT
    write_checksum(row)
