"""A worker's end of each aggregation scheme: its port on the host's link, and its reduces.

Hosts that train (roles.py) and user programs (hosts/reducer.py) reduce by the same ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.host_link import HostLink, LocalPort, aggregation_payload
from gradplane.hosts.protocols.actions import Action
from gradplane.hosts.protocols.bounded_worker import BoundedWorker
from gradplane.hosts.protocols.job_codec import codec_ns
from gradplane.hosts.protocols.messages import RING_KINDS, WORKER_KINDS
from gradplane.hosts.protocols.phases import Watch
from gradplane.hosts.protocols.results import Floats, Reduced, Summed
from gradplane.hosts.protocols.several_rounds import RoundsWorker, ring_worker, served_worker
from gradplane.hosts.protocols.shared_worker import SharedWorker
from gradplane.hosts.protocols.switch_worker import INEXACT, SwitchWorker
from gradplane.hosts.wire import aggregation, bounded
from gradplane.hosts.wire.payloads import Payloads

_BITS = 16
Array = npt.NDArray[Any]


def split(x: npt.NDArray[Any]) -> Floats:
    """Return the limbs of int32[n] or int64[n], all lowest ones first."""
    words = x.astype(np.int64).view(np.uint64)
    limbs = [words >> np.uint64(_BITS * k) & np.uint64(0xFFFF) for k in range(_limbs(x.dtype))]
    return np.concatenate(limbs).astype(np.float32)


def joined(mean: Floats, workers: int, kind: np.dtype[Any]) -> Array:
    """Return the sums of integers, in their type, from the mean of their limbs over all workers."""
    sums = np.rint(mean.astype(np.float64) * workers).astype(np.uint64).reshape(_limbs(kind), -1)
    total = np.zeros(sums.shape[1], np.uint64)
    for k, limb in enumerate(sums):
        total += limb << np.uint64(_BITS * k)
    return total.view(np.int64).astype(kind)


def _limbs(kind: np.dtype[Any]) -> int:
    return kind.itemsize * 8 // _BITS


class WorkerMachine(Protocol):
    """A worker's state machine, whose state between two reduces is saved and restored. `watch` is
    called with each reduce's new phase."""

    watch: Watch

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]: ...
    def timer(self, key: Hashable, now: int) -> list[Action]: ...
    def save(self) -> Any: ...
    def restore(self, saved: Any) -> None: ...


class WorkerReducer(ABC):
    """Reduces vectors for the worker of `config`, several at once; a Deliver brings each result.

    machines: performs its actions, and is the host's stream; stream: the stream's port, which is
    open. Raises ConfigError where the job does not fit the scheme.
    """

    encode_ns: float = 0.0
    """ns a value that encoding takes before a reduce; 0 where the reducer counts it itself."""
    decode_ns: float = 0.0
    """ns a value that decoding takes after a reduce."""
    refused: Mapping[str, int] = {}
    """The number of packets that were foreign or invalid, by reason."""
    machine: WorkerMachine
    """The protocol's state machine."""
    takes_devices = False
    """Whether the machine takes a DeviceVector."""

    def __init__(
        self,
        config: HostConfig,
        env: Environment,
        link: HostLink,
        machines: ActionDriver,
        stream: LocalPort,
    ) -> None:
        if config.worker is None:
            raise ConfigError(f"host {config.name}: a worker's host needs a worker number")
        self.job, self.worker = config.job, config.worker
        self.env, self.link, self.machines = env, link, machines
        self.port = stream
        self.connect()

    @abstractmethod
    def connect(self) -> None:
        """Make the protocol's state machine, `machine`; set `port` where it is not the stream's."""

    def reduce(self, ticket: int, vector: Floats, tensor: int = 0) -> None:
        """Begin a reduce of float32[n]; see SwitchWorker.reduce."""
        actions = self.machine.reduce(ticket, vector, self.env.now(), tensor)
        self.machines.perform(actions, self.machine.timer)

    def integers_obstacle(self) -> str | None:
        """Return why integers cannot be summed exactly; None where they can."""
        job, coding = self.job, self.job.coding
        if job.quorum < job.workers:
            return INEXACT
        named = {coding.codec[0], coding.pull_codec[0]}
        if coding.marked or named != {"float32"} or coding.local_steps > 1:
            return (
                f'integers are summed exactly with push = "float32", and this job has'
                f' "{coding.codec[0]}"' + (", marked" if coding.marked else "")
            )
        return None

    def of_integers(self, x: Array) -> Array:
        """Return what to reduce so that int32[n] or int64[n] are summed."""
        return split(x)

    def integer_sums(self, reduced: Reduced, kind: np.dtype[Any]) -> Array:
        """Return the sums, in the integers' type, from the result of a reduce of of_integers()."""
        return joined(reduced.mean, self.job.workers, kind)

    @abstractmethod
    def waiting(self, ticket: int) -> str:
        """Describe, for people, the packets or messages that a reduce in flight waits for."""


class SwitchReducer(WorkerReducer):
    """Codes that the P4 program sums."""

    protocol: ClassVar[type[SwitchWorker]] = SwitchWorker
    takes_devices = True

    def connect(self) -> None:
        """Open the port of aggregation packets."""
        self.machine = self._machine = self.protocol(self.job, self.worker, self.env.granularity)
        _, port = self.job.addresses.worker_addresses[self.worker]
        self.port = LocalPort(self._receive, aggregation_payload, self._machine.record)
        self.link.ports[port] = self.port
        self.encode_ns = self.decode_ns = codec_ns(self.job, self.job.coding.codec)
        self.refused = self._machine.refused

    def skip(self, reduces: int, n: int) -> None:
        """Begin after `reduces` reduces of n values, in which this worker took no part."""
        self._machine.skip(reduces, n)

    def prepared(self, ticket: int, partition: int, norm: int) -> Deferred[Any] | None:
        """Return the encoding of a partition that waits for this norm; see SwitchWorker."""
        return self._machine.prepared(ticket, partition, norm)

    def in_epoch(self, epoch: int) -> None:
        """Go on in an epoch of the job."""
        actions = self._machine.in_epoch(epoch, self.env.now())
        self.machines.perform(actions, self._machine.timer)

    def integers_obstacle(self) -> str | None:
        """Return why integers cannot be summed exactly; None where they can."""
        exact = (
            self.job.transport.reliability == "retransmit" and self.job.quorum == self.job.workers
        )
        return None if exact else INEXACT

    def of_integers(self, x: Array) -> Array:
        """Return the integers as they are: the state machine takes them."""
        return x

    def integer_sums(self, reduced: Reduced, kind: np.dtype[Any]) -> Array:
        """Return the sums."""
        assert isinstance(reduced, Summed), reduced
        return reduced.total

    def waiting(self, ticket: int) -> str:
        """Name the norms and chunks that the switch has not answered, of all reduces."""
        waits = self._machine.waits
        if not waits:
            return "nothing has been sent"
        kind, number = waits[0]
        slot, round = aggregation.place(number, self.job.transport.slots)
        ip, port = self.job.addresses.aggregator
        more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
        return f"the {kind} of slot {slot}, use {round}{more}, of {ip}:{port}"

    def _receive(self, ip: str, source_port: int, payloads: Payloads) -> None:
        actions = self._machine.receive(ip, source_port, payloads, self.env.now())
        self.machines.perform(actions, self._machine.timer)


class SharedReducer(SwitchReducer):
    """Codes that the P4 program sums in slots that jobs share, or the job's server."""

    protocol = SharedWorker


class ServedReducer(WorkerReducer):
    """Vectors that are pushed to a parameter server, and pulled from it."""

    def connect(self) -> None:
        """Listen to the server."""
        if self.job.above(self.worker) is None:
            raise ConfigError(f"worker {self.worker}: its job needs a server_address")
        if not self.job.rings:  # whose workers count the time themselves
            self.encode_ns = codec_ns(self.job, self.job.coding.codec)
            self.decode_ns = codec_ns(self.job, self.job.coding.pull_codec)
        self.machine = self._machine = served_worker(self.job, self.worker)
        self.takes_devices = not isinstance(self._machine, RoundsWorker)
        self.machines.route(WORKER_KINDS | RING_KINDS, self._machine.receive, self._machine.timer)

    def waiting(self, ticket: int) -> str:
        """Name the server; over rings the blocks that do not come."""
        if self.job.rings:
            return f"{', '.join(self._machine.missing(ticket))} of the ring and the server"
        address = self.job.above(self.worker)
        assert address is not None
        ip, port = address
        return f"the mean of {ip}:{port}"


class BoundedReducer(WorkerReducer):
    """Blocks that workers exchange in bounded time."""

    takes_devices = True

    def connect(self) -> None:
        """Open the port of bounded packets, and listen to the streams of all others."""
        self.machine = self._machine = BoundedWorker(self.job, self.worker, self.env.granularity)
        _, port = self.job.addresses.worker_addresses[self.worker]
        self.port = LocalPort(self._receive, bounded.payload_size)
        self.link.ports[port] = self.port
        self.machines.route(RING_KINDS, self._machine.message, self._machine.timer)
        self.encode_ns = self.decode_ns = codec_ns(self.job, self.job.coding.codec)
        self.refused = self._machine.refused

    def integers_obstacle(self) -> str | None:
        """Return why integers cannot be summed exactly: parts of a sum may be lost."""
        return INEXACT

    def waiting(self, ticket: int) -> str:
        """Name what has not come."""
        return ", ".join(self._machine.missing(ticket)) or "nothing has been sent"

    def _receive(self, ip: str, source_port: int, payloads: Payloads) -> None:
        actions = self._machine.receive(ip, source_port, payloads, self.env.now())
        self.machines.perform(actions, self._machine.timer)


class RingReducer(WorkerReducer):
    """Blocks that pass round a ring; it counts the time of encoding and decoding itself."""

    def connect(self) -> None:
        """Listen to the left neighbour."""
        self.machine = self._machine = ring_worker(self.job, self.worker)
        self.takes_devices = not isinstance(self._machine, RoundsWorker)
        self.machines.route(RING_KINDS, self._machine.receive, self._machine.timer)

    def waiting(self, ticket: int) -> str:
        """Name the left neighbour; over groups the blocks that do not come."""
        if self.job.groups:
            return f"{', '.join(self._machine.missing(ticket))} of the neighbours in its rings"
        ip, port = self.job.addresses.stream((self.worker - 1) % self.job.workers)
        return f"{len(self._machine.missing(ticket))} blocks of {ip}:{port}"
