"""Workers of a ring: with messages in memory, or over Streams on a network that loses, repeats,
delays and compresses."""

from functools import cache

import numpy as np
from memory_network import make_job
from stream_network import MS, StreamNetwork
from wired import Wired

from gradplane import codecs
from gradplane.hosts.protocols.actions import Deliver, Received, Record, SendMessage
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


def ring_mail(job, seed=0):
    """Return the workers, with their messages in memory."""
    plan = RingPlan.of(job)
    return Wired(job, [RingWorker(plan, w) for w in range(job.workers)], seed=seed, run=False)


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


def worker_sums(xs):
    """Return the sums in the order of the vectors, by NumPy."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


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


SUMS = {"rotated": ring_sums, "workers": worker_sums}
"""By a job's `sum_order`."""
