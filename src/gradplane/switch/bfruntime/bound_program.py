"""The program that runs on the switch, with its tables and the device's as clients reach them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime import fixed_schema, traffic_schema
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.program_schema import ProgramSchema
from gradplane.switch.bfruntime.requests import Requests
from gradplane.switch.bfruntime.schema import Schema, TableSchema, parse_tables
from gradplane.switch.bfruntime.snapshots import Placement, Snapshots
from gradplane.switch.bfruntime.tables.control_table import ControlTable
from gradplane.switch.bfruntime.tables.kept_tables import Chip, KeptTable
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.packet_generation import (
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
    PortPlaceTable,
    Ports,
    PortStatisticsTable,
    PortTable,
)
from gradplane.switch.bfruntime.tables.profiles import SelectorTable
from gradplane.switch.bfruntime.tables.program_tables import program_tables
from gradplane.switch.bfruntime.tables.replication import MirrorTable, replication_table
from gradplane.switch.bfruntime.tables.scoped import ScopedTable
from gradplane.switch.bfruntime.tables.snapshots import ContainerTable, StageCounterTable
from gradplane.switch.bfruntime.tables.traffic_manager import (
    CountsTable,
    LimitsTable,
    PlacesTable,
    TrafficManager,
)
from gradplane.switch.bfruntime.tables.warm_init import Restart, WarmInitTable
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.runtime.interfaces import Interfaces

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
        self._place = Ports(self._store, self._ports_there, cast("Interfaces | None", interfaces))
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
        self.generator = PacketGenerator(
            facts.pipe_bits, second, lambda: links.down, ports=store.kept("pktgen.port_cfg")
        )
        groups = PriorityGroups(store, facts)
        chip = Chip(facts, TrafficManager(store, facts), groups, self.generator)
        text = fixed_schema.DEVICE_TF2 if second else fixed_schema.DEVICE_TF1
        device, warm = parse_tables(text)
        yield KeptTable(device, store, chip)
        if self._restart is not None:
            yield WarmInitTable(warm, store, self._restart)
        text = fixed_schema.GENERATOR_TF2 if second else fixed_schema.GENERATOR_TF1
        ports, applications, buffers, *others = parse_tables(text)
        yield GeneratorPortTable(ports, store, self.generator, links)
        yield ApplicationTable(applications, store, self.generator, self._watch_returned)
        yield PacketBufferTable(buffers, store, self.generator)
        for schema in others:
            yield KeptTable(schema, store, chip)
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
        return KeptTable(schema, store, chip)

    def _watch_returned(self, wanted: bool) -> None:
        self._state.links.recirculation[0] = wanted


# -- the program ----------------------------------------------------------------------------------


@dataclass(slots=True)
class BoundProgram:
    """A pipeline of the device under BFRuntime; `tables` are the program's, by the names that it
    has in P4Info."""

    pipeline: Pipeline
    schema: ProgramSchema
    requests: Requests
    match_tables: dict[str, MatchActionTable]
    selectors: list[SelectorTable]
    fixed: FixedTables

    @property
    def name(self) -> str:
        return program_name(self.pipeline)

    @property
    def packet_requests(self) -> set[str]:
        """The names of the messages in which deparsers ask for generated packets."""
        externs = self.pipeline.catalog.program.externs
        return {e.name for e in externs if e.kind == "packet_generator"}

    def json(self) -> bytes:
        """Return the program's bf-rt.json."""
        return json.dumps(self.schema.schema.json()).encode()

    def fixed_json(self) -> bytes:
        """Return the bf-rt.json of the device's tables."""
        return json.dumps(self.fixed.schema.json()).encode()


def program_name(pipeline: Pipeline) -> str:
    """Return the name that clients bind to: that of the program's file."""
    return Path(pipeline.catalog.program.package.span.file).stem


def bind(
    pipeline: Pipeline,
    device: object = None,
    place: Placement | None = None,
    restart: Restart | None = None,
) -> BoundProgram:
    """Make the tables of a pipeline. `device`: the ports of the switch, None if unknown. place: of
    its tables in stages. restart: starts the program anew."""
    schema = ProgramSchema(pipeline.catalog)
    snapshots = _snapshots(schema, pipeline, place)
    own = program_tables(schema, pipeline.store, snapshots)
    fixed = FixedTables(schema.facts, pipeline, device, restart, snapshots)
    pipes = schema.facts.pipes if schema.facts is not None else 1
    tables = {**own, **fixed.tables}
    requests = Requests(tables, schema.schema.learn_filters, pipes, pipeline.store)
    first = [table.first for table in own.values() if isinstance(table, ScopedTable)]
    match_tables = {t.table.table.name: t for t in first if isinstance(t, MatchActionTable)}
    selectors = [table for table in first if isinstance(table, SelectorTable)]
    return BoundProgram(pipeline, schema, requests, match_tables, selectors, fixed)


def _snapshots(
    schema: ProgramSchema, pipeline: Pipeline, place: Placement | None
) -> Snapshots | None:
    """Return the snapshots of a chip, which follow packets when a client asks for it."""
    if schema.facts is None:
        return None

    def watch(wanted: bool) -> None:
        pipeline.state.probe = made if wanted else None
        if wanted:
            pipeline.switch.watch(made)
        else:
            pipeline.switch.unwatch(made)

    made = Snapshots(schema.facts, pipeline.catalog.program, pipeline.state.clock, watch, place)
    return made
