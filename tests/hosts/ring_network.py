"""Workers of a ring: their messages in memory, in a random order, or over Streams on a
network that loses, repeats, delays and compresses."""

from functools import cache
from random import Random

import numpy as np
from memory_network import make_job
from stream_network import MS, StreamNetwork

from gradplane import codecs
from gradplane.hosts.protocols.actions import Deliver, Received, Record, SendMessage, SetTimer
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.stream import segments
from gradplane.hosts.stream.segments import ValuesSegment


def ring_job(**changes):
    """Return a job of a ring; exact float32 unless changed."""
    given = {"aggregation": "ring", "codec": ("float32", {}), "error_feedback": False}
    return make_job(**given | changes)


@cache
def network_codec(bound):
    return codecs.get("inceptionn", bound=bound, nonfinite=True)


def compressed(payload, bound):
    """Return a marked segment as it arrives after compression; unchanged if that is not shorter."""
    segment = segments.parse(payload)
    if not isinstance(segment, ValuesSegment):
        return payload
    codec = network_codec(bound)
    x = np.frombuffer(segment.payload, ">f4").astype(np.float32)
    data, _ = codec.encode(x)
    if 4 + len(data) >= len(segment.payload):  # the shim
        return payload
    back = codec.decode(data, x.size).astype(">f4").tobytes()
    return ValuesSegment(segment.connection, segment.sequence, back).pack()


class Mail:
    """Messages between the workers, in memory: each pair's in order, the pairs' mixed by `seed`."""

    def __init__(self, job, seed=0):
        self.plan = RingPlan.of(job)
        self.workers = [RingWorker(self.plan, w) for w in range(job.workers)]
        self.random = Random(seed)
        self.queues = {}  # by receiver: the left neighbour's messages
        self.delivered, self.records, self.sent = {}, [], []
        self.timers, self.now = [], 0

    def reduce(self, ticket, xs, tensor=0):
        for w, x in enumerate(xs):
            self.perform(w, self.workers[w].reduce(ticket, x, self.now, tensor))

    def perform(self, w, actions):
        for action in actions:
            match action:
                case SendMessage(peer, data, values):
                    to = self.plan.peers.index(peer)
                    self.sent.append((w, data, values))
                    self.queues.setdefault(to, []).append((w, data + values))
                case SetTimer(key, at):
                    self.timers.append((at, w, key))
                case Deliver(ticket, result):
                    assert (w, ticket) not in self.delivered
                    self.delivered[w, ticket] = result
                case Record():
                    self.records.append(action)

    def step(self):
        """Handle one message, or else the next timer; return whether there was one."""
        waiting = sorted(to for to, queue in self.queues.items() if queue)
        if waiting:
            to = self.random.choice(waiting)
            source, data = self.queues[to].pop(0)
            self.perform(to, self.workers[to].receive(self.plan.peers[source], data, self.now))
        elif self.timers:
            self.timers.sort()
            self.now, w, key = self.timers.pop(0)
            self.perform(w, self.workers[w].timer(key, self.now))
        else:
            return False
        return True

    def run(self):
        while self.step():
            pass


class RingNetwork(StreamNetwork):
    """The workers over Streams. Marked segments are truncated where `compress(payload)`."""

    def __init__(self, job, fate=lambda payload: [MS], compress=lambda payload: False):
        self.plan = RingPlan.of(job)
        super().__init__(fate, self.plan.peers)
        self.job, self.compress = job, compress
        self.workers = {p: RingWorker(self.plan, w) for w, p in enumerate(self.plan.peers)}
        self.delivered, self.marked = {}, []

    def reduce(self, ticket, xs):
        for (peer, worker), x in zip(self.workers.items(), xs, strict=True):
            self.perform(peer, worker.reduce(ticket, x, self.now))

    def perform(self, here, actions):
        for action in actions:
            match action:
                case SendMessage(peer, data, values):
                    sent = self.streams[here].send_message(peer, data, self.now, values)
                    self.perform(here, sent)
                case Received(peer, data):
                    received = self.workers[here].receive(peer, data, self.now)
                    self.perform(here, received)
                case Deliver(ticket, result):
                    assert (here, ticket) not in self.delivered
                    self.delivered[here, ticket] = result
                case Record():
                    pass
                case _:
                    super().perform(here, [action])

    def _arrival(self, source, to, payload):
        is_marked = isinstance(segments.parse(payload), ValuesSegment)
        self.marked.append(is_marked)
        if is_marked and self.compress(payload):
            payload = compressed(payload, self.job.coding.bound)
        return super()._arrival(source, to, payload)


def ring_sums(xs):
    """Return a ring's sums of exact float32 vectors: each block is summed from its worker on."""
    n, size = len(xs), xs[0].size
    total, start = np.empty(size, np.float32), 0
    for block in range(n):
        stop = start + size // n + (block < size % n)
        part = xs[block][start:stop].copy()
        for k in range(1, n):
            part += xs[(block + k) % n][start:stop]
        total[start:stop] = part
        start = stop
    return total
