"""v1model in the interpreter, as simple_switch runs it: its blocks and, between them, the traffic
manager.

parser, verify checksum, ingress; then clone, digests, resubmit or multicast or drop or unicast;
egress; then clone, drop, compute checksum and deparser, recirculate or send. (behavioral-model,
docs/simple_switch.md and targets/simple_switch/simple_switch.cpp.) A replica's metadata starts from
zero but for what simple_switch sets, and the fields of the preserved list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradplane.switch.arch.blocks import Blocks, Values
from gradplane.switch.arch.model import Model, Pass
from gradplane.switch.arch.v1model.field_lists import NAMED, NO_LIST, FieldLists
from gradplane.switch.arch.v1model.packet import COPYING, PIPELINE, InstanceType, V1Packet
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Rejected, TraceEvent
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.port_queues import QueueTimes
from gradplane.switch.runtime.replicas import Replica

_METADATA = ("meta", "standard")  # the values of which replicas keep fields


@dataclass(slots=True)
class _Departure:
    """A packet queued for egress."""

    packet: V1Packet
    values: Values
    replica: Replica
    passes: int


class V1Model(Model[Blocks]):
    """A loaded v1model program."""

    def compiled(self, kind: Callable[..., Statements]) -> Blocks:
        return Blocks(self.block_compiler(kind), self.program.package, PIPELINE)

    @cached_property
    def lists(self) -> FieldLists:
        """The lists of metadata fields that replicas keep."""
        package = self.program.package
        meta = package.parser("p").params[1].var.type
        return FieldLists(meta, [package.control(name) for name in COPYING])

    def new_pass(self, pipeline: Blocks, events: list[TraceEvent] | None) -> _Pass:
        return _Pass(self, pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return self.program.package.parser("p")

    def parsed(self, arrival: Arrival) -> list[Any]:
        values = _Pass(self, self._plain, None).parse(V1Packet(arrival.packet), arrival)
        return [values[name] for name in PIPELINE.blocks["p"]]


class _Pass(Pass[_Departure]):
    """One arrival's pass through the pipeline."""

    def __init__(self, model: V1Model, blocks: Blocks, events: list[TraceEvent] | None) -> None:
        super().__init__(model, events)
        self.errors = model.program.errors
        self.lists = model.lists
        self.blocks = blocks

    def put(self, values: Values, **fields: int) -> None:
        """Set fields of the standard metadata."""
        self.blocks.put(values, "standard", **fields)

    def get(self, values: Values, field: str) -> int:
        """Return a field of the standard metadata."""
        return self.blocks.get(values, "standard", field)

    # -- ingress --------------------------------------------------------------------------------

    def ingress(self, arrival: Arrival) -> None:
        blocks, state = self.blocks, self.state
        packet = V1Packet(arrival.packet, self.events)
        values = self.parse(packet, arrival)
        blocks.run("vr", packet, values)
        self.put(values, checksum_error=int(packet.checksum_error))
        self.enter("ingress")
        blocks.run("ig", packet, values)
        if packet.clone is not None:
            self.clone_ingress(arrival, packet, values)
        for digest in packet.digests:
            state.report(digest)
        self.after_ingress(arrival, packet, values)

    def parse(self, packet: V1Packet, arrival: Arrival) -> Values:
        values = self.arrived(arrival)
        self.enter("parser")
        error = self.blocks.run("p", packet, values)
        self.put(values, parser_error=error or self.errors.index("NoError"))
        if error:
            self.note(Rejected, self.errors[error])
        return values

    def arrived(self, arrival: Arrival) -> Values:
        """Return the values that parsing starts from."""
        values = self.blocks.start()
        if arrival.meta is not None:
            values |= arrival.meta
        self.put(values, instance_type=arrival.kind, packet_length=len(arrival.packet))
        if arrival.kind == InstanceType.NORMAL:
            now = self.state.microseconds() & 0xFFFF_FFFF_FFFF
            self.put(values, ingress_port=arrival.port, ingress_global_timestamp=now)
        return values

    def after_ingress(self, arrival: Arrival, packet: V1Packet, values: Values) -> None:
        group = self.get(values, "mcast_grp")
        port = self.get(values, "egress_spec")
        if packet.resubmit is not None:
            self.note(Copied, "resubmitted" + _kept(packet.resubmit))
            self.pass_again(
                InstanceType.RESUBMITTED, arrival.packet, packet.resubmit, values, arrival.passes
            )
        elif group:
            self.multicast(group, packet, values, arrival.passes)
        elif port == self.state.drop_port:
            self.drop(f"ingress: egress_spec is {port}")
        else:
            self.put(values, instance_type=InstanceType.NORMAL)
            rid = self.get(values, "egress_rid")
            self.leave_ingress(_Departure(packet, values, Replica(port, rid), arrival.passes))

    def leave_ingress(self, departure: _Departure) -> None:
        priority = self.get(departure.values, "priority")
        self.depart(departure.replica.port, priority, departure)

    def multicast(self, group: int, packet: V1Packet, values: Values, passes: int) -> None:
        replicas = self.members(group)
        packet.truncate = None  # as in simple_switch: replicas are whole
        self.put(values, instance_type=InstanceType.REPLICATED)
        self.replicate(replicas, packet, values, passes)

    def replicate(
        self, replicas: Iterable[Replica], packet: V1Packet, values: Values, passes: int
    ) -> None:
        """Queue a copy for each replica; the originals are not used further."""
        for replica in replicas:
            copy = self.blocks.copy(values)
            self.leave_ingress(_Departure(packet.copy(), copy, replica, passes))

    # -- replicas -------------------------------------------------------------------------------

    def clone_ingress(self, arrival: Arrival, packet: V1Packet, values: Values) -> None:
        """Clone the packet to egress as it arrived: it is parsed anew."""
        assert packet.clone is not None
        session, field_list = packet.clone
        clone = V1Packet(arrival.packet, self.events)
        fresh = self.blocks.start()
        self.put(fresh, ingress_port=arrival.port)
        if session in self.state.clone_sessions:
            self.enter(f"parser, for the clone to session {session}")
            self.blocks.run("p", clone, fresh)
        kind = InstanceType.INGRESS_CLONE
        self.clone(kind, packet.clone, clone, values | {"hdr": fresh["hdr"]}, arrival.passes)

    def clone_egress(self, departure: _Departure, values: Values) -> None:
        """Clone the packet to egress as it is now, headers included."""
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
        values = values | self.preserved(field_list, values)
        self.put(values, instance_type=kind)
        self.replicate(session.replicas, packet, values, passes + 1)

    def pass_again(
        self, kind: InstanceType, data: bytes, field_list: int, values: Values, passes: int
    ) -> None:
        meta = self.preserved(field_list, values)
        self.result.again.append(Arrival(0, data, kind, meta, passes + 1))

    def preserved(self, field_list: int, values: Values) -> Values:
        """Return new metadata and standard metadata with only a list's fields kept."""
        fresh = [*self.blocks.start(_METADATA).values()]
        self.lists.copy(field_list, [values[name] for name in _METADATA], fresh)
        return dict(zip(_METADATA, fresh, strict=True))

    # -- egress ---------------------------------------------------------------------------------

    def egress(self, departure: _Departure) -> None:
        packet, values = departure.packet, departure.values
        self.enter(f"egress, port {departure.replica.port}")
        self.departing(departure)
        packet.clone = None
        self.blocks.run("eg", packet, values)
        if packet.clone is not None:
            self.clone_egress(departure, values)
        spec = self.get(values, "egress_spec")
        if spec == self.state.drop_port:
            self.drop(f"egress: egress_spec is {spec}")
            return
        self.blocks.run("ck", packet, values)
        self.blocks.run("dep", packet, values)
        data = packet.output()
        if packet.recirculate is not None:
            self.note(Copied, "recirculated" + _kept(packet.recirculate))
            self.pass_again(
                InstanceType.RECIRCULATED, data, packet.recirculate, values, departure.passes
            )
            return
        # As in simple_switch, truncation is for what leaves; a recirculated packet is whole.
        self.send(departure.replica.port, data[: packet.truncate])

    def departing(self, departure: _Departure) -> None:
        """Set the standard metadata that egress finds."""
        packet, now = departure.packet, self.state.microseconds()
        times = self.waited
        if times is None:  # it did not wait here, others may at the port's interface
            queued = int(self.state.links.queued[departure.replica.port % QUEUES])
            times = QueueTimes(now & 0xFFFF_FFFF, queued, 0, queued)
        self.put(
            departure.values,
            egress_port=departure.replica.port,
            egress_rid=departure.replica.instance,
            egress_spec=0,
            packet_length=(packet.length + packet.grown // 8) & 0xFFFF_FFFF,
            egress_global_timestamp=now & 0xFFFF_FFFF_FFFF,
            enq_timestamp=times.enq_timestamp,
            enq_qdepth=times.enq_qdepth,
            deq_timedelta=times.deq_timedelta,
            deq_qdepth=times.deq_qdepth,
        )


def _kept(field_list: int) -> str:
    if field_list == NO_LIST:
        return ""
    return ", preserving " + (f"field list {field_list}" if field_list < NAMED else "fields")
