"""DESIGN.md's "Aggregation, the switch's rules" as plain Python, to compare implementations with.

One job a model. What leaves is (receiving worker, UDP payload). receive() takes a packet through
all its passes at once; begin() and step() take it through one by one, so that others can come
between. `lose_pass(worker, header, number)` may say that a packet is lost on its way into pass
`number` > 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

LANES_A_PASS = 128
Out = list[tuple[int, bytes]]


@dataclass
class Member:
    """A worker in the job table."""

    worker: int
    port: int


@dataclass
class Flight:
    """An indices packet between two passes."""

    member: Member
    header: Header
    indices: np.ndarray
    number: int = 0  # the next pass


@dataclass
class Stage:
    """Round, bitmap, count and closed flag of a slot's norm, or of one pass over its sums."""

    epoch: int = 0  # that used it last; 0: none
    round: int = 0
    bitmap: int = 0
    count: int = 0
    closed: bool = False
    norm: int = 0
    owner: int = 0  # plus 1: who alone needs the sums
    sums: list[int] = field(default_factory=lambda: [0] * LANES_A_PASS)

    def ahead(self, header: Header) -> int:
        """Return how much later a packet's round is; 1 where its epoch has not used the stage."""
        if self.epoch != header.epoch:
            return 1
        return aggregation.ahead(header.round, self.round)

    def enter(self, header: Header, norm: int) -> None:
        """Start a later round, with this norm."""
        if self.ahead(header) > 0:
            self.epoch, self.round = header.epoch, header.round
            self.bitmap, self.count, self.closed = 0, 0, False
            self.norm, self.sums = norm, [0] * LANES_A_PASS
            self.owner = header.count

    def add(self, bit: int, quorum: int) -> bool:
        """Return whether this bit is new and the stage open; close it at the quorum."""
        if self.closed or self.bitmap & bit:
            return False
        self.bitmap, self.count = self.bitmap | bit, self.count + 1
        self.closed = self.count == quorum
        return True


class SwitchModel:
    """The slots of one job."""

    def __init__(
        self,
        job: int,
        members: Sequence[Member],
        quorum: int,
        slots: int,
        table: Sequence[int],
        sum_bits: int = 8,
        lose_pass: Callable[[int, Header, int], bool] = lambda worker, header, number: False,
        next_only: bool = False,
        epoch: int = 1,
    ) -> None:
        self.next_only, self.epoch = next_only, epoch
        self.job, self.quorum, self.slots, self.sum_bits = job, quorum, slots, sum_bits
        self.members = {(m.worker, m.port): m for m in members}
        self.table = [*table, *[0] * (16 - len(table))]
        self.passes = aggregation.LANES[sum_bits] // LANES_A_PASS
        self.norms = [Stage() for _ in range(slots)]
        self.sums = [[Stage() for _ in range(self.passes)] for _ in range(slots)]
        self.lose_pass = lose_pass

    def receive(self, port: int, payload: bytes) -> Out:
        """Take a UDP payload for port 18256 that came in on `port`; return the packets that
        leave."""
        flight = self.begin(port, payload)
        while isinstance(flight, Flight):
            flight = self.step(flight)
        return flight

    def begin(self, port: int, payload: bytes) -> Flight | Out:
        """Begin receive(): return a packet that is to make passes, or the packets that leave at
        once."""
        try:
            header, body = aggregation.parse(payload)
        except aggregation.WireError:
            return []
        member = self.members.get((header.worker, port))
        foreign = header.sum_bits != self.sum_bits or header.job != self.job
        allowed = (0, aggregation.STATUS_NORM) if header.type is Type.STATUS else (0,)
        wrong = header.passed or header.flags not in allowed or foreign
        if member is None or wrong or header.slot >= self.slots:
            return []
        if header.type not in (Type.NORM, Type.INDICES, Type.STATUS):
            return []
        if header.epoch != self.epoch:
            return [(member.worker, self._answer(Type.EPOCH, header, Stage()))]
        if header.type is Type.NORM:
            return self._norm(member, header)
        if header.type is Type.INDICES:
            return Flight(member, header, aggregation.unpack_indices(body, header.code_bits))
        return self._status(member, header)

    def step(self, flight: Flight) -> Flight | Out:
        """Return one pass over 128 lanes."""
        member, header, number = flight.member, flight.header, flight.number
        if number and self.lose_pass(member.worker, header, number):
            return []
        stage = self.sums[header.slot][number]
        ahead = stage.ahead(header)
        if ahead < 0:
            return self._notice(member, header, stage)
        if self.next_only and ahead > 1:
            return []
        stage.enter(header, header.norm)
        if stage.norm != header.norm:
            return []
        was_closed = stage.closed
        if stage.add(1 << member.worker, self.quorum):
            lanes = flight.indices[number * LANES_A_PASS : (number + 1) * LANES_A_PASS]
            for lane, index in enumerate(lanes):
                stage.sums[lane] += self.table[index]
        closed = stage.closed and not was_closed
        if number + 1 < self.passes:
            return Flight(member, header, flight.indices, number + 1)
        return self._sums(member, header, closed)

    def _norm(self, member: Member, header: Header) -> Out:
        stage = self.norms[header.slot]
        if not aggregation.is_norm(header.norm):
            return []
        if stage.ahead(header) < 0:
            return self._notice(member, header, stage)
        stage.enter(header, 0)
        was_closed = stage.closed
        if stage.add(1 << member.worker, self.quorum):
            stage.norm = max(stage.norm, header.norm)
        if not stage.closed:
            return []
        result = self._answer(Type.NORM_RESULT, header, stage)
        return [(member.worker, result)] if was_closed else self._all(result)

    def _sums(self, member: Member, header: Header, closed_by_this: bool) -> Out:
        stages = self.sums[header.slot]
        if not all(stage.closed and stage.round == header.round for stage in stages):
            return []
        sums = np.array([value for stage in stages for value in stage.sums])
        assert sums.max() < 2**self.sum_bits, "a sum overflowed"
        body = aggregation.pack_sums(sums, self.sum_bits)
        result = self._answer(Type.SUMS, header, stages[-1]) + body
        bare = self._answer(Type.SUMS, header, stages[-1], aggregation.BARE)
        workers = sorted(self.members) if closed_by_this else [(member.worker, member.port)]
        owner = stages[-1].owner
        return [(worker, result if owner in (0, worker + 1) else bare) for worker, _ in workers]

    def _notice(self, member: Member, header: Header, stage: Stage) -> Out:
        return [(member.worker, self._answer(Type.STRAGGLER, header, stage))]

    def _status(self, member: Member, header: Header) -> Out:
        stage = self.norms[header.slot] if header.flags else self.sums[header.slot][-1]
        if stage.epoch != header.epoch:
            stage = Stage()
        flags = (
            aggregation.STATUS_ANSWER
            | header.flags
            | (aggregation.STATUS_CLOSED if stage.closed else 0)
        )
        return [(member.worker, self._answer(Type.STATUS, header, stage, flags))]

    def _answer(self, kind: Type, header: Header, stage: Stage, flags: int = 0) -> bytes:
        return replace(
            header,
            type=kind,
            worker=0,
            count=stage.count,
            epoch=self.epoch,
            round=stage.round,
            bitmap=stage.bitmap,
            norm=stage.norm,
            flags=flags,
        ).pack()

    def _all(self, payload: bytes) -> Out:
        return [(worker, payload) for worker, _ in sorted(self.members)]
