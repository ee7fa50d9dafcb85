"""OptiReduce's workers on a network under virtual time that loses packets."""

from functools import partial

import numpy as np
from host_configs import make_job

from gradplane.hosts.protocols.actions import Deliver, Record, Send, SendMessage, SetTimer
from gradplane.hosts.protocols.bounded_worker import BoundedWorker
from gradplane.hosts.wire import bounded

MS = 1_000_000


class Together:
    """Workers whose messages and packets arrive after 1 ms, but for those that `lost` names; `sent`
    has all of them."""

    def __init__(self, workers: int = 3, lost=lambda header: False, **keys: object) -> None:
        keys = {"workers": workers, "codec": ("float32", {}), "timeout_ns": 2000 * MS} | keys
        self.job = make_job(**({"observed": 2} | keys))
        self.machines = [BoundedWorker(self.job, w) for w in range(workers)]
        self.lost, self.now = lost, 0
        self.queue: list[tuple[int, int, int, object]] = []
        self.results: list[dict[int, object]] = [{} for _ in self.machines]
        self.records: list[dict] = []
        self.sent: list[tuple[int, int, bytes]] = []

    def reduce(self, ticket: int, vectors, at=None) -> None:
        """Let all begin: now, or so long after as `at` says of a worker."""
        for w, vector in enumerate(vectors):
            begin = partial(self.machines[w].reduce, ticket, vector)
            self._later(self.now + (at or {}).get(w, 0), w, begin)

    def run(self) -> None:
        while self.queue:
            self.queue.sort(key=lambda event: event[:2])
            self.now, _, w, event = self.queue.pop(0)
            self._perform(w, event(self.now))

    def _later(self, at: int, w: int, event) -> None:
        self.queue.append((at, len(self.queue), w, event))

    def _perform(self, w: int, actions) -> None:
        addresses = self.job.addresses
        streams = [addresses.stream(peer) for peer in range(self.job.workers)]
        for action in actions:
            match action:
                case SendMessage(peer, data):
                    to = streams.index(peer)
                    self.sent.append((w, to, data))
                    event = partial(self.machines[to].message, streams[w], data)
                    self._later(self.now + MS, to, event)
                case Send(_, ip, port, payloads):
                    to = addresses.worker_addresses.index((ip, port))
                    packets = bounded.parse(payloads)
                    self.sent.append((w, to, packets.header.tobytes() + packets.values.tobytes()))
                    kept = [i for i, h in enumerate(packets.header) if not self.lost(h)]
                    some = payloads.select(np.array(kept, int))
                    source = addresses.worker_addresses[w]
                    self._later(
                        self.now + MS, to, partial(self.machines[to].receive, *source, some)
                    )
                case SetTimer(key, at):
                    self._later(at, w, partial(self.machines[w].timer, key))
                case Deliver(ticket, result):
                    self.results[w][ticket] = result
                case Record(_, fields):
                    self.records.append(fields)
