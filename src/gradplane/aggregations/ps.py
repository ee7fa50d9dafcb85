"""A software parameter server on the job's last host adds the gradients.

The class `ServerScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradplane.aggregations.aggregation import Aggregation, Messages, PlacedJob, ReplayedJob
from gradplane.codecs import Codec
from gradplane.hosts.config import ConfigError, JobConfig
from gradplane.hosts.protocols.job_codec import answers_sums, make_codec, push_codec, sums_type
from gradplane.hosts.protocols.messages import Kind, parse
from gradplane.topologies.description import HostNode

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Action


class ServerScheme(Aggregation):
    """Workers push to the server and pull the mean, or the weights, each with a codec."""

    worker_role = "gradplane.hosts.drivers.roles:ServedWorkerRole"
    server_role = "gradplane.hosts.drivers.roles:ParameterServerRole"
    marks = skips_rounds = sums_by_tensor = True

    def takes_tensors(self, codec: Codec) -> bool:
        """Return whether the codec's paper takes tensors by themselves."""
        return codec.by_tensor

    def defaults(self) -> dict[str, Any]:
        """Return the default codec of the answers."""
        return {"pull": {"name": "float32"}}

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec that the server cannot take, or not with its weights."""
        codec = push_codec(config)
        if codec.carriers and config.coding.served_steps:
            raise ConfigError(
                f"codec {codec.name}: its workers take several means a step, and this server makes"
                " the step itself, with one: leave out pull_deltas and the policy of pull, or use"
                " another codec",
                "codec",
            )

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return all workers' messages to the server, and its answers."""
        assert placed.server is not None
        server, names = placed.server.name, [host.name for host in placed.members]
        codec = push_codec(config)
        push = codec.most_bytes(values)
        pull = make_codec(config.coding.pull_codec, "pull_codec").most_bytes(values)
        if answers_sums(config):
            pull = codec.lanes(values) * sums_type(codec, config.quorum).itemsize
        pushed, pulled = ((n, server, push) for n in names), ((server, n, pull) for n in names)
        return [*pushed, *pulled]

    def marked_receivers(self, placed: PlacedJob) -> tuple[HostNode, ...]:
        """Return the server: its answers are never marked."""
        assert placed.server is not None
        return (placed.server,)

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


class _ReplayedReduces:
    """Reduces through the server: late messages come after the answers."""

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.parameter_server import PsServer
        from gradplane.hosts.protocols.several_rounds import served_worker
        from gradplane.hosts.training.sgd import served

        job = replayed.config
        assert job.addresses.server_address is not None
        self._replayed, self._address = replayed, job.addresses.server_address
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._server = PsServer(job, served(job))
        self._machines = [served_worker(job, w) for w in range(job.workers)]
        self._rounds = len(push_codec(job).carriers) or 1
        self._everyone = (1 << job.workers) - 1
        self._in_time: deque[tuple[int, bytes]] = deque()
        self._late: deque[tuple[int, bytes]] = deque()

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        from gradplane.hosts.protocols.actions import SendMessage

        for (worker, step), machine in zip(self._replayed.asked(), self._machines, strict=True):
            self._perform(worker.number, machine.reduce(step.round, step.vector, 0, step.tensor))
        while self._in_time or self._late:
            sender, data = (self._in_time or self._late).popleft()
            for action in self._server.receive(self._peers[sender], data, 0):
                assert isinstance(action, SendMessage), action
                number = self._peers.index(action.peer)
                answered = self._machines[number].receive(self._address, action.data, 0)
                self._perform(number, answered)

    def _perform(self, number: int, actions: Iterable[Action]) -> None:
        from gradplane.hosts.protocols.actions import Deliver, SendMessage

        for action in actions:
            if isinstance(action, SendMessage):
                data = self._replayed.arrived(self._peers[number], action)
                queue = self._in_time if self._counts(number, data) else self._late
                queue.append((number, data))
            elif isinstance(action, Deliver):
                self._replayed.workers[number].take(action)

    def _counts(self, number: int, data: bytes) -> bool:
        """Return whether the worker's message is in the server's answer."""
        message, outcomes = parse(data), self._replayed.outcomes
        ticket, round = divmod(message.ticket, self._rounds)
        early = message.kind is Kind.STAT or round < self._rounds - 1
        answers = outcomes.stats if early else outcomes.pushes
        return bool(answers.get(ticket, self._everyone) >> number & 1)
