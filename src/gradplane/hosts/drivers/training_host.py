"""The host of a worker: takes the steps that its training asks for, and logs what it reports."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.drivers.action_driver import ActionDriver, OnTimer
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.host_link import HostLink, LocalPort, PortTraffic
from gradplane.hosts.protocols.actions import Action, Deliver, Failed, Peer
from gradplane.hosts.protocols.messages import JOIN_KINDS, SYNC_KINDS, Kind
from gradplane.hosts.protocols.results import Floats, Joined, Reduced
from gradplane.hosts.protocols.synchronisation import Joining, Synchronisation
from gradplane.hosts.stream import segments
from gradplane.hosts.training.train import (
    Compute,
    Crash,
    Join,
    Reduce,
    Report,
    Step,
    Synchronise,
    train,
)

_LIFE = 1 << 8
"""The connection number of a worker's streams is this times the round that it begins with, more
than it gave up connections before, so that it is larger in each life."""


def about(config: HostConfig) -> dict[str, Any]:
    """Return the fields that a host's records of its streams have."""
    return {"job": config.job.number, "link": config.name}


class HostError(RuntimeError):
    """A host cannot continue; the message says which and why."""


class StreamReducer(Protocol):
    """A worker's reduces by messages over its stream."""

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message."""

    def reduce(self, ticket: int, vector: Floats, now: int) -> list[Action]:
        """Begin a reduce."""


class TrainingHost(ABC):
    """Trains through the network until `finished`; a derived class says how a vector is reduced.

    A round's traffic is that of the port its reduces use, since the last round's record. With
    reduces over the stream that is the stream's port, so the small reports of a synchronisation are
    in it. Raises ConfigError where the configuration has no worker number.
    """

    encode_ns: float = 0.0
    """ns a value that encoding takes before a reduce; 0 where the reducer counts it itself."""
    decode_ns: float = 0.0
    """ns a value that decoding takes after a reduce."""
    reduce_port: LocalPort
    """The local port that reduces use. `connect` sets it."""

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        if config.worker is None:
            raise ConfigError(f"host {config.name}: a worker's host needs a worker number")
        self.config, self.env, self.link = config, env, link
        self.job, self.worker = config.job, config.worker
        self._times: dict[str, int] = {}
        self.finished = False
        self._open_stream()
        self.refused: Mapping[str, int] = {}
        self.connect()
        self._training = train(self.job, self.worker, config.joins)

    @abstractmethod
    def connect(self) -> None:
        """Set up what reduces vectors: `reduce_port`, and `encode_ns` and so on if they apply."""

    @abstractmethod
    def reduce(self, step: Reduce) -> None:
        """Begin the reduce that the training asks for; its result comes as a Deliver."""

    def take_traffic(self) -> PortTraffic:
        """Return the traffic of the reduces since the last call."""
        return self.reduce_port.take_traffic()

    def granularity(self) -> int:
        """Return the ns below which no timeout of the stream is."""
        return self.env.granularity

    def window(self) -> int:
        """Return the largest number of segments that the stream has in flight to a peer."""
        return segments.BEYOND

    @property
    def ignored(self) -> dict[str, int]:
        """The number of datagrams that arrived and were ignored, by reason."""
        return self.machines.ignored | dict(self.refused)

    def start(self) -> None:
        """Begin to train."""
        self._resume(None)

    def _open_stream(self) -> None:
        _, port = self.job.addresses.stream(self.worker)
        self.machines = ActionDriver(
            *(self.env, port, self.link.send, self._deliver, self._failed),
            connection=1 + _LIFE * self.config.joins,
            granularity=self.granularity(),
            window=self.window(),
            trip=self.job.transport.stream_trip_ns,
            about=about(self.config),
        )
        self._sync = Synchronisation(self.job, self.worker)
        self.machines.route(SYNC_KINDS, self._sync.receive)
        self._joining = Joining(self.job, self.worker)
        self.machines.route(JOIN_KINDS, self._joining.receive, self._joining.timer)
        self.stream_port = LocalPort.of_stream(self.machines)
        self.link.ports[port] = self.stream_port

    def _resume(self, answer: Any) -> None:
        """Answer the training's last step and begin the next."""
        try:
            step = self._training.send(answer)
            while isinstance(step, Report):
                self._report(step)
                step = self._training.send(None)
        except StopIteration:
            self.finished = True
        else:
            self._begin(step)

    def _begin(self, step: Step) -> None:
        now = self.env.now()
        match step:
            case Compute(number, ns):
                self._times = {"started": now}
                self.link.start_round(number)
                self.env.call_at(now + ns, lambda: self._resume(None))
            case Reduce():
                self._times["computed"] = now
                encode = round(self.encode_ns * step.vector.size)
                self._after(encode, lambda: self.reduce(step))
            case Synchronise(epoch, missed, parameters, workers):
                actions = self._sync.synchronise(epoch, missed, parameters, now, workers)
                self.machines.perform(actions)
            case Join(number, state):
                actions = self._joining.join(number, state, now)
                self.machines.perform(actions, self._joining.timer)
            case Crash(number, back):
                who = {"job": self.job.number, "worker": self.worker}
                self.env.record("crash", **who, training_round=number, back=back, at=now)
                self.env.crash(back)

    def _deliver(self, delivered: Deliver) -> None:
        result = delivered.result
        if isinstance(result, Joined):
            who = {"job": self.job.number, "worker": self.worker}
            self.env.record("join", **who, training_round=delivered.ticket, at=self.env.now())
        if isinstance(result, Reduced):
            decode = round(self.decode_ns * result.mean.size)
            self._after(decode, lambda: self._reduced(result))
        else:
            self._resume(result)

    def _reduced(self, result: Reduced) -> None:
        n = result.mean.size
        codec = result.codec_ns + round(self.encode_ns * n) + round(self.decode_ns * n)
        parts = {"codec": codec, "reduce": result.reduce_ns}
        if result.compute_ns:
            parts["compute"] = result.compute_ns
        self._times |= {"finished": self.env.now()} | parts
        self._resume(result)

    def _after(self, ns: int, call: Callable[[], None]) -> None:
        """Call after `ns`; at once if it is 0."""
        if ns:
            self.env.call_at(self.env.now() + ns, call)
        else:
            call()

    def _report(self, report: Report) -> None:
        fields = {"job": self.job.number, "worker": self.worker} | report.fields
        if report.kind == "round":
            fields |= self._times | vars(self.take_traffic())
        if report.kind == "done":
            fields["at"] = self.env.now()
        self.env.record(report.kind, **fields)

    def _failed(self, failure: Failed) -> None:
        away = {self.job.addresses.stream(absence.worker) for absence in self.job.absences}
        if not self.finished and failure.peer not in away:
            ip, port = failure.peer
            raise HostError(f"host {self.config.name}: {ip}:{port}: {failure.reason}")


class StreamHost(TrainingHost):
    """A worker whose reduces travel over its stream."""

    _reducer: StreamReducer
    _on_timer: OnTimer | None

    def use(
        self, reducer: StreamReducer, kinds: Iterable[Kind], on_timer: OnTimer | None = None
    ) -> None:
        """Reduce through `reducer`, which gets messages of these kinds and, by `on_timer`, its
        timers."""
        self._reducer, self._on_timer = reducer, on_timer
        self.machines.route(kinds, reducer.receive, on_timer)
        self.reduce_port = self.stream_port

    def reduce(self, step: Reduce) -> None:
        """Begin the reduce that the training asks for."""
        actions = self._reducer.reduce(step.round, step.vector, self.env.now())
        self.machines.perform(actions, self._on_timer)
