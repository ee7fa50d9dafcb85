"""INCEPTIONN's ring used hierarchically: a ring in each group, and one of the groups' leaders.

The paper's figure 1 replaces the leaves of a tree of aggregators by its algorithm, and then the
whole tree; what is sent in the second case is not in our copy. Here a group's first member is its
leader, and a reduce has three parts, which overlap:

1. Each group sums its vectors round its ring (ring_worker.py). Whole blocks are passed on as far as
   the leader, which alone needs them.
2. The leaders sum the groups' sums round theirs. The blocks are finer where there are fewer leaders
   than members of a group, so that part 3 can keep its links busy.
3. As soon as a leader has a whole block, it passes it to its right neighbour in its group, and each
   member to the next, as its bytes are.

A value is added in its group from the member on at which its block begins, each group's sum
likewise from group to group: ((x + x) + x) + ((x + x) + x) in float32. The leader at which a
block's sum is whole encodes it once, and all workers use the values that these bytes decode to, so
all have the same sums, bit for bit. A lossy codec encodes n - 1 partial sums and a whole one in
each group of n, and as many sums of groups again: with an error below e an encoding, a sum over G
groups is off by less than (N + G) e, for N workers in all; a mean by less than e (1 + G / N).

Between groups travels what leaders exchange alone: 2 (G - 1) / G vectors up each leader's way and
as many down. A worker's link carries up to 2 vectors of parts 1 and 3, a leader's 2 more of part 2.
Messages take 2 (n - 1) + 2 (G - 1) + n - 1 steps, one after the other, in place of 2 (N - 1).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradplane.codecs import Codec, CodecError
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Peer
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.phases import Phase, Watch, unwatched
from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingReduce, RingWorker, block_message, delivered

_LEADERS_PART = 256  # the number of the leaders' first block among a reduce's seeds


@dataclass(frozen=True)
class GroupPlans:
    """The plans of a job's rings: each group's, whose sums go to its leader, and the leaders'."""

    groups: tuple[RingPlan, ...]
    leaders: RingPlan

    @classmethod
    def of(cls, job: JobConfig, codec: Codec | None = None) -> "GroupPlans":
        """Return a job's plans; ConfigError for an unsuitable codec, as RingPlan.of()."""
        count, largest = len(job.groups), max(map(len, job.groups))
        leaders = [group[0] for group in job.groups]
        blocks = count * -(-largest // count)
        return cls(
            tuple(RingPlan.of(job, codec, group, sink=0) for group in job.groups),
            RingPlan.of(job, codec, leaders, blocks=blocks, first_part=_LEADERS_PART),
        )


class GroupRingWorker:
    """One worker's reduces, several in flight at once: its group's ring, the leaders' if it is one.

    Actions, messages and rules as of RingWorker.
    """

    def __init__(self, plans: GroupPlans, worker: int) -> None:
        (group,) = (plan for plan in plans.groups if worker in plan.members)
        self._group, self._leaders, self._worker = group, plans.leaders, worker
        self._workers = sum(len(plan.members) for plan in plans.groups)
        place = group.members.index(worker)
        n = len(group.peers)
        self._left = group.peers[(place - 1) % n] if place else None
        self._right = group.peers[place + 1] if place + 1 < n else None
        self.watch: Watch = unwatched
        self._work = ComputeQueue()
        self._own = RingWorker(group, place, self._work, self._summed)
        self._own.watch = self._watched
        self._among: RingWorker | None = None
        if not place:
            self._among = RingWorker(
                *(plans.leaders, plans.leaders.members.index(worker), self._work),
                *(self._whole, self._pass_down),
            )
            self._among.watch = self._watched
        self._owns: dict[int, RingReduce] = {}  # by ticket: part 1 here, once it is done
        self._totals: dict[int, RingReduce] = {}  # by ticket: what comes down to a member

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return [ring.save() for ring in self._rings]

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        for ring, own in zip(self._rings, saved, strict=True):
            ring.restore(own)

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start reducing as RingWorker.reduce() does."""
        actions = self._own.reduce(ticket, vector, now, tensor)
        if self._among is None:
            blocks = self._leaders.blocks
            missing = {(Kind.TOTAL_BLOCK, block) for block in range(blocks)}
            sums = np.zeros(vector.size, np.float32)
            self._totals[ticket] = RingReduce(ticket, tensor, vector, sums, missing, blocks)
        return actions

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from a neighbour in the group, or of a leader among the leaders."""
        if self._among is not None and peer in self._leaders.peers:
            return self._among.receive(peer, data, now)
        message = parse(data)
        if message.kind is not Kind.TOTAL_BLOCK:
            return self._own.receive(peer, data, now)
        return self._take(peer, message, now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the computation it stands for is done."""
        return self._work.timer(now)

    def missing(self, ticket: int) -> list[str]:
        """Name the messages of neighbours that a reduce in flight waits for, for people."""
        found = [name for ring in self._rings for name in ring.missing(ticket)]
        if (total := self._totals.get(ticket)) is not None:
            found += sorted(f"{kind.name} {block}" for kind, block in total.missing)
        return found

    @property
    def _rings(self) -> list[RingWorker]:
        return [self._own] if self._among is None else [self._own, self._among]

    def _watched(self, ticket: int, phase: Phase) -> None:
        self.watch(ticket, phase)

    # Parts 1 and 2

    def _summed(self, own: RingReduce, now: int) -> list[Action]:
        """Go on where the group's part of a reduce is done: a leader has its sums."""
        self._owns[own.ticket] = own
        if self._among is None:
            return []
        return self._among.reduce(own.ticket, own.sums, now, own.tensor)

    def _whole(self, total: RingReduce, now: int) -> list[Action]:
        own = self._owns.pop(total.ticket)
        return delivered(self._group, self._worker, self._workers, [own, total], now)

    # Part 3

    def _pass_down(self, message: Message) -> list[Action]:
        """Give the next member of the group a block that is whole."""
        if self._right is None:
            return []
        bound = self._leaders.bound
        return [block_message(self._right, message, bound, Kind.TOTAL_BLOCK)]

    def _take(self, peer: Peer, message: Message, now: int) -> list[Action]:
        """Take a whole block on its way down; it is checked before it takes emulated time."""
        total = self._totals.get(message.ticket)
        where = f"ticket {message.ticket}, TOTAL_BLOCK {message.count}"
        if peer != self._left:
            raise MessageError(f"{where}: from {peer}, the left neighbour is {self._left}")
        if total is None or (message.kind, message.count) not in total.missing:
            raise MessageError(f"{where}: not expected, or not again")
        span = self._leaders.span(message.count, total.vector.size)
        self.watch(message.ticket, "decode")
        try:
            x = self._leaders.codec.decode(message.body, span.stop - span.start)
        except CodecError as error:
            raise MessageError(f"{where}: {error}") from error
        total.missing.remove((message.kind, message.count))
        total.codec_ns += (ns := round(self._leaders.codec_ns * x.size))
        then = self._work.do(ns, lambda at: self._arrived(total, span, x, at), now)
        return [*self._pass_down(message), *then]

    def _arrived(self, total: RingReduce, span: slice, x: Floats, now: int) -> list[Action]:
        total.sums[span] = x
        total.left -= 1
        if total.left:
            self.watch(total.ticket, "network")
            return []
        del self._totals[total.ticket]
        return self._whole(total, now)
