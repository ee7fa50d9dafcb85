"""The tables of a running program, by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.hashed_fields import called_hashes, hashed_fields
from gradplane.switch.bfruntime.identifiers import TableId, table_id
from gradplane.switch.bfruntime.program_schema import ProgramSchema, filter_id
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.snapshots import Snapshots
from gradplane.switch.bfruntime.tables.arrays import (
    CounterTable,
    MeterTable,
    RegisterParamTable,
    RegisterTable,
    sum_of_counts,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable
from gradplane.switch.bfruntime.tables.debug_counters import DebugCounterTable
from gradplane.switch.bfruntime.tables.filter_fields import FIELDS
from gradplane.switch.bfruntime.tables.filters import FilterTable
from gradplane.switch.bfruntime.tables.hash_algorithms import HashAlgorithmTable, HashComputeTable
from gradplane.switch.bfruntime.tables.hash_inputs import HashConfigurationTable
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.port_metadata import PortMetadataTable
from gradplane.switch.bfruntime.tables.profiles import MemberTable, ProbeTable, SelectorTable
from gradplane.switch.bfruntime.tables.scoped import ScopedTable
from gradplane.switch.bfruntime.tables.snapshots import (
    SnapshotConfigTable,
    SnapshotDataTable,
    SnapshotLivenessTable,
    SnapshotTriggerTable,
)
from gradplane.switch.bfruntime.tables.value_sets import ValueSetTable
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.p4runtime.catalog import ListedActions
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.pipe_scopes import PipeScopes, Resources
from gradplane.switch.runtime.state import State


def program_tables(
    schema: ProgramSchema, state: State, snapshots: Snapshots | None = None
) -> dict[int, ControlTable]:
    """Make the tables of a program: its schema's, on the state of the switch that runs it."""
    known = {table.id: table for table in schema.schema.tables}
    made = {table.schema.id: table for table in _Builder(schema, state, known).tables()}
    if snapshots is not None:
        made |= {table.schema.id: table for table in _snapshots(schema, snapshots, known)}
    return made


def _snapshots(
    schema: ProgramSchema, snapshots: Snapshots, known: dict[int, TableSchema]
) -> Iterator[ControlTable]:
    for at, pipeline in enumerate(snapshots.facts.pipelines):
        name = pipeline.name
        table = known[table_id(TableId.SNAPSHOT_CONFIG, 2 * at)]
        yield SnapshotConfigTable(table, snapshots, name)
        for number, gress in enumerate(pipeline.controls, 2 * at):
            table = known[table_id(TableId.SNAPSHOT_TRIGGER, number)]
            yield SnapshotTriggerTable(table, snapshots, name, gress)
            table = known[table_id(TableId.SNAPSHOT_DATA, number)]
            yield SnapshotDataTable(table, snapshots, name, gress, schema.table_name)
            table = known[table_id(TableId.SNAPSHOT_LIVENESS, number)]
            yield SnapshotLivenessTable(table, snapshots, name, gress)
    table = known[table_id(TableId.DEBUG_COUNTER, 0)]
    yield DebugCounterTable(table, snapshots, schema.table_name)


class _Builder:
    def __init__(self, schema: ProgramSchema, state: State, known: dict[int, TableSchema]) -> None:
        self.program = schema
        self.catalog = schema.catalog
        self.state = state
        self.known = known
        self.pipes = schema.facts.pipes if schema.facts else 1

    def _masks(self, schema: TableSchema, table: ir.Table) -> dict[str, list[Register]]:
        """Return the registers of the keys that have a mask, by the names of the key fields."""
        keys = (key for key in table.keys if key.match_kind != "selector")
        return {
            field.name: self.state.pipe_registers(key.mask.name)
            for field, key in zip(schema.keys, keys, strict=False)
            if key.mask is not None
        }

    def tables(self) -> Iterator[ControlTable]:
        yield from self._match_tables()
        yield from self._profiles()
        yield from self._cells()
        yield from self._registers()
        for at, instance in enumerate(called_hashes(self.catalog.program)):
            known = self.known[table_id(TableId.HASH_ALGORITHM, at + 1)]
            hash, width = self.state.hashes[instance.name], bit_width(instance.type_args[0]) or 0
            yield HashAlgorithmTable(known, hash, width)
            if fields := hashed_fields(self.catalog.program, instance):
                known = self.known[table_id(TableId.HASH_CONFIGURE, at + 1)]
                yield HashConfigurationTable(known, hash, fields)
                known = self.known[table_id(TableId.HASH_COMPUTE, at + 1)]
                yield HashComputeTable(known, hash, width, fields)
        facts = self.program.facts
        for number in range(len(facts.pipelines) if facts is not None else 0):
            assert facts is not None
            table = self.known[table_id(TableId.PORT_METADATA, number)]
            yield PortMetadataTable(table, facts, number, self.state)
        for number, value_set in self.catalog.value_sets.items():
            known, name = self.known[number], value_set.name
            make = partial(_value_set, known, name)
            yield ScopedTable(known, self.state.scopes, name, make)

    def _match_tables(self) -> Iterator[ControlTable]:
        for number, info in self.catalog.tables.items():
            known = self.known[number]
            masks = self._masks(known, info.table)
            meter = info.table.meter
            adjustment = None if meter is None else self.state.byte_adjustments[meter.name]
            make = partial(
                _match_table, known, info.name, _numbers(info.actions), masks, adjustment,
                self.state.scopes,
            )  # fmt: skip
            yield ScopedTable(known, self.state.scopes, info.name, make)

    def _profiles(self) -> Iterator[ControlTable]:
        catalog, scopes = self.catalog, self.state.scopes
        for number, extern in catalog.profiles.items():
            name, actions = extern.name, _numbers(catalog.member_actions[number])
            users = [catalog.tables[i].name for i in extern.tables if i in catalog.tables]
            members = self.known[table_id(TableId.ACTION_PROFILE, number)]
            yield ScopedTable(
                members, scopes, name, partial(_members, members, name, users, actions)
            )
            if self.state.profiles[name].has_groups:
                groups = self.known[table_id(TableId.ACTION_SELECTOR, number)]
                selector = ScopedTable(groups, scopes, name, partial(_groups, groups, name, users))
                yield selector
                probe = self.known[table_id(TableId.SELECTOR_GET_MEMBER, number)]
                yield ProbeTable(probe, selector.of)

    def _cells(self) -> Iterator[ControlTable]:
        """Yield counters, meters and filters: with one value for all pipes, a counter's the sum."""
        catalog, scopes, clock = self.catalog, self.state.scopes, self.state.clock
        for number, extern in catalog.counters.items():
            known = self.known[table_id(TableId.COUNTER, number)]
            make = partial(_counter, known, extern.name)
            yield ScopedTable(known, scopes, extern.name, make, sum_of_counts)
        for number, extern in catalog.meters.items():
            adjustment = self.state.byte_adjustments[extern.name]
            known = self.known[table_id(TableId.METER, number)]
            make = partial(_meter, known, extern.name, clock, adjustment)
            yield ScopedTable(known, scopes, extern.name, make, _first)
        for kind in ("lpf", "wred"):
            named = (e for e in catalog.program.externs if e.kind == kind)
            for at, instance in enumerate(named):
                known = self.known[filter_id(kind, at)]
                make = partial(_filter, known, instance.name, kind, clock)
                yield ScopedTable(known, scopes, instance.name, make, _first)

    def _registers(self) -> Iterator[ControlTable]:
        catalog, state, facts = self.catalog, self.state, self.program.facts
        for number, extern in catalog.registers.items():
            instance, cells = self.program.instances[extern.name], state.pipe_registers(extern.name)
            homes = range(self.pipes) if facts is None else facts.pipes_of(extern.name)
            pipes = {pipe: cells[pipe % len(cells)] for pipe in homes}
            if instance.type == "RegisterParam":
                yield RegisterParamTable(
                    self.known[table_id(TableId.REGISTER_PARAM, number)], pipes
                )
            else:
                known = self.known[table_id(TableId.REGISTER, number)]
                yield RegisterTable(known, instance, pipes)


def _match_table(
    known: TableSchema, name: str, actions: dict[int, int], masks: dict[str, list[Register]],
    adjustment: ByteAdjustment | None, scopes: PipeScopes, own: Resources,
) -> ControlTable:  # fmt: skip
    table = own.tables[name]

    def pipes() -> list[int]:
        return [p for p in scopes.homes(name) if scopes.pipes[p].tables[name] is table]

    return MatchActionTable(known, table, actions, masks, pipes, adjustment)


def _members(
    known: TableSchema, name: str, users: Sequence[str], actions: dict[int, int], own: Resources
) -> ControlTable:
    return MemberTable(known, own.profiles[name], actions, [own.tables[user] for user in users])


def _groups(known: TableSchema, name: str, users: Sequence[str], own: Resources) -> ControlTable:
    return SelectorTable(known, own.profiles[name], [own.tables[user] for user in users])


def _counter(known: TableSchema, name: str, own: Resources) -> ControlTable:
    return CounterTable(known, own.counters[name])


def _meter(
    known: TableSchema, name: str, clock: Callable[[], int], adjustment: ByteAdjustment,
    own: Resources,
) -> ControlTable:  # fmt: skip
    return MeterTable(known, own.meters[name], clock, adjustment)


def _filter(
    known: TableSchema, name: str, kind: str, clock: Callable[[], int], own: Resources
) -> ControlTable:
    return FilterTable(known, own.filters[name], FIELDS[kind], clock)


def _value_set(known: TableSchema, name: str, own: Resources) -> ControlTable:
    return ValueSetTable(known, own.value_sets[name])


def _first(found: Sequence[Data]) -> Data:
    return found[0]


def _numbers(actions: ListedActions) -> dict[int, int]:
    return {id: action.index for id, action in actions.by_id.items()}
