"""A worker's bytes for the others, as they are: the all-gathers and broadcasts of user programs.

They travel by the hosts' streams, which lose nothing, over the links, switches and impairments that
reduces have. Of an all-gather each worker sends its part to each other one. A broadcast goes down a
binomial tree: worker v behind its source, counted round, sends to v + 2^k for each 2^k above v, so
that no link carries more than log2 of all the copies.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, SendMessage
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse


@dataclass(frozen=True)
class Gathered:
    """The parts of all workers, in their order, or of a broadcast's source alone."""

    parts: tuple[bytes, ...]


@dataclass(frozen=True)
class _Flight:
    """A gather that is under way. n: the bytes of each part. source: a broadcast's sender."""

    n: int
    source: int | None


class Gathering:
    """One worker's side. Actions: SendMessage, Deliver(ticket, Gathered). Gets messages of
    messages.GATHER_KINDS, also of tickets that it has yet to begin."""

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._workers, self._worker = job.workers, worker
        self._peers = job.addresses.streams
        self._flights: dict[int, _Flight] = {}
        self._parts: defaultdict[int, dict[int, bytes]] = defaultdict(dict)  # by ticket and source

    def begin(self, ticket: int, data: bytes, source: int | None = None) -> list[Action]:
        """Begin an all-gather of this worker's part, or a broadcast of the source's.

        All workers use the same tickets, each once, with parts of the same size."""
        self._flights[ticket] = _Flight(len(data), source)
        if source not in (None, self._worker):
            return self._finish(ticket)
        self._parts[ticket][self._worker] = data
        return [*self._pass_on(ticket, self._worker, source), *self._finish(ticket)]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a part, and pass on a broadcast's. MessageError if it is not a valid one."""
        message = parse(data)
        ticket, owner, body = message.ticket, message.tensor, message.body
        source = owner if message.count else None
        flight, parts = self._flights.get(ticket), self._parts[ticket]
        expected = flight or _Flight(len(body), source)
        if (
            owner >= self._workers
            or peer != self._peers[self._above(owner, source)]
            or owner in parts
            or expected != _Flight(len(body), source)
        ):
            raise MessageError(f"{len(body)} bytes of worker {owner} from {peer}")
        parts[owner] = body
        return [*self._pass_on(ticket, owner, source), *self._finish(ticket)]

    def missing(self, ticket: int) -> list[int]:
        """Return the workers whose parts have not come."""
        source = self._flights[ticket].source
        wanted = range(self._workers) if source is None else [source]
        return [worker for worker in wanted if worker not in self._parts[ticket]]

    def _above(self, owner: int, source: int | None) -> int:
        """Return the worker from which a part comes."""
        behind = (self._worker - owner) % self._workers
        if source is None or not behind:
            return owner
        return (self._worker - (1 << behind.bit_length() - 1)) % self._workers

    def _below(self, owner: int, source: int | None) -> Iterator[int]:
        """Yield the workers to which this one sends a part."""
        behind = (self._worker - owner) % self._workers
        if source is not None:
            steps = [1 << k for k in range(behind.bit_length(), self._workers.bit_length())]
        else:
            steps = [] if behind else list(range(1, self._workers))
        yield from ((self._worker + s) % self._workers for s in steps if behind + s < self._workers)

    def _pass_on(self, ticket: int, owner: int, source: int | None) -> Iterator[SendMessage]:
        body = self._parts[ticket][owner]
        count = int(source is not None)
        data = Message(Kind.PART, ticket, len(body), tensor=owner, count=count, body=body).pack()
        for worker in self._below(owner, source):
            yield SendMessage(self._peers[worker], data)

    def _finish(self, ticket: int) -> list[Action]:
        """Deliver the parts if all are there."""
        if ticket not in self._flights or self.missing(ticket):
            return []
        del self._flights[ticket]
        parts = sorted(self._parts.pop(ticket).items())
        return [Deliver(ticket, Gathered(tuple(part for _, part in parts)))]
