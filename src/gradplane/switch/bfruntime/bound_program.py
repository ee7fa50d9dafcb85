"""The programs that run on the switch, with their tables and the device's as clients reach them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.arch.registry import device_facts, program_name
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
from gradplane.switch.p4runtime.catalog import Catalog
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
            self.manager, self.groups = TrafficManager(store, facts), PriorityGroups(store, facts)
            self.port_groups = self.manager.groups
            self.chip = Chip(facts, self.manager, self.groups, self.generator)
        schemas = fixed_schemas(None if facts is None else facts.family)
        made = [self._table(schema) for schema in schemas]
        self.tables = {table.schema.id: table for table in made if table is not None}
        self.ports = next(t for t in self.tables.values() if isinstance(t, PortTable))
        self.schema = Schema(tuple(table.schema for table in self.tables.values()))

    def watch_returned(self, wanted: bool) -> None:
        """Follow packets that come back, or stop."""
        self.links.recirculation[0] = wanted

    def _table(self, schema: TableSchema) -> ControlTable | None:
        """Make a table; None: the switch does not have what it needs."""
        table, *names = _TABLES.get(schema.kind, (KeptTable, "chip"))
        needs = [getattr(self, name) for name in names]
        return None if None in needs else table(schema, self.store, *needs)


_TABLES: dict[str, tuple[Any, *tuple[str, ...]]] = {
    **dict.fromkeys(("PreMgid", "PreNode", "PreEcmp", "PreLag", "PrePrune", "PrePort"),
                    (replication_table,)),
    "MirrorCfg": (MirrorTable,),
    "PortConfigure": (PortTable, "place"),
    "PortStat": (PortStatisticsTable, "place"),
    **dict.fromkeys(("PortHdlInfo", "PortFpIdxInfo", "PortStrInfo"), (PortPlaceTable, "place")),
    "WarmInit": (WarmInitTable, "restart"),
    "PktgenPortCfg": (GeneratorPortTable, "generator", "links"),
    "PktgenAppCfg": (ApplicationTable, "generator", "watch_returned"),
    "PktgenPktBufferCfg": (PacketBufferTable, "generator"),
    **dict.fromkeys(("TmPortCfg", "TmQueueMap"), (PlacesTable, "manager")),
    **dict.fromkeys(("TmCounterEgPort", "TmCounterQueue"), (CountsTable, "manager")),
    **dict.fromkeys((
        "TmPortSchedCfg", "TmPortSchedShaping", "TmQueueCfg", "TmQueueColor", "TmQueueBuffer",
        "TmQueueSchedCfg", "TmQueueSchedShaping",
    ), (LimitsTable, "manager")),
    "TmPortGroup": (PortGroupTable, "port_groups"),
    "TmPpgCfg": (PriorityGroupTable, "groups"),
    "TmCounterPpg": (PriorityGroupCounts, "groups"),
    "LogDbgCnt": (StageCounterTable, "snapshots"),
    "SnapshotPhv": (ContainerTable,),
}  # fmt: skip
"""The class of each kind of table, and the parts of FixedTables that it takes behind the store.
Tables of other kinds keep what is written."""


# -- the programs ---------------------------------------------------------------------------------


@dataclass(slots=True)
class BoundProgram:
    """One of the device's programs under BFRuntime. pipeline: that of the device, which runs it
    and perhaps others. `tables` are the program's, by the names that they have in P4Info."""

    name: str
    pipeline: Pipeline
    schema: ProgramSchema
    requests: Requests
    match_tables: dict[str, MatchActionTable]
    selectors: list[SelectorTable]

    @property
    def packet_requests(self) -> set[str]:
        """The names of the messages in which deparsers ask for generated packets."""
        externs = self.schema.catalog.program.externs
        return {e.name for e in externs if e.kind == "packet_generator"}

    @property
    def binary(self) -> bytes:
        """The device config that it was pushed with."""
        pushed: bytes = self.pipeline.config.p4_device_config
        return self.pipeline.binaries.get(self.name, pushed)

    def json(self) -> bytes:
        """Return the program's bf-rt.json."""
        return json.dumps(self.schema.schema.json()).encode()


@dataclass(slots=True)
class BoundDevice:
    """A pipeline of the device under BFRuntime: its programs by name, and the tables that they
    share."""

    pipeline: Pipeline
    programs: Mapping[str, BoundProgram]
    fixed: FixedTables

    @property
    def names(self) -> str:
        """The programs' names, for messages."""
        return ", ".join(self.programs)

    @property
    def only(self) -> BoundProgram | None:
        """The only program; None if there are several."""
        return next(iter(self.programs.values())) if len(self.programs) == 1 else None

    def fixed_json(self) -> bytes:
        """Return the bf-rt.json of the device's tables."""
        return json.dumps(self.fixed.schema.json()).encode()

    def program_of(self, table: str) -> BoundProgram | None:
        """Return the program that a match-action table belongs to."""
        return next((p for p in self.programs.values() if table in p.match_tables), None)


def bind(
    pipeline: Pipeline,
    device: object = None,
    place: Placement | None = None,
    restart: Restart | None = None,
) -> BoundDevice:
    """Make the tables of a pipeline. `device`: the ports of the switch, None if unknown. place: of
    its tables in stages. restart: starts the programs anew."""
    program = pipeline.catalog.program
    facts = device_facts(program)
    snapshots = _snapshots(facts, pipeline, place)
    fixed = FixedTables(facts, pipeline, device, restart, snapshots)
    catalogs = {name: Catalog(part) for name, part in program.parts.items()}
    made = {
        name: _bound(name, catalog, pipeline, fixed, snapshots)
        for name, catalog in (catalogs or {program_name(program): pipeline.catalog}).items()
    }
    return BoundDevice(pipeline, made, fixed)


def _bound(
    name: str, catalog: Catalog, pipeline: Pipeline, fixed: FixedTables, snapshots: Snapshots | None
) -> BoundProgram:
    schema = ProgramSchema(catalog)
    own = program_tables(schema, pipeline.store, snapshots)
    pipes = schema.facts.pipes if schema.facts is not None else 1
    tables = {**own, **fixed.tables}
    requests = Requests(tables, schema.schema.learn_filters, pipes, pipeline.store)
    first = [table.first for table in own.values() if isinstance(table, ScopedTable)]
    match_tables = {t.table.table.name: t for t in first if isinstance(t, MatchActionTable)}
    selectors = [table for table in first if isinstance(table, SelectorTable)]
    return BoundProgram(name, pipeline, schema, requests, match_tables, selectors)


def _snapshots(
    facts: DeviceFacts | None, pipeline: Pipeline, place: Placement | None
) -> Snapshots | None:
    """Return the snapshots of a chip, which follow packets when a client asks for it."""
    if facts is None:
        return None

    def watch(wanted: bool) -> None:
        pipeline.state.probe = made if wanted else None
        if wanted:
            pipeline.switch.watch(made)
        else:
            pipeline.switch.unwatch(made)

    made = Snapshots(facts, pipeline.catalog.program, pipeline.state.clock, watch, place)
    return made
