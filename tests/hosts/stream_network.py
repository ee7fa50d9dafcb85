"""Streams under virtual time, and a network between them."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable
from random import Random

from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Failed,
    Peer,
    Received,
    Send,
    SetTimer,
)
from gradplane.hosts.stream.stream import Stream
from gradplane.hosts.wire.payloads import Payloads

A, B = ("10.0.0.1", 21003), ("10.0.0.2", 21003)
MS = 1_000_000


class StreamNetwork:
    """A Stream for each peer; fate(payload) gives the delays of a datagram's copies, none: lost."""

    def __init__(
        self,
        fate: Callable[[bytes], list[int]] = lambda payload: [MS],
        peers: tuple[Peer, ...] = (A, B),
        attempts: int = 40,
        probes: bool = False,
    ) -> None:
        self.streams = {peer: Stream(peer[1], 1, attempts, probes=probes) for peer in peers}
        self.fate, self.now, self.last_received = fate, 0, 0
        self.datagrams: list[bytes] = []
        self.tos: list[int] = []
        self.received: dict[tuple[Peer, Peer], list[bytes]] = defaultdict(list)
        self.failed: dict[Peer, list[tuple[Peer, str]]] = defaultdict(list)
        self.timers: dict[tuple[Peer, Hashable], int] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def send(self, source: Peer, to: Peer, data: bytes) -> None:
        """Start sending a message."""
        self.perform(source, self.streams[source].send_message(to, data, self.now))

    def run(self, limit: int = 100_000) -> None:
        """Run until nothing happens any more."""
        for _ in range(limit):
            if not self._queue:
                return
            self.now, _, call = heapq.heappop(self._queue)
            call()
        raise AssertionError(f"still busy after {limit} events")

    def perform(self, here: Peer, actions: list[Action]) -> None:
        """Perform the actions of `here`."""
        for action in actions:
            match action:
                case Send(port, ip, to_port, payloads, tos):
                    assert port == here[1]
                    for payload in payloads:
                        self.datagrams.append(payload)
                        self.tos.append(tos)
                        for delay in self.fate(payload):
                            self._at(self.now + delay, self._arrival(here, (ip, to_port), payload))
                case SetTimer(key, at):
                    self.timers[here, key] = self._count + 1
                    self._at(at, self._timer(here, key, self._count + 1))
                case CancelTimer(key):
                    self.timers.pop((here, key), None)
                case Received(peer, data):
                    self.received[peer, here].append(data)
                    self.last_received = self.now
                case Failed(peer, reason):
                    self.failed[here].append((peer, reason))

    def _at(self, time: int, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (time, self._count, call))

    def _arrival(self, source: Peer, to: Peer, payload: bytes) -> Callable[[], None]:
        payloads = Payloads.of([payload])
        return lambda: self.perform(to, self.streams[to].receive(source, payloads, self.now))

    def _timer(self, here: Peer, key: Hashable, mine: int) -> Callable[[], None]:
        def fire() -> None:
            if self.timers.get((here, key)) == mine:
                del self.timers[here, key]
                self.perform(here, self.streams[here].timer(key, self.now))

        return fire


def chaos(seed: int, loss: float, repeats: float, jitter: float) -> Callable[[bytes], list[int]]:
    """Return a fate that loses, repeats, and delays by up to `jitter` ms."""
    random = Random(seed)

    def fate(payload: bytes) -> list[int]:
        if random.random() < loss:
            return []
        copies = 2 if random.random() < repeats else 1
        return [MS + int(jitter * MS * random.random()) for _ in range(copies)]

    return fate
