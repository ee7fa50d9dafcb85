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
from gradplane.switch.bfruntime.tables.device import DEVICE_RULES, Restart, WarmInitTable
from gradplane.switch.bfruntime.tables.kept_table import Chip, KeptTable, Rules
from gradplane.switch.bfruntime.tables.packet_generation import (
    GENERATOR_RULES,
    ApplicationTable,
    GeneratorPortTable,
    PacketBufferTable,
)
from gradplane.switch.bfruntime.tables.port_groups import (
    PortGroupTable,
    PriorityGroupCounts,
    PriorityGroups,
    PriorityGroupTable,
)
from gradplane.switch.bfruntime.tables.ports import (
    Interfaces,
    PortPlaceTable,
    Ports,
    PortStatisticsTable,
    PortTable,
)
from gradplane.switch.bfruntime.tables.replication import MirrorTable, replication_table
from gradplane.switch.bfruntime.tables.snapshots import ContainerTable, StageCounterTable
from gradplane.switch.bfruntime.tables.traffic_manager import (
    CountsTable,
    LimitsTable,
    PlacesTable,
    TrafficManager,
)
from gradplane.switch.bfruntime.tables.traffic_settings import TRAFFIC_RULES
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.pipeline import Pipeline

_ACTING: dict[str, Callable[[TableSchema, Store, TrafficManager], ControlTable]] = {
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
        self._store = pipeline.store
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
        store = self._store
        for schema in parse_tables(fixed_schema.PRE_TF2 if second else fixed_schema.PRE_TF1):
            yield replication_table(schema, store)
        (schema,) = parse_tables(fixed_schema.MIRROR_TF2 if second else fixed_schema.MIRROR_TF1)
        yield MirrorTable(schema, store)
        first, *others = parse_tables(fixed_schema.PORTS_TF2 if second else fixed_schema.PORTS_TF1)
        yield PortTable(first, store, self._place)
        (schema,) = parse_tables(fixed_schema.PORT_STATISTICS)
        yield PortStatisticsTable(schema, store, self._place)
        for schema in others:
            yield PortPlaceTable(schema, store, self._place)
        if self._facts is not None:
            yield from self._of_chip(self._facts, second)

    def _of_chip(self, facts: DeviceFacts, second: bool) -> Iterator[ControlTable]:
        store, links = self._store, self._state.links
        self.generator = PacketGenerator(facts.pipe_bits, second, lambda: links.down)
        chip = Chip(facts, TrafficManager(store, facts), PriorityGroups(facts), self.generator)
        text = fixed_schema.DEVICE_TF2 if second else fixed_schema.DEVICE_TF1
        device, warm = parse_tables(text)
        yield KeptTable(device, store, chip, DEVICE_RULES)
        if self._restart is not None:
            yield WarmInitTable(warm, store, self._restart)
        text = fixed_schema.GENERATOR_TF2 if second else fixed_schema.GENERATOR_TF1
        ports, applications, buffers, *others = parse_tables(text)
        yield GeneratorPortTable(ports, store, self.generator, links)
        yield ApplicationTable(applications, store, self.generator, self._watch_returned)
        self._watch_returned(False)
        yield PacketBufferTable(buffers, store, self.generator)
        for schema in others:
            yield KeptTable(schema, store, chip, GENERATOR_RULES[schema.kind])
        text = traffic_schema.TRAFFIC_MANAGER_TF2 if second else traffic_schema.TRAFFIC_MANAGER_TF1
        for schema in parse_tables(text):
            yield self._traffic_table(schema, chip)
        if self._snapshots is not None:
            text = fixed_schema.DEBUG_TF2 if second else fixed_schema.DEBUG_TF1
            counters, containers = parse_tables(text)
            yield StageCounterTable(counters, store, self._snapshots)
            yield ContainerTable(containers, store)

    def _traffic_table(self, schema: TableSchema, chip: Chip) -> ControlTable:
        store = self._store
        if schema.kind in _ACTING:
            return _ACTING[schema.kind](schema, store, chip.manager)
        match schema.kind:
            case "TmPortGroup":
                return PortGroupTable(schema, store, chip.manager.groups)
            case "TmPpgCfg":
                return PriorityGroupTable(schema, store, chip.groups)
            case "TmCounterPpg":
                return PriorityGroupCounts(schema, store, chip.groups)
        return KeptTable(schema, store, chip, TRAFFIC_RULES.get(schema.kind, Rules()))

    def _watch_returned(self, wanted: bool) -> None:
        self._state.links.recirculation[0] = wanted
