"""A worker's side of reduces through the P4 program (DESIGN.md, the worker's rules; THC, section 6
and C.1).

A job's chunks are numbered over its life. Chunk c uses slot c mod S in round c div S + 1 and is
sent when chunk c - S/2 is done, so the chunks form S/2 chains, each with one chunk in flight. A
slot is free when it is reused: with a full quorum, a worker that sends c has the result of c - S/2,
so all workers sent c - S/2, so all have the result of c - S, which is the slot's last.

A partition's norm is exchanged in the slot and round of its first chunk, when that chunk's turn
comes; the partition's other chunks wait for it.

A chunk is done when its result is in hand or when it is given up: by its timeout in lossy mode; in
lossy mode and where results leave at a quorum, also when the slot is seen in a later round. A
result of a chunk that was given up is still used until the reduce is delivered. A worker that never
got the norm gives up chunk after chunk at their timeouts, without sending them, and so keeps in
step with the others. The states and events are the tables of `switch_states`.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Action, CancelTimer, Deliver, Record, SetTimer
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.partition import Chunk, WorkerPartition
from gradplane.hosts.protocols.results import Floats, Reduced, ReduceError, checked_vector
from gradplane.hosts.protocols.switch_log import SwitchLog
from gradplane.hosts.protocols.switch_packets import SwitchPackets
from gradplane.hosts.protocols.switch_states import (
    ChunkEvent,
    ChunkState,
    PartitionEvent,
    PartitionState,
)
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

_MAX_BACKOFF = 16
_NORMS_A_TIMEOUT = 4  # lossy: a lost norm is replaced before the others give up the chunks


@dataclass
class _Reduce:
    ticket: int
    tensor: int
    vector: Floats
    parts: list[WorkerPartition]
    left: int  # chunks that are not done


class SwitchWorker:
    """One worker's reduces, several in flight at once.

    Actions: Send, SetTimer, CancelTimer, Deliver(ticket, Reduced), Record (arrival, norm, stall).
    `refused` counts packets that were foreign or invalid, by reason. Raises ConfigError if
    the switch cannot sum the job's codes.
    """

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._codec = summed_codec(job)
        self._packets, self._log = SwitchPackets(job, worker), SwitchLog(job, worker)
        self._lossy = job.reliability == "lossy"
        # Where the switch waits for all workers, none is left behind: only its result ends a chunk.
        self._exact = not self._lossy and job.quorum == job.workers
        self._reduces: dict[int, _Reduce] = {}
        self._parts: list[WorkerPartition] = []  # of undelivered reduces, ordered by chunk
        self._states: dict[int, list[Any]] = {}  # by tensor: the codec's, one a partition
        self._sizes: dict[int, int] = {}  # by tensor: n
        self._allocated = 0  # chunks so far
        self._turn = list(range(job.window))  # by chain: the chunk whose turn it is
        self._missed: dict[
            int, tuple[int, Record]
        ] = {}  # by slot: the last chunk delivered without result
        self._asked: dict[int, Chunk] = {}  # status requests in flight, by slot
        self._out: list[Action] = []
        self.refused: Counter[str] = Counter()

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start reducing float32[n]. All workers use the same tickets, in the same order, equal n.

        `tensor` says which error feedback is used; a tensor keeps its n and has one reduce in
        flight at a time. Raises ReduceError where these rules break, and for non-finite values.
        """
        vector = checked_vector(vector, self._worker, ticket)
        self._check(ticket, tensor, vector.size)
        reduce = self._cut(ticket, tensor, vector)
        self._reduces[ticket] = reduce
        self._parts += reduce.parts
        if reduce.left == 0:
            self._deliver(reduce, now)
        self._advance_all(now)
        return self._taken()

    def receive(self, ip: str, source_port: int, payload: bytes, now: int) -> list[Action]:
        """Take a datagram for the worker's aggregation port; invalid ones are counted."""
        packet = self._packets.parse((ip, source_port), payload)
        if isinstance(packet, str):
            self.refused[packet] += 1
            return []
        header, body = packet
        self._handlers[header.type](self, header, body, now)
        return self._taken()

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out."""
        assert isinstance(key, tuple), key
        self._timers[key[0]](self, key[1], now)
        return self._taken()

    # Reduces

    def _check(self, ticket: int, tensor: int, n: int) -> None:
        where = f"worker {self._worker}, ticket {ticket}, tensor {tensor}"
        for other in self._reduces.values():
            if ticket == other.ticket or tensor == other.tensor:
                raise ReduceError(
                    f"{where}: ticket {other.ticket} is reducing tensor {other.tensor}: "
                    "wait for its result"
                )
        if self._sizes.setdefault(tensor, n) != n:
            raise ReduceError(
                f"{where}: {n} values, earlier {self._sizes[tensor]}: use another tensor number"
            )

    def _cut(self, ticket: int, tensor: int, vector: Floats) -> _Reduce:
        """Cut the vector into partitions, each of which the codec treats as a separate vector."""
        pieces = [vector[cut.start : cut.stop] for cut in self._codec.partitions(vector.size)]
        states = self._states.get(tensor) or [self._codec.start(x.size) for x in pieces]
        parts = []
        for k, (x, state) in enumerate(zip(pieces, states, strict=True)):
            part = WorkerPartition(self._job, self._codec, ticket, k, self._allocated, x, state)
            self._allocated += len(part.chunks)
            parts.append(part)
        return _Reduce(ticket, tensor, vector, parts, sum(len(part.chunks) for part in parts))

    def _deliver(self, reduce: _Reduce, now: int) -> None:
        del self._reduces[reduce.ticket]
        self._parts = [part for part in self._parts if part.ticket != reduce.ticket]
        self._states[reduce.tensor] = [part.state for part in reduce.parts]
        for chunk in (chunk for part in reduce.parts for chunk in part.chunks):
            if chunk.count == 0:
                record = self._log.lost(chunk, now)
                self._missed[chunk.slot] = chunk.number, record
                self._do(record)
        self._do(Deliver(reduce.ticket, _reduced(reduce)))

    # Chunks and their turns

    def _find(self, number: int) -> Chunk | None:
        """Return the chunk of that number, if it belongs to a reduce in flight."""
        at = bisect_right(self._parts, number, key=lambda part: part.first) - 1
        if at < 0:
            return None
        part = self._parts[at]
        index = number - part.first
        return part.chunks[index] if index < len(part.chunks) else None

    def _current(self, slot: int) -> Chunk | None:
        """Return the chunk in this slot whose turn it is."""
        chunk = self._find(self._turn[slot % self._job.window])
        return chunk if chunk and chunk.slot == slot else None

    def _advance_all(self, now: int) -> None:
        for chain in range(self._job.window):
            self._advance(chain, now)

    def _advance(self, chain: int, now: int) -> None:
        """Start the chain's next chunk that is not done, if its partition is encoded."""
        while chunk := self._find(self._turn[chain]):
            part = chunk.part
            if part.stage is PartitionState.NEW and chunk.number == part.first:
                self._start_partition(part, now)
            if part.stage in (PartitionState.NEW, PartitionState.NORM) or not chunk.awaits_turn:
                return
            if chunk.step(ChunkEvent.TURN) is ChunkState.WAITING:
                self._attempt(chunk, now)
                return
            self._end(chunk, now)  # the result of the others came before its turn

    def _attempt(self, chunk: Chunk, now: int) -> None:
        part = chunk.part
        if part.stage is PartitionState.SENDING:
            assert part.norm is not None
            self._do(self._packets.make(Type.INDICES, chunk, part.norm, part.indices(chunk)))
            chunk.attempts += 1
        self._do(SetTimer(("chunk", chunk.number), now + self._patience(chunk.attempts)))

    def _finish(self, chunk: Chunk, now: int) -> None:
        """End a chunk, with its result or without, and give the next in its chain its turn."""
        self._do(CancelTimer(("chunk", chunk.number)))
        self._end(chunk, now)
        self._advance(chunk.number % self._job.window, now)

    def _end(self, chunk: Chunk, now: int) -> None:
        self._turn[chunk.number % self._job.window] += self._job.window
        reduce = self._reduces[chunk.part.ticket]
        reduce.left -= 1
        if reduce.left == 0:
            self._deliver(reduce, now)

    def _chunk_timeout(self, number: int, now: int) -> None:
        chunk = self._find(number)
        if chunk is None:
            return
        last = self._lossy or chunk.part.stage is PartitionState.SILENT
        left = chunk.step(ChunkEvent.EXPIRY if last else ChunkEvent.RETRY)
        if left is not ChunkState.PENDING:
            return
        if last:
            self._ask_status(chunk, now)
            self._finish(chunk, now)
        else:  # data first: a short queue may have room for only one packet
            self._attempt(chunk, now)
            self._ask_status(chunk, now)

    def _sums(self, header: Header, body: bytes, now: int) -> None:
        number = self._packets.number(header)
        chunk = self._find(number)
        if chunk is None:
            self._late(number, header, body, now)
        elif not chunk.has_result:
            self._result(chunk, header, body, now)
        self._moved_on(header, now)

    def _result(self, chunk: Chunk, header: Header, body: bytes, now: int) -> None:
        sums = aggregation.unpack_sums(body, header.sum_bits)
        reason = chunk.part.refusal(header, sums)
        if reason:
            self.refused[reason] += 1
            return
        chunk.part.accept(chunk, header, sums)
        self._do(self._log.arrived(chunk, header, body, now))
        if chunk.step(ChunkEvent.RESULT) is ChunkState.PENDING:
            self._finish(chunk, now)

    def _late(self, number: int, header: Header, body: bytes, now: int) -> None:
        """Record a result of a delivered reduce if it was missed there."""
        missed, record = self._missed.get(header.slot, (None, None))
        if record and missed == number:
            del self._missed[header.slot]
            self._do(self._log.late(record, header, body, now))

    # Slots that are in a later round already

    def _notice(self, header: Header, body: bytes, now: int) -> None:
        if chunk := self._current(header.slot):
            chunk.notices += 1
        self._moved_on(header, now)

    def _moved_on(self, header: Header, now: int) -> None:
        """Stop waiting for a round of the slot that is earlier than the header's."""
        chunk = self._current(header.slot)
        if self._exact or chunk is None or chunk.round >= header.round:
            return
        if chunk.state is ChunkState.PENDING:
            chunk.step(ChunkEvent.OVERTAKEN)
            self._finish(chunk, now)
        elif header.type is Type.STRAGGLER:
            left = chunk.part.step(PartitionEvent.OVERTAKEN)
            if left is PartitionState.NORM:
                self._norm_lost(chunk.part, now)

    # The norm stage

    def _start_partition(self, part: WorkerPartition, now: int) -> None:
        norm = part.local_norm()
        part.step(PartitionEvent.NO_NORM if norm is None else PartitionEvent.TURN)
        if norm is None:
            part.encode(None, self._worker)
            self._advance_all(now)
        else:
            self._ask_norm(part, norm, now)

    def _ask_norm(self, part: WorkerPartition, norm: int, now: int) -> None:
        self._do(self._packets.make(Type.NORM, part.chunks[0], norm))
        part.norm_attempts += 1
        wait = self._patience(part.norm_attempts)
        if self._lossy:
            wait = self._job.timeout_ns // _NORMS_A_TIMEOUT
        self._do(SetTimer(("norm", part.first), now + wait))

    def _norm_timeout(self, number: int, now: int) -> None:
        chunk = self._find(number)
        if chunk is None:
            return
        part, attempts = chunk.part, _NORMS_A_TIMEOUT * (self._job.retries + 1)
        last = self._lossy and part.norm_attempts >= attempts
        left = part.step(PartitionEvent.EXPIRY if last else PartitionEvent.RETRY)
        if left is not PartitionState.NORM:
            return
        if last:
            self._norm_lost(part, now)
        else:
            norm = part.local_norm()
            assert norm is not None
            self._ask_norm(part, norm, now)
        if part.norm_attempts % _NORMS_A_TIMEOUT == 0 or not self._lossy:
            self._ask_status(chunk, now, aggregation.STATUS_NORM)

    def _norm_lost(self, part: WorkerPartition, now: int) -> None:
        part.fall_silent()
        self._do(CancelTimer(("norm", part.first)))
        self._do(self._log.norm("lost", part, now))
        self._advance_all(now)

    def _norm_result(self, header: Header, body: bytes, now: int) -> None:
        chunk = self._find(self._packets.number(header))
        if chunk is None or chunk.number != chunk.part.first:
            return
        part = chunk.part
        if not aggregation.is_norm(header.norm) or part.norm not in (None, header.norm):
            self.refused["another norm"] += 1
            return
        left = part.step(PartitionEvent.NORM_RESULT)
        if left is PartitionState.NORM:
            part.encode(header.norm, self._worker)
            self._do(CancelTimer(("norm", part.first)))
            self._do(self._log.norm("in time", part, now, header))
            self._advance_all(now)
        elif left is PartitionState.SILENT:
            self._do(self._log.norm("late", part, now, header))

    # Status of a slot that a chunk waits for, for the log

    def _ask_status(self, chunk: Chunk, now: int, flags: int = 0) -> None:
        self._asked[chunk.slot] = chunk
        self._do(self._packets.make(Type.STATUS, chunk, flags=flags))
        self._do(SetTimer(("status", chunk.slot), now + self._job.timeout_ns))

    def _status(self, header: Header, body: bytes, now: int) -> None:
        chunk = self._asked.pop(header.slot, None)
        if chunk:
            self._do(CancelTimer(("status", header.slot)))
            self._do(self._log.stall(chunk, self._missing(chunk, header), now))

    def _status_timeout(self, slot: int, now: int) -> None:
        chunk = self._asked.pop(slot, None)
        if chunk:
            self._do(self._log.stall(chunk, None, now))

    def _missing(self, chunk: Chunk, header: Header) -> list[int] | None:
        if header.round > chunk.round:
            return None
        bitmap = header.bitmap if header.round == chunk.round else 0
        return [w for w in range(self._job.workers) if not bitmap >> w & 1]

    def _patience(self, attempts: int) -> int:
        """Return the timeout, which doubles with each attempt up to a limit."""
        return self._job.timeout_ns * min(1 << max(attempts - 1, 0), _MAX_BACKOFF)

    def _do(self, action: Action) -> None:
        self._out.append(action)

    def _taken(self) -> list[Action]:
        out, self._out = self._out, []
        return out

    _handlers: ClassVar[dict[Type, Callable[["SwitchWorker", Header, bytes, int], None]]] = {
        Type.NORM_RESULT: _norm_result,
        Type.SUMS: _sums,
        Type.STRAGGLER: _notice,
        Type.STATUS: _status,
    }
    _timers: ClassVar[dict[str, Callable[["SwitchWorker", int, int], None]]] = {
        "chunk": _chunk_timeout,
        "norm": _norm_timeout,
        "status": _status_timeout,
    }


def _reduced(reduce: _Reduce) -> Reduced:
    means = [part.decode() for part in reduce.parts]
    counts = np.array([c.count for part in reduce.parts for c in part.chunks], np.int64)
    return Reduced(
        mean=np.concatenate(means) if means else np.zeros(0, np.float32),
        counts=counts,
        missed=int((counts == 0).sum()),
        gradient=digest(reduce.vector),
        codes=digest(*(part.codes for part in reduce.parts)),
        sums=digest(*(part.sums for part in reduce.parts)),
    )
