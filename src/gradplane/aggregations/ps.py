"""Reduces of a replay over streams: through the parameter server, and round the ring.

Every message arrives; what the network compresses of it goes through the P4 program.
"""

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, SendMessage
from gradplane.hosts.protocols.messages import Kind, parse
from gradplane.hosts.protocols.parameter_server import PsServer, PsWorker
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.training.train import Reduce
from gradplane.replayer.outcomes import JobOutcomes
from gradplane.replayer.replayed_worker import Worker


class Network(Protocol):
    """What is between the hosts."""

    def carry(self, source: Peer, to: Peer, values: bytes) -> bytes:
        """A message's marked values, as they arrive."""


class ThroughServer:
    """Reduces through the software parameter server: late messages come after the answers."""

    def __init__(
        self, job: JobConfig, workers: list[Worker], outcomes: JobOutcomes, network: Network
    ) -> None:
        assert job.server_address is not None
        self._address = job.server_address
        self._peers = [job.stream_address(w) for w in range(job.workers)]
        self._server = PsServer(job)
        self._machines = [PsWorker(job, w) for w in range(job.workers)]
        self._workers, self._outcomes, self._network = workers, outcomes, network
        self._everyone = (1 << job.workers) - 1
        self._in_time: deque[tuple[int, bytes]] = deque()
        self._late: deque[tuple[int, bytes]] = deque()

    def reduce(self) -> None:
        """The reduce that all workers ask for."""
        for worker, machine in zip(self._workers, self._machines, strict=True):
            step = worker.step
            assert isinstance(step, Reduce), step
            self._perform(worker, machine.reduce(step.round, step.vector, 0))
        while self._in_time or self._late:
            sender, data = (self._in_time or self._late).popleft()
            for action in self._server.receive(self._peers[sender], data, 0):
                assert isinstance(action, SendMessage), action
                number = self._peers.index(action.peer)
                answered = self._machines[number].receive(self._address, action.data, 0)
                self._perform(self._workers[number], answered)

    def _perform(self, worker: Worker, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SendMessage):
                data = _arrived(self._network, self._peers[worker.number], action)
                queue = self._in_time if self._counts(worker, data) else self._late
                queue.append((worker.number, data))
            elif isinstance(action, Deliver):
                worker.take(action)

    def _counts(self, worker: Worker, data: bytes) -> bool:
        """Whether the message is in the server's answer."""
        message = parse(data)
        outcomes = self._outcomes
        answers = outcomes.stats if message.kind is Kind.STAT else outcomes.pushes
        return bool(answers.get(message.ticket, self._everyone) >> worker.number & 1)


class ThroughRing:
    """Reduces round the ring: the order in which messages arrive changes nothing."""

    def __init__(self, job: JobConfig, workers: list[Worker], network: Network) -> None:
        plan = RingPlan.of(job)
        self._peers = plan.peers
        self._machines = [RingWorker(plan, worker) for worker in range(job.workers)]
        self._workers, self._network = workers, network
        self._mail: deque[tuple[int, int, bytes]] = deque()  # sender, receiver, message

    def reduce(self) -> None:
        """The reduce that all workers ask for."""
        for worker, machine in zip(self._workers, self._machines, strict=True):
            step = worker.step
            assert isinstance(step, Reduce), step
            self._perform(worker, machine.reduce(step.round, step.vector, 0))
        while self._mail:
            sender, number, data = self._mail.popleft()
            received = self._machines[number].receive(self._peers[sender], data, 0)
            self._perform(self._workers[number], received)

    def _perform(self, worker: Worker, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SendMessage):
                data = _arrived(self._network, self._peers[worker.number], action)
                self._mail.append((worker.number, self._peers.index(action.peer), data))
            elif isinstance(action, Deliver):
                worker.take(action)


def _arrived(network: Network, source: Peer, message: SendMessage) -> bytes:
    """The message as its receiver has it."""
    if not message.values:
        return message.data
    return message.data + network.carry(source, message.peer, message.values)
