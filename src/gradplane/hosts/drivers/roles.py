"""The roles that hosts have under the shipped aggregation schemes.

A HostConfig names its host's role as "module:object". A user-defined role is a class like these, in
any module.
"""

import math
from functools import partial
from typing import Any, ClassVar

from gradplane._deferred import Deferred
from gradplane.hosts.config import STREAM_PORT_OFFSET, ConfigError, HostConfig, JobConfig
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.drivers.training_host import StreamHost, TrainingHost, about
from gradplane.hosts.drivers.worker_reducers import (
    BoundedReducer,
    RingReducer,
    ServedReducer,
    SharedReducer,
    SwitchReducer,
    WorkerReducer,
)
from gradplane.hosts.impairments.host_link import (
    HostLink,
    LocalPort,
    PortTraffic,
    aggregation_payload,
)
from gradplane.hosts.protocols.actions import Deliver, Failed
from gradplane.hosts.protocols.messages import PLAN_KINDS, SERVER_KINDS, WORKER_KINDS
from gradplane.hosts.protocols.planned_server import PlannedServer
from gradplane.hosts.protocols.planned_worker import PlannedWorker
from gradplane.hosts.protocols.run_plan import RunPlan, run_plan
from gradplane.hosts.protocols.server_tree import server
from gradplane.hosts.protocols.shared_server import SharedServer
from gradplane.hosts.stream import segments
from gradplane.hosts.training.sgd import served
from gradplane.hosts.training.train import Reduce
from gradplane.hosts.wire.payloads import Payloads

_PACKET = (segments.SEGMENT + 70) * 8  # bits of a segment with its headers, from Ethernet on
_WINDOW = 8  # segments, besides those on the way


class ReducingRole(TrainingHost):
    """A worker that trains and reduces whole gradients by `reducer`."""

    reducer: ClassVar[type[WorkerReducer]]

    def connect(self) -> None:
        """Open the reducer's port."""
        place = (self.config, self.env, self.link, self.machines, self.stream_port)
        self._reducer = self.reducer(*place)
        self.reduce_port = self._reducer.port
        self.encode_ns, self.decode_ns = self._reducer.encode_ns, self._reducer.decode_ns
        self.refused = self._reducer.refused

    def reduce(self, step: Reduce) -> None:
        """Begin the reduce that the training asks for."""
        self._reducer.reduce(step.round, step.vector)


class SwitchWorkerRole(ReducingRole):
    """A worker whose codes the P4 program sums."""

    reducer = SwitchReducer
    _reducer: SwitchReducer

    def connect(self) -> None:
        """Open the port of aggregation packets."""
        super().connect()
        self._skip = self.config.joins  # reduces before its first

    def in_epoch(self, epoch: int) -> None:
        """Go on in an epoch of the job, as a switch has lost its state."""
        self._reducer.in_epoch(epoch)

    def prepared(self, ticket: int, partition: int, norm: int) -> Deferred[Any] | None:
        """Return the encoding of a partition that waits for this norm; see SwitchWorker."""
        return self._reducer.prepared(ticket, partition, norm)

    def reduce(self, step: Reduce) -> None:
        """Begin the reduce that the training asks for."""
        if self._skip:
            self._reducer.skip(self._skip, step.vector.size)
            self._skip = 0
        super().reduce(step)


class SharedWorkerRole(SwitchWorkerRole):
    """A worker whose codes the P4 program sums in slots that jobs share."""

    reducer = SharedReducer


class ServedWorkerRole(ReducingRole):
    """A worker of a parameter server."""

    reducer = ServedReducer


class RingWorkerRole(ReducingRole):
    """A worker of a ring."""

    reducer = RingReducer


class BoundedWorkerRole(ReducingRole):
    """A worker that exchanges blocks with all others in bounded time."""

    reducer = BoundedReducer

    def take_traffic(self) -> PortTraffic:
        """Return the traffic of both ports since the last call."""
        ports = self.reduce_port, self.stream_port
        return PortTraffic.total([port.take_traffic() for port in ports])


class PlannedWorkerRole(StreamHost):
    """A worker that takes each tensor on the way that a plan chose for it."""

    def connect(self) -> None:
        """Reduce tensor by tensor, with the computation between them."""
        self._planned = PlannedWorker(self.job, self.worker, self.granularity())
        self.use(self._planned, PLAN_KINDS, self._planned.timer)
        _, port = self.job.addresses.notice(self.worker)
        self.machines.open_stream(port)
        self.link.ports[port] = LocalPort.of_stream(self.machines, port)
        sums = self._planned.sums
        for port, routine in sums.ports.items():
            receive, record = partial(self._receive_sums, port), sums.machines[routine].record
            self.link.ports[port] = LocalPort(receive, aggregation_payload, record)

    def _receive_sums(self, port: int, ip: str, source: int, payloads: Payloads) -> None:
        actions = self._planned.receive_sums(port, ip, source, payloads, self.env.now())
        self.machines.perform(actions, self._planned.timer)

    def take_traffic(self) -> PortTraffic:
        """Return the traffic of the stream and of the switch's sums since the last call."""
        ports = [self.link.ports[port] for port in self._planned.sums.ports]
        return PortTraffic.total([port.take_traffic() for port in (self.stream_port, *ports)])

    def granularity(self) -> int:
        """Return the ns in which the full windows of a machine's GPUs pass the slowest link twice.

        A scaled plan has slow links: after small messages a stream expects an answer long before
        those of a large one can arrive, which wait behind the other direction's, too, and would
        send everything again.
        """
        return _granularity(_plan(self.job), self.env)

    def window(self) -> int:
        """Return the segments in flight that keep the quickest link busy, and no more.

        Others would wait in the network, and small messages of the machine's other GPUs behind
        them.
        """
        return _window(_plan(self.job), self.env)


def _plan(job: JobConfig) -> RunPlan:
    assert job.coding.plan is not None, "the job has no plan"
    return run_plan(job.coding.plan)


def _granularity(plan: RunPlan, env: Environment) -> int:
    sharing = max(plan.gpus, plan.workers if plan.servers else 0)  # streams on the busiest link
    packets = 2 * sharing * _window(plan, env)
    return max(env.granularity, round(packets * _PACKET / min(plan.rates) * 1e9))


def _window(plan: RunPlan, env: Environment) -> int:
    seconds = 2 * max(plan.latencies) + env.granularity / 1e9
    return min(_WINDOW + math.ceil(max(plan.rates) * seconds / _PACKET), segments.BEYOND)


class ServerRole:
    """A host that answers workers and does nothing else; a derived class makes `_machines`."""

    finished = True
    _machines: ActionDriver

    def __init__(self) -> None:
        self._unreachable = 0  # workers that no longer acknowledge, such as finished ones

    @property
    def ignored(self) -> dict[str, int]:
        """Return how much arrived and was of no use, by reason."""
        return self._machines.ignored | {"unreachable": self._unreachable}

    def start(self) -> None:
        """Do nothing: the workers send the first messages."""

    def _failed(self, failure: Failed) -> None:
        self._unreachable += 1


class PlannedServerRole(ServerRole):
    """A server of a plan: it adds the parts that workers send."""

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        super().__init__()
        (port,) = (port for ip, port in config.job.addresses.servers if ip == config.ip)
        plan = _plan(config.job)
        self._machines = ActionDriver(
            *(env, port, link.send, _undelivered, self._failed),
            granularity=_granularity(plan, env),
            window=_window(plan, env),
            about=about(config),
        )
        self._machines.route(PLAN_KINDS, PlannedServer(config.job).receive)
        link.ports[port] = LocalPort.of_stream(self._machines)


class ParameterServerRole(ServerRole):
    """A parameter server: the only one of its job, the root of a tree of them, or a group's."""

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        super().__init__()
        addresses = (_server_address(config), *config.job.addresses.servers)
        (own,) = (address for address in addresses if address[0] == config.ip)
        self._machines = ActionDriver(
            *(env, own[1], link.send, _undelivered, self._failed),
            trip=config.job.transport.stream_trip_ns,
            about=about(config),
        )
        steps = own == config.job.addresses.server_address
        machine = server(config.job, own, served(config.job) if steps else None)
        kinds = SERVER_KINDS | WORKER_KINDS
        self._machines.route(kinds, machine.receive, machine.timer)
        link.ports[own[1]] = LocalPort.of_stream(self._machines)


class SharedServerRole(ServerRole):
    """The server of a job that shares a switch's slots with others."""

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        super().__init__()
        _, port = _server_address(config)
        self._env = env
        self._machines = ActionDriver(
            env, port + STREAM_PORT_OFFSET, link.send, _undelivered, self._failed
        )
        self._server = SharedServer(config.job, env.granularity)
        link.ports[port] = LocalPort(self._receive, aggregation_payload)

    @property
    def ignored(self) -> dict[str, int]:
        """Return how many packets were foreign or invalid, by reason."""
        return super().ignored | self._server.refused

    def _receive(self, ip: str, source_port: int, payloads: Payloads) -> None:
        actions = self._server.receive(ip, source_port, payloads, self._env.now())
        self._machines.perform(actions, self._server.timer)


def _undelivered(delivered: Deliver) -> None:
    raise AssertionError(f"a server reduces nothing itself, but got {delivered}")


def _server_address(config: HostConfig) -> tuple[str, int]:
    if config.job.addresses.server_address is None:
        raise ConfigError(f"host {config.name}: its job needs a server_address")
    return config.job.addresses.server_address
