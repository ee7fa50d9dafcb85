"""TNA in the interpreter: up to four pipes, each with an ingress and an egress pipeline, and the
traffic manager between them.

The ingress parser reads the intrinsic metadata, the port's metadata or a resubmit header, then the
packet; the egress parser the intrinsic metadata, then what the ingress deparser emitted or a mirror
header and the mirrored packet. After ingress the traffic manager makes, in this order: the mirror
copy; then, unless the packet is resubmitted, the unicast copy, those of both multicast groups and
the copy to the CPU.

Times are in nanoseconds since the switch started. A pipe beyond the last of several pipelines runs
the pipeline of its number modulo theirs. Each pipe has registers of its own, and the tables and
externs that its scopes give it (runtime/pipe_scopes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gradplane.switch.arch.blocks import Blocks, Values
from gradplane.switch.arch.tna.chips import (
    FCS,
    INGRESS_HEADER,
    PIPE_BITS,
    RECIRCULATE,
    RESUBMIT,
    Chip,
    chip_of,
)
from gradplane.switch.arch.tna.ghost import Ghost, ghost_of, run_ghosts
from gradplane.switch.arch.tna.layouts import (
    EGRESS,
    GROUPS,
    INGRESS,
    PORT,
    is_set,
    layout,
    pipelines,
)
from gradplane.switch.arch.tna.parser_choices import parsers_of_ports
from gradplane.switch.arch.tna.parser_errors import flags_of, reads_errors
from gradplane.switch.arch.tna.pipe_scopes import pipeline_numbers
from gradplane.switch.arch.tna.true_accounting import Correct
from gradplane.switch.interp.packet import Layout as FieldLayout
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Rejected, TraceEvent
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header
from gradplane.switch.machine.model import Model, Pass, SwitchPacket
from gradplane.switch.runtime.control_messages import HEAD_BYTES, ReturnedPacket
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.port_queues import QueueTimes, Waiting
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import PipeState, State

TIME_MASK = (1 << 48) - 1
DROPPED, NO_DESTINATION = "drop_ctl is set", "ingress: no destination"
NOT_PARSED = "ingress parser: the packet does not parse"


class TnaPacket(SwitchPacket):
    """A packet with what its deparser asks of the traffic manager; None: nothing.

    mirror: session and header. resubmit: the header. counted: corrects the bytes that counters
    have counted, by their names (true_accounting.py)."""

    __slots__ = ("counted", "mirror", "resubmit")

    def __init__(self, data: bytes, size: int, events: list[Any] | None = None) -> None:
        """`size`: bytes without the chip's header, which `data` begins with."""
        super().__init__(data, events)
        self.length = size + FCS
        self.counted: dict[str, Correct] = {}
        self.mirror: tuple[int, bytes] | None = None
        self.resubmit: bytes | None = None


@dataclass(slots=True)
class _Departure:
    """A packet queued for egress. first: of its multicast group's replicas. deflect: it goes to
    another queue if its own is full; deflected: it has."""

    packet: bytes
    replica: Replica
    queue: int
    service: int
    first: bool
    passes: int
    bypass: bool = False
    deflect: bool = False
    deflected: bool = False


@dataclass(frozen=True, slots=True)
class _Pipe:
    ingress: Blocks
    egress: Blocks
    keeps_errors: bool
    ghost: Ghost | None
    ingress_parsers: list[str]  # by port
    egress_parsers: list[str]


class _FrontHeader:
    """Makes the bytes of a header that the chip puts in front of packets."""

    def __init__(self, t: Header) -> None:
        self._names = [f.name for f in t.fields]
        self._layout = FieldLayout([f.type for f in t.fields])

    def bytes(self, **fields: int) -> bytes:
        return self._layout.encode([fields.get(name, 0) for name in self._names])


class TnaModel(Model[list[_Pipe]]):
    """A loaded TNA program."""

    @property
    def chip(self) -> Chip:
        return chip_of(self.program)

    def compiled(self, kind: Callable[..., Statements]) -> list[_Pipe]:
        packages, state = pipelines(self.program), self.state
        if any("ghost" in package.args for package in packages):
            state.queue_changed = self._queue_changed
        numbers = pipeline_numbers(self.program)
        if not state.scopes.differ:
            made = [self._pipe(kind, package, state) for package in packages]
            return [made[number] for number in numbers]
        return [
            self._pipe(kind, packages[number], PipeState(state, pipe))
            for pipe, number in enumerate(numbers)
        ]

    def _pipe(self, kind: Callable[..., Statements], package: ir.Package, state: State) -> _Pipe:
        compiler = self.block_compiler(kind, state)
        ingress = Blocks(compiler, package, layout(package, INGRESS))
        egress = Blocks(compiler, package, layout(package, EGRESS))
        ghost = ghost_of(package, self.block_compiler(kind, state))
        parsers = (parsers_of_ports(package, names[0], self.chip) for names in (INGRESS, EGRESS))
        return _Pipe(ingress, egress, reads_errors(package), ghost, *parsers)

    def _queue_changed(self, port: int, priority: int, length: int) -> None:
        ghosts = [pipe.ghost for pipe in self._plain]
        run_ghosts(ghosts, self.state, self.chip.pipes, port, priority, length)

    def new_pass(self, pipeline: list[_Pipe], events: list[TraceEvent] | None) -> _Pass:
        return _Pass(self, pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return self.parsers[0]

    @property
    def parsers(self) -> Sequence[ir.Parser]:
        return [package.parser("ingress_parser") for package in pipelines(self.program)]

    def pipeline_of(self, port: int) -> int:
        return pipeline_numbers(self.program)[(port >> PIPE_BITS) % self.chip.pipes]

    def parsed(self, arrival: Arrival) -> list[Any]:
        work = _Pass(self, self._plain, None)
        blocks = work.pipe(arrival.port).ingress
        values = blocks.start()
        blocks.run("ingress_parser", work.arrived(arrival), values)
        package = pipelines(self.program)[self.pipeline_of(arrival.port)]
        names = layout(package, INGRESS).blocks["ingress_parser"]
        return [values[name] for name in names]


class _Pass(Pass[_Departure]):
    """One arrival's pass through ingress, the traffic manager and egress."""

    def __init__(
        self, model: TnaModel, pipes: list[_Pipe], events: list[TraceEvent] | None
    ) -> None:
        super().__init__(model, events)
        self.chip = model.chip
        self.errors = model.program.errors
        self.flags = flags_of(self.errors)
        self.pipes = pipes
        self.ingress_header = _FrontHeader(INGRESS_HEADER)
        self.egress_header = _FrontHeader(self.chip.egress_header)

    def pipe(self, port: int) -> _Pipe:
        """Return the pipeline of a port's pipe, which runs from now on."""
        number = self.state.current_pipe.number = (port >> PIPE_BITS) % self.chip.pipes
        return self.pipes[number]

    def now(self) -> int:
        return self.state.nanoseconds() & TIME_MASK

    def parse(self, blocks: Blocks, name: str, packet: TnaPacket, values: Values) -> int:
        """Run a parser; return its error as flags."""
        error: int = blocks.run(name, packet, values)
        if error:
            self.note(Rejected, self.errors[error])
        now, flags = self.now(), self.flags[error]
        blocks.put(values, "parser", global_tstamp=now, parser_err=flags)
        return flags

    def control(self, name: str, blocks: Blocks, packet: TnaPacket, values: Values) -> None:
        """Run ingress or egress; the probe follows a traced packet."""
        probe = self.state.probe if self.events is not None else None
        if probe is not None:
            pipe, given = self.state.current_pipe.number, blocks.arguments(name, values)
            probe.begin(name, pipe, given, partial(blocks.parameters, name))
        blocks.run(name, packet, values)
        if probe is not None:
            probe.end()

    # -- ingress --------------------------------------------------------------------------------

    def ingress(self, arrival: Arrival) -> None:
        pipe = self.pipe(arrival.port)
        packet, blocks = self.arrived(arrival), pipe.ingress
        values = blocks.start()
        self.enter("ingress parser")
        parser = pipe.ingress_parsers[arrival.port]
        if self.parse(blocks, parser, packet, values) and not pipe.keeps_errors:
            self.drop(NOT_PARSED)
            return
        self.enter("ingress")
        self.control("ingress", blocks, packet, values)
        self.enter("ingress deparser")
        blocks.run("ingress_deparser", packet, values)
        for digest in packet.digests:
            self.state.report(replace(digest, pipe=arrival.port >> PIPE_BITS))
        self.after_ingress(arrival, packet, blocks, values)

    def arrived(self, arrival: Arrival) -> TnaPacket:
        """Return the packet behind the ingress header and the metadata of its port."""
        again = arrival.kind == RESUBMIT
        header = self.ingress_header.bytes(
            resubmit_flag=int(again), ingress_port=arrival.port, ingress_mac_tstamp=self.now()
        )
        meta = arrival.meta if again else self.state.port_metadata[arrival.port].tobytes()
        meta = (meta or b"").ljust(self.chip.port_metadata, b"\0")
        return TnaPacket(header + meta + arrival.packet, len(arrival.packet), self.events)

    def after_ingress(
        self, arrival: Arrival, packet: TnaPacket, blocks: Blocks, values: Values
    ) -> None:
        control = blocks.get(values, "deparser", "drop_ctl")
        data = packet.output()
        if packet.mirror is not None and not control & 4:
            outgoing = blocks.get(values, "deparser", "mirror_io_select")
            self.mirror(packet.mirror, data if outgoing else arrival.packet, arrival.passes)
        if packet.resubmit is not None and not control & 1:
            self.note(Copied, "resubmitted")
            again = Arrival(
                arrival.port, arrival.packet, RESUBMIT, packet.resubmit, arrival.passes + 1
            )
            self.result.again.append(again)
            return
        self.replicate(control, data, blocks, values, arrival.passes)

    def replicate(
        self, control: int, data: bytes, blocks: Blocks, values: Values, passes: int
    ) -> None:
        """Make the copies that the traffic manager is asked for."""
        copies = 0
        for replica, first in self.copies(control, blocks, values):
            copies += 1
            departure = _Departure(
                data,
                replica,
                blocks.get(values, "tm", "qid"),
                blocks.get(values, "tm", "ingress_cos"),
                first,
                passes,
                bool(blocks.get(values, "tm", "bypass_egress")),
                bool(blocks.get(values, "tm", "deflect_on_drop")),
            )
            if departure.bypass:
                self.leave(replica.port, data, passes)
            else:
                self.depart(replica.port, departure.queue, departure)
        if control & 1:
            self.drop(f"ingress: {DROPPED}")
        elif not copies and not self.groups_asked(blocks, values):
            self.drop(NO_DESTINATION)

    def deflect(self, port: int, now: int, departure: _Departure) -> Waiting | None:
        queues = self.state.links.queues
        if not departure.deflect or port not in queues.deflections:
            return None
        to, queue = queues.deflections[port]
        self.note(Copied, f"deflected to queue {queue} of port {to}")
        moved = replace(
            departure, replica=replace(departure.replica, port=to), queue=queue, deflect=False,
            deflected=True,
        )  # fmt: skip
        return queues.put(to, queue, now, self.model, moved, self.events, deflected=True)

    def groups_asked(self, blocks: Blocks, values: Values) -> list[int]:
        """Return the multicast groups that a packet goes to. 0, which programs also write for no
        group, is one if it has members."""
        asked = []
        for name in GROUPS:
            group = blocks.get(values, "tm", name)
            zero = blocks.get(values, "tm", is_set(name)) and self.state.multicast.get(0)
            if group or zero:
                asked.append(group)
        return asked

    def copies(
        self, control: int, blocks: Blocks, values: Values
    ) -> Iterator[tuple[Replica, bool]]:
        """Yield the replicas, and whether one is the first of its group."""
        if not control & 1:
            if blocks.get(values, "tm", is_set(PORT)):
                rid = blocks.get(values, "tm", "rid")
                yield Replica(blocks.get(values, "tm", PORT), rid), False
            for group in self.groups_asked(blocks, values):
                for i, replica in enumerate(self.members(group)):
                    if not self.pruned(replica, blocks, values):
                        yield replica, i == 0
        if blocks.get(values, "tm", "copy_to_cpu") and not control & 2:
            yield Replica(self.cpu_port()), False

    def pruned(self, replica: Replica, blocks: Blocks, values: Values) -> bool:
        """Return whether exclusion keeps a replica from leaving.

        A node's level 1 id is compared with the packet's. The packet's level 2 id stands for ports,
        which are left out in nodes with the packet's replication id.
        """
        if replica.exclusion == blocks.get(values, "tm", "level1_exclusion_id"):
            return True
        rid = blocks.get(values, "tm", "rid")
        if rid not in (replica.instance, self.state.global_rid):
            return False
        ports = self.state.pruned[blocks.get(values, "tm", "level2_exclusion_id")]
        return bool(ports[replica.port])

    def cpu_port(self) -> int:
        port = self.state.cpu_port
        return self.chip.cpu_port if port is None else port

    def mirror(self, call: tuple[int, bytes], data: bytes, passes: int) -> None:
        number, header = call
        session = self.session(number, passes)
        if session is None:
            return
        data = header + data
        data = data[: session.truncate] if session.truncate else data
        for replica in session.replicas:
            service = session.class_of_service
            departure = _Departure(data, replica, service, service, False, passes + 1)
            self.depart(replica.port, service, departure)

    # -- egress ---------------------------------------------------------------------------------

    def egress(self, departure: _Departure) -> None:
        port, size = departure.replica.port, len(departure.packet)
        pipe = self.pipe(port)
        blocks = pipe.egress
        packet = TnaPacket(self.front(departure) + departure.packet, size, self.events)
        values = blocks.start()
        self.enter(f"egress parser, port {port}")
        self.parse(blocks, pipe.egress_parsers[port], packet, values)
        self.enter("egress")
        self.control("egress", blocks, packet, values)
        self.enter("egress deparser")
        blocks.run("egress_deparser", packet, values)
        control, data = blocks.get(values, "deparser", "drop_ctl"), packet.output()
        for correct in packet.counted.values():
            correct(len(data) - size)
        if packet.mirror is not None and not control & 4:
            self.mirror(packet.mirror, data, departure.passes)
        if control & 1:
            self.drop(f"egress: {DROPPED}")
        else:
            self.leave(port, data, departure.passes)

    def front(self, departure: _Departure) -> bytes:
        """Return the header before the packet in egress."""
        replica, times = departure.replica, self.waited
        if times is None:  # it did not wait here, others may at the port's interface
            queued = int(self.state.links.queued[replica.port % QUEUES])
            times = QueueTimes(self.state.microseconds(), queued, 0, queued)
        return self.egress_header.bytes(
            egress_port=replica.port,
            enq_qdepth=times.enq_qdepth,
            enq_tstamp=1000 * times.enq_timestamp,
            deq_qdepth=times.deq_qdepth,
            deq_timedelta=1000 * times.deq_timedelta,
            egress_rid=replica.instance,
            egress_rid_first=int(departure.first),
            egress_qid=departure.queue,
            egress_cos=departure.service,
            deflection_flag=int(departure.deflected),
            pkt_length=len(departure.packet) + FCS,
        )

    def leave(self, port: int, data: bytes, passes: int) -> None:
        """Send a packet, or take it in again where the port is one for that."""
        if self.chip.recirculates(port) or self.state.links.loopback[port % QUEUES]:
            self.note(Copied, f"recirculated by port {port}")
            if self.state.links.recirculation[0]:
                head = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
                self.state.report(ReturnedPacket(port, head))
            self.result.again.append(Arrival(port, data, RECIRCULATE, None, passes + 1))
        else:
            self.send(port, data)
