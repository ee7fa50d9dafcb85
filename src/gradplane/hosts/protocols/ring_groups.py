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

Where groups are in groups, leaders of part 2 are in turn a group of a larger ring, which does the
same with them: they get part 3 from their own leader, and each begins it in the rings below.

A value is added in its group from the member on at which its block begins, each group's sum
likewise from group to group: ((x + x) + x) + ((x + x) + x) in float32. In the workers' order all
blocks begin at the first member, and at the first leader. The leader at which a
block's sum is whole encodes it once, and all workers use the values that these bytes decode to, so
all have the same sums, bit for bit. A lossy codec encodes n - 1 partial sums and a whole one in
each group of n, and as many sums of groups again: with an error below e an encoding, a sum over G
groups is off by less than (N + G) e, for N workers in all; a mean by less than e (1 + G / N). Each
level more adds its groups' number to G.

In two levels, between groups travels what leaders exchange alone: 2 (G - 1) / G vectors up each
leader's way and as many down. A worker's link carries up to 2 vectors of parts 1 and 3, a leader's
2 more of part 2. Messages take 2 (n - 1) + 2 (G - 1) + n - 1 steps, one after the other, in place
of 2 (N - 1).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from gradplane.codecs import Codec, CodecError
from gradplane.hosts.config import JobConfig
from gradplane.hosts.group_tree import Group, levels, members_of
from gradplane.hosts.protocols.actions import Action, Peer
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.device_vector import decoder_of, zeros_of
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.phases import Phase, Watch, unwatched
from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingReduce, RingWorker, block_message, delivered

_LEVEL_PARTS = 256  # the number of a level's first block among a reduce's seeds, a level


@dataclass(frozen=True)
class GroupPlans:
    """The plans of a job's rings, level by level: the groups', whose sums go to their leaders, and
    that of the last leaders."""

    groups: tuple[tuple[RingPlan, ...], ...]
    whole: RingPlan

    @classmethod
    def of(cls, job: JobConfig, codec: Codec | None = None) -> "GroupPlans":
        """Return a job's plans; ConfigError for an unsuitable codec, as RingPlan.of()."""
        rows, count = levels(job.groups), len(job.groups)
        largest = max(map(len, chain.from_iterable(rows)))

        def plan(level: int, group: Group, sink: int | None = 0, blocks: int = 0) -> RingPlan:
            first = level * _LEVEL_PARTS
            return RingPlan.of(job, codec, members_of(group), sink, blocks, first)

        groups = tuple(tuple(plan(n, group) for group in row) for n, row in enumerate(rows))
        return cls(groups, plan(len(rows), job.groups, None, count * -(-largest // count)))


class GroupRingWorker:
    """One worker's reduces, several in flight at once: its group's ring, that of leaders if it is
    one, and so on.

    Actions, messages and rules as of RingWorker.
    """

    def __init__(self, plans: GroupPlans, worker: int) -> None:
        self._plan, self._worker = plans.whole, worker
        self._workers = sum(len(plan.members) for plan in plans.groups[0])
        self.watch: Watch = unwatched
        self._work = ComputeQueue()
        self._rings: list[RingWorker] = []
        self._ring_of: dict[Peer, RingWorker] = {}
        self._left: Peer | None = None  # who passes whole blocks down to here
        self._next: list[Peer] = []  # to whom they are passed down from here
        for plan in chain.from_iterable(plans.groups):
            if worker in plan.members:
                place = plan.members.index(worker)
                self._join(RingWorker(plan, place, self._work, self._summed), plan)
                self._left = plan.peers[place - 1] if place else None
                self._next = [*plan.peers[place + 1 : place + 2], *self._next]
        if worker in plans.whole.members:
            place = plans.whole.members.index(worker)
            then = self._whole, self._pass_down
            self._join(RingWorker(plans.whole, place, self._work, *then), plans.whole)
        self._owns: dict[int, list[RingReduce]] = {}  # by ticket: the parts that are done
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
        actions = self._rings[0].reduce(ticket, vector, now, tensor)
        if self._left is not None:
            blocks = self._plan.cut(vector.size)
            missing = {(Kind.TOTAL_BLOCK, block) for block in range(blocks.number)}
            sums = zeros_of(vector, vector.size)
            given = ticket, tensor, vector, sums, blocks, missing, blocks.number
            self._totals[ticket] = RingReduce(*given)
        return actions

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from a neighbour in one of its rings."""
        message = parse(data)
        if message.kind is Kind.TOTAL_BLOCK:
            return self._take(peer, message, now)
        return self._ring_of.get(peer, self._rings[0]).receive(peer, data, now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the computation it stands for is done."""
        return self._work.timer(now)

    def missing(self, ticket: int) -> list[str]:
        """Name the messages of neighbours that a reduce in flight waits for, for people."""
        found = [name for ring in self._rings for name in ring.missing(ticket)]
        if (total := self._totals.get(ticket)) is not None:
            found += sorted(f"{kind.name} {block}" for kind, block in total.missing)
        return found

    def _join(self, ring: RingWorker, plan: RingPlan) -> None:
        ring.watch = self._watched
        self._rings.append(ring)
        self._ring_of |= dict.fromkeys(plan.peers, ring)

    def _watched(self, ticket: int, phase: Phase) -> None:
        self.watch(ticket, phase)

    # Parts 1 and 2

    def _summed(self, own: RingReduce, now: int) -> list[Action]:
        """Go on where a group's part of a reduce is done: a leader has its sums."""
        done = self._owns.setdefault(own.ticket, [])
        done.append(own)
        if len(done) == len(self._rings):
            return []
        return self._rings[len(done)].reduce(own.ticket, own.sums, now, own.tensor)

    def _whole(self, total: RingReduce, now: int) -> list[Action]:
        parts = [*self._owns.pop(total.ticket), total]
        return delivered(self._plan, self._worker, self._workers, parts, now)

    # Part 3

    def _pass_down(self, message: Message) -> list[Action]:
        """Give the next members of this worker's groups a block that is whole."""
        bound = self._plan.bound
        return [block_message(peer, message, bound, Kind.TOTAL_BLOCK) for peer in self._next]

    def _take(self, peer: Peer, message: Message, now: int) -> list[Action]:
        """Take a whole block on its way down; it is checked before it takes emulated time."""
        total = self._totals.get(message.ticket)
        where = f"ticket {message.ticket}, TOTAL_BLOCK {message.count}"
        if peer != self._left:
            raise MessageError(f"{where}: from {peer}, the left neighbour is {self._left}")
        if total is None or (message.kind, message.count) not in total.missing:
            raise MessageError(f"{where}: not expected, or not again")
        span = total.blocks.span(message.count)
        self.watch(message.ticket, "decode")
        try:
            codec = decoder_of(self._plan.codec, total.vector)
            x = codec.decode(message.body, span.stop - span.start)
        except CodecError as error:
            raise MessageError(f"{where}: {error}") from error
        total.missing.remove((message.kind, message.count))
        total.codec_ns += (ns := round(self._plan.codec_ns * x.size))
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
