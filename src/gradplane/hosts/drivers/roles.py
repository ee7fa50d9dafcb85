"""The roles that hosts have under the shipped aggregation schemes.

A HostConfig names its host's role as "module:object". A user-defined role is a class like these, in
any module.
"""

from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.drivers.training_host import StreamHost, TrainingHost
from gradplane.hosts.impairments.host_link import (
    HostLink,
    LocalPort,
    aggregation_payload,
    stream_payload,
)
from gradplane.hosts.protocols import switch_worker
from gradplane.hosts.protocols.actions import Deliver, Failed
from gradplane.hosts.protocols.job_codec import codec_ns
from gradplane.hosts.protocols.messages import RING_KINDS, SERVER_KINDS, WORKER_KINDS
from gradplane.hosts.protocols.parameter_server import PsServer, PsWorker
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.training.train import Reduce
from gradplane.hosts.wire.payloads import Payloads


class SwitchWorkerRole(TrainingHost):
    """A worker whose codes the P4 program sums."""

    def connect(self) -> None:
        """Open the port of aggregation packets."""
        self._reducer = switch_worker.SwitchWorker(self.job, self.worker, self.env.granularity)
        self._skip = self.config.joins  # reduces before its first
        _, port = self.job.worker_addresses[self.worker]
        self.link.ports[port] = self.reduce_port = LocalPort(self._receive, aggregation_payload)
        self.reduce_port.fast_results = self._reducer.fast_results
        self.encode_ns = self.decode_ns = codec_ns(self.job, self.job.codec)
        self.refused = self._reducer.refused

    def reduce(self, step: Reduce) -> None:
        """Begin the reduce that the training asks for."""
        if self._skip:
            self._reducer.skip(self._skip, step.vector.size)
            self._skip = 0
        actions = self._reducer.reduce(step.round, step.vector, self.env.now())
        self.machines.perform(actions, self._reducer.timer)

    def _receive(self, ip: str, source_port: int, payloads: Payloads) -> None:
        actions = self._reducer.receive(ip, source_port, payloads, self.env.now())
        self.machines.perform(actions, self._reducer.timer)


class ServedWorkerRole(StreamHost):
    """A worker of a parameter server."""

    def connect(self) -> None:
        """Reduce by pushing to the server and pulling from it."""
        _server_address(self.config)
        self.encode_ns = codec_ns(self.job, self.job.codec)
        self.decode_ns = codec_ns(self.job, self.job.pull_codec)
        self.use(PsWorker(self.job, self.worker), WORKER_KINDS)


class RingWorkerRole(StreamHost):
    """A worker of a ring; it counts the time of its encoding and decoding itself."""

    def connect(self) -> None:
        """Reduce by passing blocks to the right neighbour."""
        reducer = RingWorker(RingPlan.of(self.job), self.worker)
        self.use(reducer, RING_KINDS, reducer.timer)


class ParameterServerRole:
    """The parameter server: it answers its workers and does nothing else."""

    finished = True

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        _, port = _server_address(config)
        self._machines = ActionDriver(env, port, link.send, self._deliver, self._failed)
        server = PsServer(config.job)
        self._machines.route(SERVER_KINDS, server.receive, server.timer)
        link.ports[port] = LocalPort(self._machines.receive, stream_payload)
        self._unreachable = 0  # workers that no longer acknowledge, such as finished ones

    @property
    def ignored(self) -> dict[str, int]:
        """Return how much arrived and was of no use, by reason."""
        return self._machines.ignored | {"unreachable": self._unreachable}

    def start(self) -> None:
        """Do nothing: the workers send the first messages."""

    def _deliver(self, delivered: Deliver) -> None:
        raise AssertionError(f"a parameter server reduces nothing itself, but got {delivered}")

    def _failed(self, failure: Failed) -> None:
        self._unreachable += 1


def _server_address(config: HostConfig) -> tuple[str, int]:
    if config.job.server_address is None:
        raise ConfigError(f"host {config.name}: its job needs a server_address")
    return config.job.server_address
