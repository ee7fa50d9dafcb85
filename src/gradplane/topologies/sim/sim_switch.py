"""A switch of the simulated network: the engine under virtual time, and its P4Runtime server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import lru_cache, partial

from gradplane.controller import targets
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import Source
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.program_cache import load_program, load_source
from gradplane.switch.runtime.egress_queues import DEFAULT_DEPTH, EgressQueues
from gradplane.switch.runtime.links import Links
from gradplane.switch.runtime.packet_passes import Output
from gradplane.switch.switch import Recirculated, Switch
from gradplane.topologies.description import QUEUE, Link
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim.events import Channel, Events, SimEvent

Transmit = Callable[[int, bytes], None]


def compiled(config: SwitchConfig, switches: Iterable[str] = ("",)) -> dict[str, ir.Program]:
    """Compile the programs of switches, each once, by their names. Raises CompileError."""
    found: dict[tuple[object, ...], ir.Program] = {}
    programs = {}
    for name in switches:
        own = config.of(name)
        asked = own.program, own.include_dirs, own.defines
        if asked not in found:
            found[asked] = load_program(own.program, own.include_dirs, dict(own.defines))
        programs[name] = found[asked]
    return programs


def pushed(source: Source) -> ir.Program:
    """Compile a pushed program; runs of one process push the same one again and again."""
    defines = tuple(source.defines.items())
    return _pushed(source.text, source.file, defines, source.p4info)


@lru_cache(maxsize=4)
def _pushed(
    text: str, file: str, defines: tuple[tuple[str, str], ...], p4info: bytes | None
) -> ir.Program:
    return load_source(Source(text, file, dict(defines), p4info))


class SimSwitch:
    """Runs `program`: frames in by `receive`, out by `transmit` after `config.latency` ns. `ports`:
    the links by port number.

    A program that sees how long packets wait finds them in a queue before egress: they leave at the
    rate of the port's link, which holds as many as its options say, and those beyond are counted in
    `queue_dropped`. Frames of any other program wait on the link, and before egress only where
    `config` gives queues of a rate.

    Recirculated packets wait for a separate port with a rate; QUEUE frames may wait there, more are
    dropped and counted. A context manager: the P4Runtime server runs inside it, at `address`.
    """

    def __init__(
        self,
        name: str,
        ports: Mapping[int, Link],
        config: SwitchConfig,
        program: ir.Program,
        events: Events,
        transmit: Transmit,
    ) -> None:
        self._name, self._ports, self._config = name, dict(ports), config
        self._program = program
        self._events, self._transmit = events, transmit
        self._recirculation: Channel[Recirculated] = Channel(
            events, config.recirculation_rate, 0, QUEUE, partial(self._pass, 0)
        )
        self._device = Device(pushed, self._start, id=targets.get(config.target).device_id)
        self._server = P4RuntimeServer(self._device, "127.0.0.1:0")
        self._queues = EgressQueues()
        self._departure: SimEvent | None = None  # the next one of a frame in a queue
        self._captures: dict[tuple[int, str], PcapWriter] = {}
        self._exit = ExitStack()

    @property
    def address(self) -> str:
        """The address of the P4Runtime server."""
        return self._server.address

    def __enter__(self) -> SimSwitch:
        with ExitStack() as on_failure:
            for port in self._ports if self._config.pcap is not None else ():
                for way in ("in", "out"):
                    self._captures[port, way] = self._writer(port, way, on_failure)
            on_failure.enter_context(self._server)
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _start(self, program: ir.Program) -> Switch:
        clock = partial(getattr, self._events, "now")
        config, self._queues = self._config, EgressQueues()
        links = Links(queues=self._queues)
        if config.queues is not None:
            for port in self._ports:  # not the ports that packets are recirculated through
                self._queues.set_rate(config.queues.rate, port)
                self._queues.set_depth(config.queues.depth or DEFAULT_DEPTH, port)
        switch = Switch(program, engine=config.engine, seed=config.seed, clock=clock, links=links)
        if switch.sees_queues:
            for port, link in self._ports.items():
                if link.rate is not None:
                    own = None if config.queues is None else config.queues.depth
                    self._queues.pace(port, link.rate, own or link.queue)
        return switch

    def _writer(self, port: int, way: str, closing: ExitStack) -> PcapWriter:
        """Open the capture file that the real switch would write."""
        assert self._config.pcap is not None
        path = self._config.pcap / f"{self._name}-eth{port}_{way}.pcap"
        return closing.enter_context(PcapWriter(path, lambda: self._events.now))

    def _capture(self, port: int, way: str, frame: bytes) -> None:
        if (port, way) in self._captures:
            self._captures[port, way].write(frame)

    def receive(self, port: int, frame: bytes) -> None:
        """Process a frame from the link at `port`."""
        self._capture(port, "in", frame)
        self._pass(port, frame)

    def _pass(self, port: int, frame: bytes | Recirculated) -> None:
        """Run one pass through the program."""
        self._send(*self.running.run_once(port, frame))
        self._await_departure()

    @property
    def running(self) -> Switch:
        """The switch that runs now: its program, if no controller has loaded one."""
        if self._device.pipeline is None:
            self._device.load(self._program)
        pipeline = self._device.pipeline
        assert pipeline is not None and isinstance(pipeline.switch, Switch)
        return pipeline.switch

    def _depart(self) -> None:
        """Run egress of the frames whose queues let them go."""
        self._departure = None
        self._send(*self.running.poll_once())
        self._await_departure()

    def _await_departure(self) -> None:
        at = self._queues.next_departure()
        if at is None or (self._departure is not None and self._departure.at <= at):
            return
        if self._departure is not None:
            self._departure.cancel()
        self._departure = self._events.at(at, self._depart)

    def clear(self) -> None:
        """Drop the frames that wait in queues; the events of their departures are cancelled."""
        self._queues.clear()
        self._departure = None

    def lose_state(self) -> None:
        """Run the program from its beginning: without entries, and with empty registers."""
        self._device.load(self._program)

    def queue_dropped(self, port: int) -> int:
        """Return the frames that found the port's queue full."""
        return self._queues.dropped(port)

    def _send(self, outputs: list[Output], again: list[Recirculated]) -> None:
        if outputs or again:
            leave = partial(self._leave, outputs, again)
            self._events.at(self._events.now + self._config.latency, leave)

    def _leave(self, outputs: list[Output], again: list[Recirculated]) -> None:
        for port, frame in outputs:
            if port in self._ports:
                self._capture(port, "out", frame)
                self._transmit(port, frame)
        for arrival in again:
            self._recirculation.send(arrival, len(arrival.packet))
