"""A worker's host: takes the steps that its training asks for, and logs what it reports."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gradplane.hosts.actions import Deliver, Failed
from gradplane.hosts.config import HostConfig
from gradplane.hosts.environment import Environment
from gradplane.hosts.link import Link, Port, aggregation_payload, stream_payload
from gradplane.hosts.machines import Machines
from gradplane.hosts.messages import SYNC_KINDS, WORKER_KINDS
from gradplane.hosts.ps import PsWorker
from gradplane.hosts.switch_worker import SwitchWorker
from gradplane.hosts.sync import Sync
from gradplane.hosts.training import Compute, Reduce, Report, Step, Synchronise, train


class HostError(RuntimeError):
    """A host cannot go on; the message says which and why."""


class Worker:
    """Trains through the network until done, which `finished` says.

    A round's traffic is that of the port its reduces use, since the last round's record. With a
    server that is the stream's port, so the small reports of a synchronisation are in it.
    """

    def __init__(self, config: HostConfig, env: Environment, link: Link) -> None:
        assert config.worker is not None
        self._config, self._env, self._link = config, env, link
        self._job, self._worker = config.job, config.worker
        self._times: dict[str, int] = {}
        self.finished = False
        self._open_stream()
        if self._job.aggregation == "switch":
            self._use_switch()
        else:
            self._use_server()
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
        self._refused: Mapping[str, int] = reducer.refused

    def _use_server(self) -> None:
        reducer = PsWorker(self._job, self._worker)
        self._machines.route(WORKER_KINDS, reducer.receive)

        def reduce(step: Reduce) -> None:
            actions = reducer.reduce(step.round, step.vector, self._env.now())
            self._machines.perform(actions)

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
                self._reduce(step)
            case Synchronise(epoch, missed, parameters):
                actions = self._sync.synchronise(epoch, missed, parameters, now)
                self._machines.perform(actions)

    def _deliver(self, delivered: Deliver) -> None:
        self._times["finished"] = self._env.now()
        self._resume(delivered.result)

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
