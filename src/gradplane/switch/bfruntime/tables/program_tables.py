"""The tables of a running program, by id."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.bfruntime.identifiers import TableId, table_id
from gradplane.switch.bfruntime.program_schema import ProgramSchema, filter_id
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.arrays import (
    CounterTable,
    MeterTable,
    RegisterParamTable,
    RegisterTable,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable
from gradplane.switch.bfruntime.tables.filter_fields import FIELDS
from gradplane.switch.bfruntime.tables.filters import FilterTable
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.port_metadata import PortMetadataTable
from gradplane.switch.bfruntime.tables.profiles import MemberTable, ProbeTable, SelectorTable
from gradplane.switch.bfruntime.tables.value_sets import ValueSetTable
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.catalog import ListedActions
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.state import State


def program_tables(schema: ProgramSchema, state: State) -> dict[int, ControlTable]:
    """Make the tables of a program: its schema's, on the state of the switch that runs it."""
    known = {table.id: table for table in schema.schema.tables}
    return {table.schema.id: table for table in _Builder(schema, state, known).tables()}


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
        catalog, state = self.catalog, self.state
        for number, info in catalog.tables.items():
            table, runs = self.known[number], state.tables[info.name]
            masks = self._masks(table, info.table)
            yield MatchActionTable(table, runs, _numbers(info.actions), masks)
        for number, extern in catalog.profiles.items():
            profile, actions = state.profiles[extern.name], catalog.member_actions[number]
            members = self.known[table_id(TableId.ACTION_PROFILE, number)]
            users = [
                state.tables[catalog.tables[i].name] for i in extern.tables if i in catalog.tables
            ]
            yield MemberTable(members, profile, _numbers(actions), users)
            if profile.has_groups:
                groups = self.known[table_id(TableId.ACTION_SELECTOR, number)]
                selector = SelectorTable(groups, profile, users)
                yield selector
                probe = self.known[table_id(TableId.SELECTOR_GET_MEMBER, number)]
                yield ProbeTable(probe, selector)
        for number, extern in catalog.counters.items():
            yield CounterTable(self.known[number], state.counters[extern.name])
        for number, extern in catalog.meters.items():
            yield MeterTable(self.known[number], state.meters[extern.name], state.clock)
        for number, extern in catalog.registers.items():
            instance, cells = self.program.instances[extern.name], state.pipe_registers(extern.name)
            pipes = [cells[pipe % len(cells)] for pipe in range(self.pipes)]
            if instance.type == "RegisterParam":
                yield RegisterParamTable(
                    self.known[table_id(TableId.REGISTER_PARAM, number)], pipes
                )
            else:
                yield RegisterTable(self.known[number], instance, pipes)
        for kind in ("lpf", "wred"):
            named = (e for e in catalog.program.externs if e.kind == kind)
            for at, instance in enumerate(named):
                known = self.known[filter_id(kind, at)]
                filter = state.filters[instance.name]
                yield FilterTable(known, filter, FIELDS[kind], state.clock)
        facts = self.program.facts
        for number in range(len(facts.pipelines) if facts is not None else 0):
            assert facts is not None
            table = self.known[table_id(TableId.PORT_METADATA, number)]
            yield PortMetadataTable(table, facts, number, state)
        for number, value_set in catalog.value_sets.items():
            yield ValueSetTable(self.known[number], state.value_sets[value_set.name])


def _numbers(actions: ListedActions) -> dict[int, int]:
    return {id: action.index for id, action in actions.by_id.items()}
