"""The switch of a replay: the embedded one, set up over P4Runtime as for the run, without time."""

from collections import deque
from types import TracebackType

from gradplane import placement, programs
from gradplane.controller.connection import Pipeline
from gradplane.controller.simple import configure
from gradplane.runner import aside
from gradplane.schema import Experiment
from gradplane.topologies import frames
from gradplane.topologies.description import Host, Topology
from gradplane.topologies.events import EventQueue
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim_switch import SimSwitch

Answer = tuple[str, int, bytes]
"""The host that gets it, the UDP port there, the payload."""


class ReplaySwitch:
    """A context manager. `send` a worker's datagram: all that leaves because of it comes back."""

    def __init__(self, experiment: Experiment, pipeline: Pipeline) -> None:
        self._experiment, self._pipeline = experiment, pipeline
        self._topology: Topology = placement.topology(experiment)
        self._switch = self._topology.switches[0]
        self._ports = self._topology.ports(self._switch.name)
        self._events = EventQueue()
        self._out: deque[tuple[int, bytes]] = deque()
        self._running = SimSwitch(
            self._switch.name,
            self._ports,
            self._config(),
            self._events,
            lambda port, frame: self._out.append((port, frame)),
        )

    def _config(self) -> SwitchConfig:
        program = programs.find(self._experiment.switch.program)
        return SwitchConfig(
            program=program,
            include_dirs=programs.include_dirs(program),
            defines=tuple(placement.defines(self._experiment).items()),
            engine=self._experiment.switch.engine,
            seed=self._experiment.seed,
            latency=0,
        )

    def __enter__(self) -> "ReplaySwitch":
        self._running.__enter__()
        try:
            setup = placement.setup(self._experiment)
            aside(configure, self._running.address, self._pipeline, setup)
        except BaseException:
            self._running.__exit__()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.__exit__()

    def send(self, host: str, source_port: int, port: int, payload: bytes) -> list[Answer]:
        """A datagram of that host to the switch's own address."""
        sender = self._topology.host[host]
        source = frames.Address(sender.mac, sender.ip, source_port)
        to = frames.Address(self._switch.mac, self._switch.ip, port)
        self._running.receive(self._topology.attachment(host)[1], frames.build(source, to, payload))
        while self._events.step():
            pass
        answers = [self._answer(port, frame) for port, frame in self._out]
        self._out.clear()
        return answers

    def _answer(self, port: int, frame: bytes) -> Answer:
        host = self._host_at(port)
        datagram = frames.parse(frame, host.mac)
        return host.name, datagram.port, datagram.payload

    def _host_at(self, port: int) -> Host:
        link = self._ports[port]
        return self._topology.host[link.other_end(self._switch.name)[0]]
