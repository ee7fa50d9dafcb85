"""The server of a job that shares a switch's slots with others (docs/shared-memory.md).

It gets partials from the switch, and the codes of packets that the switch did not add; it looks
these up and adds integers, and decodes nothing. A sum has each worker once: it merges what has none
of the workers that it has. What is incomplete after a while, and what overlaps, it asks the missing
workers for. Complete sums, the largest norms and the answers to single workers go to the switch,
which passes them on. A result is kept until its slot is used again, which only workers that have it
do.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, CancelTimer, Send, SetTimer
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type, WireError
from gradplane.hosts.wire.payloads import ECN_CAPABLE, ECN_MARKED, Payloads

TIMER = "ask"
"""The key of a server's only timer."""

_LEAST_WAIT = 100_000  # ns
_DOUBLINGS = 8  # of the wait, each time that nothing has come of asking
Sums = npt.NDArray[np.integer[Any]]


@dataclass
class _Chunk:
    """The use of a slot: the sums of the workers in `bitmap`, and when the others are asked."""

    round: int
    norm: int
    sums: Sums
    bitmap: int = 0
    marked: bool = False  # one of its packets was, at a queue
    ask_at: int | None = None
    asked: int = 0


@dataclass
class _Norm:
    """The norm exchange of a slot: the largest norm of the workers in `bitmap`."""

    round: int
    norm: int = 0
    bitmap: int = 0


class SharedServer:
    """The server of one job.

    Actions: Send, SetTimer, CancelTimer. `refused` counts packets that were foreign or invalid, by
    reason.
    """

    def __init__(self, job: JobConfig, granularity: int = 0) -> None:
        """Set up; it waits no shorter than `granularity`, ns, before it asks."""
        assert job.addresses.server_address is not None
        transport = job.transport
        self._job, self._everyone = job, (1 << job.workers) - 1
        _, self._port = job.addresses.server_address
        self._dtype = f"u{transport.sum_bits // 8}"
        table = np.zeros(1 << transport.code_bits, self._dtype)  # a code beyond it counts 0
        codec = summed_codec(job)
        table[: len(codec.table)] = codec.table
        self._table = table
        # The round trip is with all windows in the queues: a chunk's packets are a part of that.
        trip = transport.round_trip_ns or transport.timeout_ns
        self._wait = max(trip // transport.window, granularity, _LEAST_WAIT)
        self._chunks: dict[int, _Chunk] = {}  # by slot
        self._norms: dict[int, _Norm] = {}
        self.alarm: int | None = None
        """When its timer runs out; None where it is not set."""
        self._tos = {False: ECN_CAPABLE, True: ECN_MARKED} if transport.ecn else {False: 0}
        self._out: list[tuple[bool, bytes]] = []  # marked; packet
        self.refused: Counter[str] = Counter()

    def receive(self, ip: str, source_port: int, payloads: Payloads, now: int) -> list[Action]:
        """Take datagrams of the switch; invalid ones are counted."""
        if (ip, source_port) != self._job.addresses.aggregator:
            self.refused["stranger"] += len(payloads)
            return []
        marked = repeat(False) if payloads.marked is None else payloads.marked.tolist()
        for mark, payload in zip(marked, payloads, strict=False):
            try:
                header, body = aggregation.parse(payload)
            except WireError:
                self.refused["malformed"] += 1
                continue
            self._take(header, body, mark, now)
        return self._taken(now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Ask for what has been missing long enough."""
        self.alarm = None
        for slot, chunk in self._chunks.items():
            if chunk.ask_at is not None and chunk.ask_at <= now:
                self._ask(slot, chunk, now)
        return self._taken(now)

    # Packets

    def _take(self, header: Header, body: bytes, marked: bool, now: int) -> None:
        if reason := self._problem(header):
            self.refused[reason] += 1
        elif header.epoch != self._job.transport.epoch:
            if header.type is not Type.PARTIAL:
                place = header.slot, header.round
                self._answer(Type.EPOCH, *place, count=header.epoch, to=header.worker)
        elif header.type is Type.STATUS:
            self._status(header)
        elif header.type is Type.NORM:
            self._norm(header)
        else:
            self._codes(header, body, marked, now)

    def _problem(self, header: Header) -> str:
        """Return why a packet is refused, or nothing."""
        job, transport = self._job, self._job.transport
        if header.job != job.number or header.worker >= job.workers:
            return "another job"
        if (header.sum_bits, header.code_bits) != (transport.sum_bits, transport.code_bits):
            return "another width"
        if header.slot >= transport.slots:
            return "no such slot"
        if header.type not in (Type.NORM, Type.INDICES, Type.PARTIAL, Type.STATUS):
            return "not for servers"
        if header.type is Type.PARTIAL and not 0 < header.bitmap <= self._everyone:
            return "unknown workers"
        if header.type is Type.NORM and not aggregation.is_norm(header.norm):
            return "no norm"
        return ""

    def _norm(self, header: Header) -> None:
        known = self._norms.get(header.slot)
        later = 1 if known is None else aggregation.ahead(header.round, known.round)
        if known is None or later > 0:
            known = self._norms[header.slot] = _Norm(header.round)
        elif later < 0:
            self.refused["earlier round"] += 1
            return
        to = None
        if known.bitmap == self._everyone:
            to = header.worker
        else:
            known.norm = max(known.norm, header.norm)
            known.bitmap |= 1 << header.worker
        if known.bitmap == self._everyone:
            self._answer(
                Type.NORM_RESULT, header.slot, known.round, known.norm, known.bitmap, to=to
            )

    def _codes(self, header: Header, body: bytes, marked: bool, now: int) -> None:
        known = self._chunks.get(header.slot)
        later = 1 if known is None else aggregation.ahead(header.round, known.round)
        if later < 0:
            self.refused["earlier round"] += 1
            return
        if known is None or later > 0:
            if known is not None and known.bitmap != self._everyone:
                self.refused["round ahead"] += 1
                return
            zeros = np.zeros(aggregation.LANES[self._job.transport.sum_bits], self._dtype)
            known = self._chunks[header.slot] = _Chunk(header.round, header.norm, zeros)
        known.marked |= marked and self._job.transport.ecn
        if header.norm != known.norm:
            self.refused["another norm"] += 1
        elif known.bitmap == self._everyone:
            if header.flags & aggregation.DIRECT:  # else nobody waits for it
                self._result(header.slot, known, to=header.worker)
        else:
            self._merge(header, body, known, now)
            if known.bitmap == self._everyone:
                known.ask_at = None
                self._result(header.slot, known)
            elif known.ask_at is None:
                known.ask_at = now + self._wait

    def _merge(self, header: Header, body: bytes, known: _Chunk, now: int) -> None:
        """Add a packet's sums, or look up its codes, unless some worker in them is known."""
        partial = header.type is Type.PARTIAL
        workers = header.bitmap if partial else 1 << header.worker
        if workers & known.bitmap:
            if workers & ~known.bitmap:  # who is new in it has to come again
                self._ask(header.slot, known, now)
            return
        if partial:
            known.sums += aggregation.unpack_sums(body, header.sum_bits)
        else:
            known.sums += self._table[aggregation.unpack_indices(body, header.code_bits)]
        known.bitmap |= workers

    # Answers

    def _result(self, slot: int, chunk: _Chunk, to: int | None = None) -> None:
        body = aggregation.pack_sums(chunk.sums, self._job.transport.sum_bits)
        place = slot, chunk.round, chunk.norm, chunk.bitmap
        self._answer(Type.SUMS, *place, to=to, body=body, marked=chunk.marked)

    def _ask(self, slot: int, chunk: _Chunk, now: int) -> None:
        """Ask the missing workers for a chunk, which no switch is to add."""
        missing = self._everyone & ~chunk.bitmap
        self._answer(Type.STRAGGLER, slot, chunk.round, chunk.norm, missing)
        chunk.ask_at = now + (self._wait << min(chunk.asked, _DOUBLINGS))
        chunk.asked += 1

    def _status(self, header: Header) -> None:
        """Say who is in a slot's norm or sums here; of the switch's slots nothing is known."""
        about_norm = bool(header.flags & aggregation.STATUS_NORM)
        known = (self._norms if about_norm else self._chunks).get(header.slot)
        flags = aggregation.STATUS_ANSWER | (aggregation.STATUS_NORM if about_norm else 0)
        round, norm, bitmap = header.round, 0, 0
        if known is not None:
            round, norm, bitmap = known.round, known.norm, known.bitmap
        if bitmap == self._everyone:
            flags |= aggregation.STATUS_CLOSED
        place = header.slot, round, norm, bitmap, flags
        self._answer(Type.STATUS, *place, to=header.worker)

    def _answer(
        self,
        kind: Type,
        slot: int,
        round: int,
        norm: int = 0,
        bitmap: int = 0,
        flags: int = 0,
        count: int | None = None,
        to: int | None = None,
        body: bytes = b"",
        marked: bool = False,
    ) -> None:
        """Send a packet to a worker, None: to all. Its number says to the switch who gets it.

        count: the workers in it; None: those of the bitmap. Of an epoch notice: the epoch that is
        refused. marked: whether a packet that it is about was."""
        transport = self._job.transport
        hop = 0 if to is None else to + 1
        place = (kind, self._job.number, hop, slot, round, transport.sum_bits, norm, bitmap, flags)
        header = Header(
            *place,
            count=bitmap.bit_count() if count is None else count,
            epoch=transport.epoch,
            code_bits=transport.code_bits,
        )
        self._out.append((marked, header.pack() + body))

    def _taken(self, now: int) -> list[Action]:
        """Return what is to be done: answers in a row with equal marks are a batch."""
        actions: list[Action] = []
        for marked, some in groupby(self._out, key=itemgetter(0)):
            payloads = Payloads.of([packet for _, packet in some])
            to = self._job.addresses.aggregator
            actions.append(Send(self._port, *to, payloads, self._tos[marked]))
        self._out = []
        times = [chunk.ask_at for chunk in self._chunks.values() if chunk.ask_at is not None]
        alarm = min(times, default=None)
        if alarm is not None and alarm != self.alarm:
            actions.append(SetTimer(TIMER, max(alarm, now)))
        elif alarm is None and self.alarm is not None:
            actions.append(CancelTimer(TIMER))
        self.alarm = alarm
        return actions
