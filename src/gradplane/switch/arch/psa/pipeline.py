"""The Portable Switch Architecture in the interpreter: two pipelines and, between them, packet
replication.

After the ingress deparser: clone, then drop or resubmit or multicast or unicast. After the egress
deparser: clone, then drop or recirculate or send. (PSA specification 1.2, section 6.) Both
deparsers run for each packet, dropped ones too: they fill in the metadata of clones.

Values that the specification leaves undefined are zero. Times are in microseconds. Every port
number is a port; packets sent to PSA_PORT_CPU go to the control plane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradplane.switch.arch.blocks import Blocks, Values
from gradplane.switch.arch.psa import PORT_RECIRCULATE
from gradplane.switch.arch.psa.packet import (
    BROUGHT,
    EGRESS,
    INGRESS,
    TIME_MASK,
    PacketPath,
    pipelines,
)
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Rejected, TraceEvent
from gradplane.switch.ir import nodes as ir
from gradplane.switch.machine.model import Model, Pass, SwitchPacket
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.replicas import Replica


@dataclass(slots=True)
class _Departure:
    """A packet queued for egress; `meta`: the metadata from the previous pass."""

    packet: bytes
    path: PacketPath
    replica: Replica
    class_of_service: int
    meta: Any
    passes: int


@dataclass(frozen=True, slots=True)
class _Pipelines:
    ingress: Blocks
    egress: Blocks


class PsaModel(Model[_Pipelines]):
    """A loaded PSA program."""

    def compiled(self, kind: Callable[..., Statements]) -> _Pipelines:
        compiler = self.block_compiler(kind)
        ingress, egress = pipelines(self.program)
        return _Pipelines(Blocks(compiler, ingress, INGRESS), Blocks(compiler, egress, EGRESS))

    def new_pass(self, pipeline: _Pipelines, events: list[TraceEvent] | None) -> _Pass:
        return _Pass(self, pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return pipelines(self.program)[0].parser("ip")

    def parsed(self, arrival: Arrival) -> list[Any]:
        values = _Pass(self, self._plain, None).arrived(arrival)
        self._plain.ingress.run("ip", SwitchPacket(arrival.packet), values)
        return [values[name] for name in INGRESS.blocks["ip"]]


class _Pass(Pass[_Departure]):
    """One arrival's pass through both pipelines."""

    def __init__(
        self, model: PsaModel, pipelines: _Pipelines, events: list[TraceEvent] | None
    ) -> None:
        super().__init__(model, events)
        self.errors = model.program.errors
        self.pipelines = pipelines

    def now(self) -> int:
        return self.state.microseconds() & TIME_MASK

    def parse(self, blocks: Blocks, name: str, packet: SwitchPacket, values: Values) -> int:
        error: int = blocks.run(name, packet, values)
        if error:
            self.note(Rejected, self.errors[error])
        return error

    # -- ingress --------------------------------------------------------------------------------

    def ingress(self, arrival: Arrival) -> None:
        packet, blocks = SwitchPacket(arrival.packet, self.events), self.pipelines.ingress
        values = self.arrived(arrival)
        came = {"ingress_port": arrival.port, "packet_path": arrival.kind}
        now = self.now()
        self.enter("ingress parser")
        error = self.parse(blocks, "ip", packet, values)
        blocks.put(values, "istd", ingress_timestamp=now, parser_error=error, **came)
        blocks.put(values, "ostd", drop=True)
        self.enter("ingress")
        blocks.run("ig", packet, values)
        self.enter("ingress deparser")
        blocks.run("id", packet, values)
        for digest in packet.digests:
            self.state.report(digest)
        self.after_ingress(arrival, packet, values)

    def arrived(self, arrival: Arrival) -> Values:
        """Return the values that parsing starts from."""
        blocks = self.pipelines.ingress
        values = blocks.start()
        if arrival.meta is not None:
            values[BROUGHT[PacketPath(arrival.kind)]] = arrival.meta
        came = {"ingress_port": arrival.port, "packet_path": arrival.kind}
        blocks.put(values, "parser istd", **came)
        return values

    def after_ingress(self, arrival: Arrival, packet: SwitchPacket, values: Values) -> None:
        output = partial(self.pipelines.ingress.get, values, "ostd")
        if output("clone"):
            session = output("clone_session_id")
            meta = values["to clone_i2e"]
            self.clone(PacketPath.CLONE_I2E, session, arrival.packet, meta, arrival.passes)
        if output("drop"):
            self.drop("ingress: drop is set")
        elif output("resubmit"):
            self.note(Copied, "resubmitted")
            self.pass_again(
                PacketPath.RESUBMIT, arrival.port, arrival.packet, values, arrival.passes
            )
        else:
            self.leave_ingress(packet.output(), values, arrival.passes)

    def leave_ingress(self, data: bytes, values: Values, passes: int) -> None:
        output = partial(self.pipelines.ingress.get, values, "ostd")
        group = output("multicast_group")
        path = PacketPath.NORMAL_MULTICAST if group else PacketPath.NORMAL_UNICAST
        port = output("egress_port")
        replicas = self.members(group) if group else [Replica(port)]
        service, meta = output("class_of_service"), values["to normal"]
        for replica in replicas:
            departure = _Departure(data, path, replica, service, meta, passes)
            self.depart(replica.port, service, departure)

    # -- replicas -------------------------------------------------------------------------------

    def clone(self, path: PacketPath, number: int, data: bytes, meta: Any, passes: int) -> None:
        session = self.session(number, passes)
        if session is None:
            return
        data = data[: session.truncate] if session.truncate else data
        for replica in session.replicas:
            service = session.class_of_service
            departure = _Departure(data, path, replica, service, meta, passes + 1)
            self.depart(replica.port, service, departure)

    def pass_again(
        self, path: PacketPath, port: int, data: bytes, values: Values, passes: int
    ) -> None:
        meta = values[f"to {BROUGHT[path]}"]
        self.result.again.append(Arrival(port, data, path, meta, passes + 1))

    # -- egress ---------------------------------------------------------------------------------

    def egress(self, departure: _Departure) -> None:
        packet, blocks = SwitchPacket(departure.packet, self.events), self.pipelines.egress
        values = blocks.start()
        values[BROUGHT[departure.path]] = departure.meta
        port = departure.replica.port
        came = {"egress_port": port, "packet_path": departure.path}
        blocks.put(values, "parser istd", **came)
        now = self.now()
        self.enter(f"egress parser, port {port}")
        error = self.parse(blocks, "ep", packet, values)
        blocks.put(
            values,
            "istd",
            class_of_service=departure.class_of_service,
            instance=departure.replica.instance,
            egress_timestamp=now,
            parser_error=error,
            **came,
        )
        self.enter("egress")
        blocks.run("eg", packet, values)
        blocks.put(values, "deparser istd", egress_port=port)
        self.enter("egress deparser")
        blocks.run("ed", packet, values)
        self.after_egress(departure, packet.output(), values)

    def after_egress(self, departure: _Departure, data: bytes, values: Values) -> None:
        port = departure.replica.port
        output = partial(self.pipelines.egress.get, values, "ostd")
        if output("clone"):
            session = output("clone_session_id")
            meta = values["to clone_e2e"]
            self.clone(PacketPath.CLONE_E2E, session, data, meta, departure.passes)
        if output("drop"):
            self.drop("egress: drop is set")
        elif port == PORT_RECIRCULATE:
            self.note(Copied, "recirculated")
            self.pass_again(PacketPath.RECIRCULATE, port, data, values, departure.passes)
        else:
            self.send(port, data)
