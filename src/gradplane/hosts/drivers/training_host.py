"""A worker's host: takes the steps that its training asks for, and logs what it reports."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.action_driver import Machines, OnTimer
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.host_link import Link, Port, aggregation_payload, stream_payload
from gradplane.hosts.protocols.actions import Deliver, Failed
from gradplane.hosts.protocols.job_codec import codec_ns
from gradplane.hosts.protocols.messages import RING_KINDS, SYNC_KINDS, WORKER_KINDS, Kind
from gradplane.hosts.protocols.parameter_server import PsWorker
from gradplane.hosts.protocols.results import Reduced
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.protocols.synchronisation import Sync
from gradplane.hosts.training.train import Compute, Reduce, Report, Step, Synchronise, train


class HostError(RuntimeError):
    """A host cannot go on; the message says which and why."""


class Worker:
    """Trains through the network until done, which `finished` says.

    A round's traffic is that of the port its reduces use, since the last round's record. With a
    server or a ring that is the stream's port, so the small reports of a synchronisation are in it.
    Encoding before a reduce through switch or server, and decoding after it, take the time that the
    job says; a ring's worker counts its own.
    """

    def __init__(self, config: HostConfig, env: Environment, link: Link) -> None:
        assert config.worker is not None
        self._config, self._env, self._link = config, env, link
        self._job, self._worker = config.job, config.worker
        self._times: dict[str, int] = {}
        self.finished = False
        self._open_stream()
        self._encode_ns = self._decode_ns = 0.0  # a value
        use = {"switch": self._use_switch, "ps": self._use_server, "ring": self._use_ring}
        use[self._job.aggregation]()
        self._training = train(self._job, self._worker)

    @property
    def ignored(self) -> dict[str, int]:
        """See Host."""
        return self._machines.ignored | dict(self._refused)

    def start(self) -> None:
        """Begin to train."""
        self._resume(None)

    def _open_stream(self) -> None:
        _, port = self._job.stream_address(self._worker)
        self._machines = Machines(self._env, port, self._link.send, self._deliver, self._failed)
        self._sync = Sync(self._job, self._worker)
        self._machines.route(SYNC_KINDS, self._sync.receive)
        self._stream_port = Port(self._machines.receive, stream_payload)
        self._link.ports[port] = self._stream_port

    def _use_switch(self) -> None:
        reducer = SwitchWorker(self._job, self._worker)

        def reduce(step: Reduce) -> None:
            actions = reducer.reduce(step.round, step.vector, self._env.now())
            self._machines.perform(actions, reducer.timer)

        def receive(ip: str, source_port: int, payload: bytes) -> None:
            actions = reducer.receive(ip, source_port, payload, self._env.now())
            self._machines.perform(actions, reducer.timer)

        _, port = self._job.worker_addresses[self._worker]
        self._link.ports[port] = self._reduce_port = Port(receive, aggregation_payload)
        self._reduce = reduce
        self._encode_ns = self._decode_ns = codec_ns(self._job, self._job.codec)
        self._refused: Mapping[str, int] = reducer.refused

    def _use_server(self) -> None:
        self._encode_ns = codec_ns(self._job, self._job.codec)
        self._decode_ns = codec_ns(self._job, self._job.pull_codec)
        self._use_stream(PsWorker(self._job, self._worker), WORKER_KINDS)

    def _use_ring(self) -> None:
        reducer = RingWorker(RingPlan.of(self._job), self._worker)
        self._use_stream(reducer, RING_KINDS, reducer.timer)

    def _use_stream(
        self,
        reducer: PsWorker | RingWorker,
        kinds: Iterable[Kind],
        on_timer: OnTimer | None = None,
    ) -> None:
        self._machines.route(kinds, reducer.receive, on_timer)

        def reduce(step: Reduce) -> None:
            actions = reducer.reduce(step.round, step.vector, self._env.now())
            self._machines.perform(actions, on_timer)

        self._reduce_port = self._stream_port
        self._reduce = reduce
        self._refused = {}

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
        now = self._env.now()
        match step:
            case Compute(number, ns):
                self._times = {"started": now}
                self._link.start_round(number)
                self._env.call_at(now + ns, lambda: self._resume(None))
            case Reduce():
                self._times["computed"] = now
                encode = round(self._encode_ns * step.vector.size)
                self._after(encode, lambda: self._reduce(step))
            case Synchronise(epoch, missed, parameters):
                actions = self._sync.synchronise(epoch, missed, parameters, now)
                self._machines.perform(actions)

    def _deliver(self, delivered: Deliver) -> None:
        result = delivered.result
        if isinstance(result, Reduced):
            decode = round(self._decode_ns * result.mean.size)
            self._after(decode, lambda: self._reduced(result))
        else:
            self._resume(result)

    def _reduced(self, result: Reduced) -> None:
        n = result.mean.size
        codec = result.codec_ns + round(self._encode_ns * n) + round(self._decode_ns * n)
        parts = {"codec": codec, "reduce": result.reduce_ns}
        self._times |= {"finished": self._env.now()} | parts
        self._resume(result)

    def _after(self, ns: int, call: Callable[[], None]) -> None:
        """Call once `ns` have passed, at once if there are none."""
        if ns:
            self._env.call_at(self._env.now() + ns, call)
        else:
            call()

    def _report(self, report: Report) -> None:
        fields = {"job": self._job.number, "worker": self._worker} | report.fields
        if report.kind == "round":
            fields |= self._times | asdict(self._reduce_port.take_traffic())
        if report.kind == "done":
            fields["at"] = self._env.now()
        self._env.record(report.kind, **fields)

    def _failed(self, failure: Failed) -> None:
        if not self.finished:
            ip, port = failure.peer
            raise HostError(f"host {self._config.name}: {ip}:{port}: {failure.reason}")
