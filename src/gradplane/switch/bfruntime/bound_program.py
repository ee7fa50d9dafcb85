"""The program that runs on the switch, with its tables and the device's as clients reach them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime import fixed_schema, traffic_schema
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.program_schema import ProgramSchema, program_tables
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


def fixed_schemas(family: str | None) -> list[TableSchema]:
    """Return the schemas of the tables that every program has. family: the chip's, None for a
    switch that is no chip."""
    chip = "tf1" if family in (None, "tf1") else "tf2"
    texts = [fixed_schema.ANY_SWITCH[chip]]
    if family is not None:
        texts += [fixed_schema.CHIP[chip], traffic_schema.TRAFFIC_MANAGER[chip],
                  fixed_schema.DEBUGGING[chip]]  # fmt: skip
    return parse_tables("\n".join(texts))


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
        self.store = store = pipeline.store
        self.restart, self.snapshots = restart, snapshots
        self.links = links = pipeline.state.links
        count = facts.ports if facts is not None else pipeline.switch.architecture.ports
        self.place = Ports(store, count, cast("Interfaces | None", interfaces))
        self.generator: PacketGenerator | None = None
        if facts is not None:
            self.generator = PacketGenerator(
                facts.pipe_bits, facts.family != "tf1", lambda: links.down,
                ports=store.kept("pktgen.port_cfg"),
            )  # fmt: skip
            groups = PriorityGroups(store, facts)
            self.chip = Chip(facts, TrafficManager(store, facts), groups, self.generator)
        schemas = fixed_schemas(None if facts is None else facts.family)
        made = [_MAKERS.get(schema.kind, _kept)(schema, self) for schema in schemas]
        self.tables = {table.schema.id: table for table in made if table is not None}
        self.ports = next(t for t in self.tables.values() if isinstance(t, PortTable))
        self.schema = Schema(tuple(table.schema for table in self.tables.values()))

    def watch_returned(self, wanted: bool) -> None:
        """Follow packets that come back, or stop."""
        self.links.recirculation[0] = wanted


Make = Callable[[TableSchema, FixedTables], ControlTable | None]
"""Makes a table; None: the switch has none."""


def _kept(schema: TableSchema, of: FixedTables) -> ControlTable:
    return KeptTable(schema, of.store, of.chip)


def _of_store(table: Callable[[TableSchema, Store], ControlTable]) -> Make:
    return lambda schema, of: table(schema, of.store)


def _of_ports(table: Callable[[TableSchema, Store, Ports], ControlTable]) -> Make:
    return lambda schema, of: table(schema, of.store, of.place)


def _of_queues(table: Callable[[TableSchema, Store, TrafficManager], ControlTable]) -> Make:
    return lambda schema, of: table(schema, of.store, of.chip.manager)


_MAKERS: dict[str, Make] = {
    **dict.fromkeys(("PreMgid", "PreNode", "PreEcmp", "PreLag", "PrePrune", "PrePort"),
                    _of_store(replication_table)),
    "MirrorCfg": _of_store(MirrorTable),
    "PortConfigure": _of_ports(PortTable),
    "PortStat": _of_ports(PortStatisticsTable),
    **dict.fromkeys(("PortHdlInfo", "PortFpIdxInfo", "PortStrInfo"), _of_ports(PortPlaceTable)),
    "WarmInit": lambda schema, of: (
        WarmInitTable(schema, of.store, of.restart) if of.restart else None),
    "PktgenPortCfg": lambda schema, of: (
        GeneratorPortTable(schema, of.store, of.chip.generator, of.links)),
    "PktgenAppCfg": lambda schema, of: (
        ApplicationTable(schema, of.store, of.chip.generator, of.watch_returned)),
    "PktgenPktBufferCfg": lambda schema, of: (
        PacketBufferTable(schema, of.store, of.chip.generator)),
    **dict.fromkeys(("TmPortCfg", "TmQueueMap"), _of_queues(PlacesTable)),
    **dict.fromkeys(("TmCounterEgPort", "TmCounterQueue"), _of_queues(CountsTable)),
    **dict.fromkeys((
        "TmPortSchedCfg", "TmPortSchedShaping", "TmQueueCfg", "TmQueueColor", "TmQueueBuffer",
        "TmQueueSchedCfg", "TmQueueSchedShaping",
    ), _of_queues(LimitsTable)),
    "TmPortGroup": lambda schema, of: PortGroupTable(schema, of.store, of.chip.manager.groups),
    "TmPpgCfg": lambda schema, of: PriorityGroupTable(schema, of.store, of.chip.groups),
    "TmCounterPpg": lambda schema, of: PriorityGroupCounts(schema, of.store, of.chip.groups),
    "LogDbgCnt": lambda schema, of: (
        StageCounterTable(schema, of.store, of.snapshots) if of.snapshots else None),
    "SnapshotPhv": lambda schema, of: ContainerTable(schema, of.store) if of.snapshots else None,
}  # fmt: skip
"""By the kind of table; the others keep what is written."""


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
