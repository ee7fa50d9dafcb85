"""The device's tables, which do not depend on the program but for its chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime import fixed_schema, traffic_schema
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.schema import Schema, TableSchema
from gradplane.switch.bfruntime.snapshots import Snapshots
from gradplane.switch.bfruntime.table_notation import parse_tables
from gradplane.switch.bfruntime.tables.control_table import ControlTable
from gradplane.switch.bfruntime.tables.debug_counters import ContainerTable, StageCounterTable
from gradplane.switch.bfruntime.tables.device_configuration import DeviceTable
from gradplane.switch.bfruntime.tables.packet_generation import (
    ApplicationTable,
    GeneratorPortTable,
    PacketBufferTable,
    PortMaskTable,
    ReplayTable,
)
from gradplane.switch.bfruntime.tables.port_groups import PortGroupTable
from gradplane.switch.bfruntime.tables.ports import (
    Interfaces,
    PortPlaceTable,
    Ports,
    PortStatisticsTable,
    PortTable,
)
from gradplane.switch.bfruntime.tables.priority_groups import (
    PriorityGroupCounts,
    PriorityGroups,
    PriorityGroupTable,
)
from gradplane.switch.bfruntime.tables.replication import MirrorTable, replication_table
from gradplane.switch.bfruntime.tables.traffic_manager import (
    CountsTable,
    LimitsTable,
    PlacesTable,
    TrafficManager,
)
from gradplane.switch.bfruntime.tables.traffic_settings import KeptTable
from gradplane.switch.bfruntime.tables.warm_init import Restart, WarmInitTable
from gradplane.switch.p4runtime.pipeline import Pipeline

_ACTING: dict[str, Callable[[TableSchema, TrafficManager], ControlTable]] = {
    "TmPortCfg": PlacesTable, "TmQueueMap": PlacesTable,
    "TmCounterEgPort": CountsTable, "TmCounterQueue": CountsTable,
    "TmPortSchedCfg": LimitsTable, "TmPortSchedShaping": LimitsTable,
    "TmQueueCfg": LimitsTable, "TmQueueColor": LimitsTable, "TmQueueBuffer": LimitsTable,
    "TmQueueSchedCfg": LimitsTable, "TmQueueSchedShaping": LimitsTable,
}  # fmt: skip
"""The traffic manager's tables of the switch's own queues, by kind."""


class FixedTables:
    """The tables by id, and their schema. generator: of packets, None if the chip has none.
    interfaces: those of the ports, None if unknown. restart: starts the program anew.
    snapshots: with the debug counters of the program's tables."""

    def __init__(
        self,
        facts: DeviceFacts | None,
        pipeline: Pipeline,
        interfaces: object = None,
        restart: Restart | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._facts = facts
        self._restart = restart
        self._state = pipeline.state
        self._replication = pipeline.store.replication
        architecture = pipeline.switch.architecture
        self._ports_there = facts.ports if facts is not None else architecture.ports
        self._place = Ports(
            self._state.links, self._ports_there, cast("Interfaces | None", interfaces)
        )
        self.generator: PacketGenerator | None = None
        self.tables = {table.schema.id: table for table in self._made()}
        self.ports = next(t for t in self.tables.values() if isinstance(t, PortTable))
        self.schema = Schema(tuple(table.schema for table in self.tables.values()))

    def _made(self) -> Iterator[ControlTable]:
        second = self._facts is not None and self._facts.family != "tf1"
        replication = fixed_schema.PRE_TF2 if second else fixed_schema.PRE_TF1
        for schema in parse_tables(replication):
            yield replication_table(schema, self._replication)
        mirror = fixed_schema.MIRROR_TF2 if second else fixed_schema.MIRROR_TF1
        (schema,) = parse_tables(mirror)
        yield MirrorTable(schema, self._replication)
        yield from self._port_tables(second)
        if self._facts is not None:
            text = fixed_schema.DEVICE_TF2 if second else fixed_schema.DEVICE_TF1
            device, warm = parse_tables(text)
            yield DeviceTable(device, self._facts)
            if self._restart is not None:
                yield WarmInitTable(warm, self._restart)
            text = fixed_schema.GENERATOR_TF2 if second else fixed_schema.GENERATOR_TF1
            ports, applications, buffers, *others = parse_tables(text)
            links = self._state.links
            self.generator = PacketGenerator(self._facts.pipe_bits, second, lambda: links.down)
            yield GeneratorPortTable(ports, self.generator, self._state.links)
            yield ApplicationTable(
                applications, self.generator, self._state.clock, self._watch_returned
            )
            self._watch_returned(False)
            yield PacketBufferTable(buffers, self.generator)
            for schema, kind in zip(others, (PortMaskTable, ReplayTable), strict=False):
                yield kind(schema, self.generator)
            yield from self._traffic_tables(self._facts)
            yield from self._debug_tables(self._facts)

    def _debug_tables(self, facts: DeviceFacts) -> Iterator[ControlTable]:
        if self._snapshots is None:
            return
        text = fixed_schema.DEBUG_TF1 if facts.family == "tf1" else fixed_schema.DEBUG_TF2
        counters, containers = parse_tables(text)
        yield StageCounterTable(counters, self._snapshots)
        yield ContainerTable(containers)

    def _traffic_tables(self, facts: DeviceFacts) -> Iterator[ControlTable]:
        second = facts.family != "tf1"
        text = traffic_schema.TRAFFIC_MANAGER_TF2 if second else traffic_schema.TRAFFIC_MANAGER_TF1
        manager, groups = TrafficManager(self._state.links.queues, facts), PriorityGroups(facts)
        for schema in parse_tables(text):
            if schema.kind in _ACTING:
                yield _ACTING[schema.kind](schema, manager)
            elif schema.kind == "TmPortGroup":
                yield PortGroupTable(schema, manager.groups)
            elif schema.kind == "TmPpgCfg":
                yield PriorityGroupTable(schema, groups)
            elif schema.kind == "TmCounterPpg":
                yield PriorityGroupCounts(schema, groups)
            else:
                yield KeptTable(schema, manager, groups)

    def _watch_returned(self, wanted: bool) -> None:
        self._state.links.recirculation[0] = wanted

    def _port_tables(self, second: bool) -> Iterator[ControlTable]:
        text = fixed_schema.PORTS_TF2 if second else fixed_schema.PORTS_TF1
        first, *others = parse_tables(text)
        yield PortTable(first, self._place)
        (statistics,) = parse_tables(fixed_schema.PORT_STATISTICS)
        yield PortStatisticsTable(statistics, self._place)
        for schema in others:
            yield PortPlaceTable(schema, self._place)
