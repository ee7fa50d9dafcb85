"""INCEPTIONN's ring in the leaves of a tree of aggregators (the paper's figure 1).

Each group of workers sums its vectors round its ring (ring_worker.py), up to its first worker, the
leader. To the server above that is what a group's server is (server_tree.py): it encodes the sum
and pushes it. The answer passes from the leader to its right neighbour and on, as its bytes are.
In float32 a mean is ((x + x) + (x + x)) / N: in a ring from the worker on at which the block
begins (in the workers' order the first), then the rings' sums in the groups' order.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from gradplane import codecs
from gradplane.hosts.config import JobConfig
from gradplane.hosts.group_tree import levels
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, SendMessage
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.device_vector import coder_of
from gradplane.hosts.protocols.job_codec import between_codec, codec_ns, push_codec, reduce_seed
from gradplane.hosts.protocols.messages import RING_KINDS, Kind, Message, kind_of
from gradplane.hosts.protocols.parameter_server import Pending, PsWorker
from gradplane.hosts.protocols.phases import Phase
from gradplane.hosts.protocols.results import Reduced
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingReduce, RingWorker
from gradplane.hosts.protocols.server_tree import between_ns


class ServedRingWorker(PsWorker):
    """One worker's reduces, several in flight at once.

    Actions as of RingWorker; gets messages of RING_KINDS and WORKER_KINDS. UnsuitableCodecError for
    a codec that does not encode partial sums.
    """

    def __init__(self, job: JobConfig, worker: int, push: codecs.Codec | None = None) -> None:
        between = between_codec(job, push or push_codec(job))
        super().__init__(job, worker, between)
        (self._group,) = (group for group in levels(job.groups)[0] if worker in group)
        place = self._group.index(worker)
        self._above: Peer | None = None if place else job.above(self._group)
        self._server = self._above or job.addresses.stream(self._group[place - 1])
        self._next = [job.addresses.stream(w) for w in self._group[place + 1 : place + 2]]
        self._between_ns = between_ns(job, between)
        self._pull_ns = codec_ns(job, job.coding.pull_codec)
        self._work = ComputeQueue()
        plan = RingPlan.of(job, push, self._group, sink=0)
        self._ring = RingWorker(plan, place, self._work, self._summed)
        self._ring.watch = self._watched
        self._parts: dict[int, RingReduce] = {}  # by ticket: the ring's, once it is done

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return super().save(), self._ring.save()

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        own, ring = saved
        super().restore(own)
        self._ring.restore(ring)

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from the left neighbour, or of a leader from the server above."""
        if kind_of(data) in RING_KINDS:
            return self._ring.receive(peer, data, now)
        return super().receive(peer, data, now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the computation it stands for is done."""
        return self._work.timer(now)

    def missing(self, ticket: int) -> list[str]:
        """Name the messages that a reduce in flight waits for, for people."""
        return self._ring.missing(ticket) + super().missing(ticket)

    def _watched(self, ticket: int, phase: Phase) -> None:
        self.watch(ticket, phase)

    def _first(self, ticket: int, reduce: Pending, now: int) -> list[Action]:
        return self._ring.reduce(ticket, reduce.vector, now, reduce.tensor)

    def _summed(self, ring: RingReduce, now: int) -> list[Action]:
        """Go on where the ring's part of a reduce is done: the leader has the group's sum."""
        self._parts[ring.ticket] = ring
        self._reduces[ring.ticket].pushed(b"".join(ring.sent[b] for b in sorted(ring.sent)))
        if self._above is None:
            return []
        ring.codec_ns += (ns := round(self._between_ns * ring.sums.size))
        return self._work.do(ns, lambda at: self._push_sum(ring), now)

    def _push_sum(self, ring: RingReduce) -> list[Action]:
        ticket, tensor = ring.ticket, ring.tensor
        seed, state = reduce_seed(self._job, ticket), self._states[tensor]
        push = coder_of(self._push, ring.sums, [state])
        body, self._states[tensor] = push.encode(ring.sums, None, seed, state, self._worker)
        members = sum(1 << w for w in self._group)
        who = {"count": len(self._group), "bitmap": members}
        message = Message(Kind.PUSH, ticket, ring.sums.size, tensor, **who, body=body)
        return [self._send(message)]

    def _mean(
        self, message: Message, reduce: Pending, digests: tuple[str, str], now: int
    ) -> list[Action]:
        """Pass the answer on, and take it."""
        on: list[Action] = [SendMessage(peer, message.pack()) for peer in self._next]
        ns = round(self._pull_ns * message.n)
        return on + self._work.do(ns, lambda at: self._taken(message, reduce, digests, ns, at), now)

    def _taken(
        self, message: Message, reduce: Pending, digests: tuple[str, str], ns: int, now: int
    ) -> list[Action]:
        record, delivered = super()._mean(message, reduce, digests, now)
        ring = self._parts.pop(message.ticket)
        assert isinstance(delivered, Deliver) and isinstance(delivered.result, Reduced)
        result = replace(delivered.result, codec_ns=ring.codec_ns + ns, reduce_ns=ring.reduce_ns)
        return [record, Deliver(message.ticket, result)]
