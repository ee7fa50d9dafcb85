"""v1model as simple_switch runs it: its blocks and, between them, the traffic manager.

parser, verify checksum, ingress; then clone, digests, resubmit or multicast or drop or unicast;
egress; then clone, drop, compute checksum and deparser, recirculate or send. (behavioral-model,
docs/simple_switch.md and targets/simple_switch/simple_switch.cpp.) A copy's metadata starts from
zero but for what simple_switch sets, and the fields of the preserved list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.externs import ExternCompiler
from gradplane.switch.arch.fieldlists import NAMED, NO_LIST, FieldLists
from gradplane.switch.arch.metadata_fields import Metadata
from gradplane.switch.arch.model import (
    Arrival,
    Model,
    Pass,
    control_of,
    error_codes,
    parser_of,
)
from gradplane.switch.arch.v1check import BLOCKS, check
from gradplane.switch.arch.v1externs import COMPILER
from gradplane.switch.arch.v1packet import InstanceType, V1Packet
from gradplane.switch.arch.v1prepare import COPYING, prepare
from gradplane.switch.interp.blocks import Block, control_block, parser_block
from gradplane.switch.interp.frame_layout import Env, Frame
from gradplane.switch.interp.interpreter_values import copier, maker
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Event, Rejected
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import State
from gradplane.switch.source import Diagnostic

Values = list[Any]  # headers, user metadata, standard metadata
"""The packet's values as the blocks' parameters have them."""


@dataclass(slots=True)
class _Departure:
    """A packet queued for egress."""

    packet: V1Packet
    values: Values
    replica: Replica
    passes: int


class V1Model(Model["_Pipeline"]):
    """A loaded v1model program."""

    externs = COMPILER

    @staticmethod
    def load(program: ir.Program) -> list[Diagnostic]:
        prepare(program)
        return check(program)

    def compiled(self, kind: Callable[..., Statements]) -> _Pipeline:
        return _Pipeline(self.program, self.state, kind, self.compiler)

    def new_pass(self, pipeline: _Pipeline, events: list[Event] | None) -> _Pass:
        return _Pass(pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return parser_of(self.program.package, "p")

    def parsed(self, arrival: Arrival) -> list[Any]:
        return _Pass(self._plain, None).parse(V1Packet(arrival.packet), arrival)


class _Pipeline:
    """The compiled blocks and the types of what passes between them."""

    def __init__(
        self,
        program: ir.Program,
        state: State,
        kind: Callable[..., Statements],
        externs: ExternCompiler,
    ) -> None:
        self.state = state
        self.errors = program.errors
        compiler = kind(Frame(), state, error_codes(program), externs)
        parser = parser_of(program.package, "p")
        self.parser = parser_block(parser, compiler)
        self.vr, self.ig, self.eg, self.ck, self.dep = (
            control_block(control_of(program.package, name), compiler) for name in BLOCKS[1:]
        )
        headers, meta, standard = (p.var.type for p in parser.params)
        self.makers = [maker(headers), maker(meta), maker(standard)]
        self.copiers = [copier(headers), copier(meta), copier(standard)]
        self.standard = Metadata(standard)
        self.lists = FieldLists(meta, [control_of(program.package, name) for name in COPYING])
        self.env: Env = compiler.frame.new()

    def start(self) -> Values:
        return [make() for make in self.makers]

    def copy(self, values: Values) -> Values:
        return [copy(value) for copy, value in zip(self.copiers, values, strict=True)]

    def call(self, block: Block, packet: V1Packet, values: Values) -> Any:
        """Runs a block on the first of the values, as many as it has parameters."""
        env = self.env
        env[0] = packet
        for slot, value in zip(block.slots, values, strict=False):
            env[slot] = value
        result = block.run(env)
        for i, slot in enumerate(block.slots):
            values[i] = env[slot]
        return result


class _Pass(Pass[_Departure]):
    """One arrival's way through a pipeline."""

    def __init__(self, pipeline: _Pipeline, events: list[Event] | None) -> None:
        super().__init__(pipeline.state, events)
        self.pipeline = pipeline
        self.standard = pipeline.standard

    # -- ingress --------------------------------------------------------------------------------

    def ingress(self, arrival: Arrival) -> None:
        pipeline, state = self.pipeline, self.state
        packet = V1Packet(arrival.packet, self.events)
        values = self.parse(packet, arrival)
        pipeline.call(pipeline.vr, packet, values)
        self.standard.put(values[2], checksum_error=int(packet.checksum_error))
        self.enter("ingress")
        pipeline.call(pipeline.ig, packet, values)
        if packet.clone is not None:
            self.clone_ingress(arrival, packet, values)
        for digest in packet.digests:
            state.tell(digest)
        self.after_ingress(arrival, packet, values)

    def parse(self, packet: V1Packet, arrival: Arrival) -> Values:
        values = self.arrived(arrival)
        self.enter("parser")
        error = self.pipeline.call(self.pipeline.parser, packet, values)
        self.standard.put(values[2], parser_error=error)
        if error:
            self.note(Rejected, self.pipeline.errors[error])
        return values

    def arrived(self, arrival: Arrival) -> Values:
        """The values that parsing starts from."""
        values = self.pipeline.start()
        if arrival.meta is not None:
            values[1:] = arrival.meta
        fields = values[2]
        self.standard.put(fields, instance_type=arrival.kind, packet_length=len(arrival.packet))
        if arrival.kind == InstanceType.NORMAL:
            now = self.state.microseconds() & 0xFFFF_FFFF_FFFF
            self.standard.put(fields, ingress_port=arrival.port, ingress_global_timestamp=now)
        return values

    def after_ingress(self, arrival: Arrival, packet: V1Packet, values: Values) -> None:
        group = self.standard.get(values[2], "mcast_grp")
        port = self.standard.get(values[2], "egress_spec")
        if packet.resubmit is not None:
            self.note(Copied, "resubmitted" + _kept(packet.resubmit))
            self.come_again(
                InstanceType.RESUBMITTED, arrival.packet, packet.resubmit, values, arrival.passes
            )
        elif group:
            self.multicast(group, packet, values, arrival.passes)
        elif port == self.state.drop_port:
            self.drop(f"ingress: egress_spec is {port}")
        else:
            self.standard.put(values[2], instance_type=InstanceType.NORMAL)
            rid = self.standard.get(values[2], "egress_rid")
            self.queue.append(_Departure(packet, values, Replica(port, rid), arrival.passes))

    def multicast(self, group: int, packet: V1Packet, values: Values, passes: int) -> None:
        replicas = self.members(group)
        self.standard.put(values[2], instance_type=InstanceType.REPLICATED)
        self.replicate(replicas, packet, values, passes)

    def replicate(
        self, replicas: Iterable[Replica], packet: V1Packet, values: Values, passes: int
    ) -> None:
        """Queues a copy for each; the originals are not used further."""
        for replica in replicas:
            copy = self.pipeline.copy(values)
            self.queue.append(_Departure(packet.copy(), copy, replica, passes))

    # -- copies ---------------------------------------------------------------------------------

    def clone_ingress(self, arrival: Arrival, packet: V1Packet, values: Values) -> None:
        """To egress as it arrived: the packet is parsed anew."""
        assert packet.clone is not None
        session, field_list = packet.clone
        clone = V1Packet(arrival.packet, self.events)
        fresh = self.pipeline.start()
        self.standard.put(fresh[2], ingress_port=arrival.port)
        if session in self.state.clone_sessions:
            self.enter(f"parser, for the clone to session {session}")
            self.pipeline.call(self.pipeline.parser, clone, fresh)
        kind = InstanceType.INGRESS_CLONE
        self.clone(kind, packet.clone, clone, [fresh[0], *values[1:]], arrival.passes)

    def clone_egress(self, departure: _Departure, values: Values) -> None:
        """To egress again as it is now, headers included."""
        packet = departure.packet
        assert packet.clone is not None
        kind = InstanceType.EGRESS_CLONE
        self.clone(kind, packet.clone, packet.copy(), values, departure.passes)

    def clone(
        self,
        kind: InstanceType,
        call: tuple[int, int],
        packet: V1Packet,
        values: Values,
        passes: int,
    ) -> None:
        session_id, field_list = call
        session = self.session(session_id, passes)
        if session is None:
            return
        packet.truncate = session.truncate or None
        values = [values[0], *self.preserved(field_list, values)]
        self.standard.put(values[2], instance_type=kind)
        self.replicate(session.replicas, packet, values, passes + 1)

    def come_again(
        self, kind: InstanceType, data: bytes, field_list: int, values: Values, passes: int
    ) -> None:
        meta = self.preserved(field_list, values)
        self.result.again.append(Arrival(0, data, kind, meta, passes + 1))

    def preserved(self, field_list: int, values: Values) -> Values:
        """New metadata and standard metadata with only a list's fields kept."""
        fresh = self.pipeline.start()[1:]
        self.pipeline.lists.copy(field_list, values[1:], fresh)
        return fresh

    # -- egress ---------------------------------------------------------------------------------

    def egress(self, departure: _Departure) -> None:
        pipeline, packet, values = self.pipeline, departure.packet, departure.values
        self.enter(f"egress, port {departure.replica.port}")
        self.departing(departure)
        packet.clone = None
        pipeline.call(pipeline.eg, packet, values)
        if packet.clone is not None:
            self.clone_egress(departure, values)
        spec = self.standard.get(values[2], "egress_spec")
        if spec == self.state.drop_port:
            self.drop(f"egress: egress_spec is {spec}")
            return
        data = self.deparsed(packet, values)
        if packet.recirculate is not None:
            self.note(Copied, "recirculated" + _kept(packet.recirculate))
            self.come_again(
                InstanceType.RECIRCULATED, data, packet.recirculate, values, departure.passes
            )
            return
        self.send(departure.replica.port, data)

    def departing(self, departure: _Departure) -> None:
        """Sets the standard metadata that egress finds."""
        packet, now = departure.packet, self.state.microseconds()
        self.standard.put(
            departure.values[2],
            egress_port=departure.replica.port,
            egress_rid=departure.replica.instance,
            egress_spec=0,
            packet_length=(packet.length + packet.grown // 8) & 0xFFFF_FFFF,
            egress_global_timestamp=now & 0xFFFF_FFFF_FFFF,
            enq_timestamp=now & 0xFFFF_FFFF,
            enq_qdepth=0,
            deq_timedelta=0,
            deq_qdepth=0,
        )

    def deparsed(self, packet: V1Packet, values: Values) -> bytes:
        pipeline = self.pipeline
        pipeline.call(pipeline.ck, packet, values)
        pipeline.call(pipeline.dep, packet, values)
        data = packet.output()
        return data if packet.truncate is None else data[: packet.truncate]


def _kept(field_list: int) -> str:
    if field_list == NO_LIST:
        return ""
    return ", preserving " + (f"field list {field_list}" if field_list < NAMED else "fields")
