"""The tables of a running program, by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.program_schema import ProgramSchema, filter_id
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.snapshots import Snapshots
from gradplane.switch.bfruntime.tables.arrays import (
    CounterTable,
    FilterTable,
    MeterTable,
    RegisterParamTable,
    RegisterTable,
    sum_of_counts,
)
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    KindTable,
    Scope,
)
from gradplane.switch.bfruntime.tables.hashes import (
    HashAlgorithmTable,
    HashComputeTable,
    HashConfigurationTable,
    called_hashes,
    hashed_fields,
)
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.profiles import MemberTable, ProbeTable, SelectorTable
from gradplane.switch.bfruntime.tables.scoped import Make, Merge, ScopedTable
from gradplane.switch.bfruntime.tables.snapshots import (
    DebugCounterTable,
    SnapshotConfigTable,
    SnapshotDataTable,
    SnapshotLivenessTable,
    SnapshotTriggerTable,
)
from gradplane.switch.control.cells import Values
from gradplane.switch.control.kind import Record
from gradplane.switch.control.names import TableId, table_id
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.p4runtime.catalog import ListedActions, TableInfo
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.pipe_scopes import Resources

Member = tuple[Match, ...]


def program_tables(
    schema: ProgramSchema, store: Store, snapshots: Snapshots | None = None
) -> dict[int, ControlTable]:
    """Make the tables of a program: its schema's, on the store of the switch that runs it."""
    known = {table.id: table for table in schema.schema.tables}
    made = {table.schema.id: table for table in _Builder(schema, store, known).tables()}
    if snapshots is not None:
        made |= {table.schema.id: table for table in _snapshots(schema, store, snapshots, known)}
    return made


def _snapshots(
    schema: ProgramSchema, store: Store, snapshots: Snapshots, known: dict[int, TableSchema]
) -> Iterator[ControlTable]:
    for at, pipeline in enumerate(snapshots.facts.pipelines):
        name = pipeline.name
        table = known[table_id(TableId.SNAPSHOT_CONFIG, 2 * at)]
        yield SnapshotConfigTable(table, store, snapshots, name)
        for number, gress in enumerate(pipeline.controls, 2 * at):
            table = known[table_id(TableId.SNAPSHOT_TRIGGER, number)]
            yield SnapshotTriggerTable(table, store, snapshots, name, gress)
            table = known[table_id(TableId.SNAPSHOT_DATA, number)]
            yield SnapshotDataTable(table, store, snapshots, name, gress, schema.table_name)
            table = known[table_id(TableId.SNAPSHOT_LIVENESS, number)]
            yield SnapshotLivenessTable(table, store, snapshots, name, gress)
    table = known[table_id(TableId.DEBUG_COUNTER, 0)]
    yield DebugCounterTable(table, store, snapshots, schema.table_name)


class _Builder:
    def __init__(self, schema: ProgramSchema, store: Store, known: dict[int, TableSchema]) -> None:
        self.program = schema
        self.catalog = schema.catalog
        self.store = store
        self.state = store.state
        self.known = known
        self.pipes = schema.facts.pipes if schema.facts else 1

    def tables(self) -> Iterator[ControlTable]:
        yield from self._match_tables()
        yield from self._profiles()
        yield from self._cells()
        yield from self._registers()
        yield from self._hashes()
        facts = self.program.facts
        for number in range(len(facts.pipelines) if facts is not None else 0):
            assert facts is not None
            table = self.known[table_id(TableId.PORT_METADATA, number)]
            yield PortMetadataTable(table, self.store, facts, number)
        for number, value_set in self.catalog.value_sets.items():
            known, name = self.known[number], value_set.name
            yield self._scoped(known, name, partial(self._value_set, known, name))

    def _scoped(
        self, known: TableSchema, name: str, make: Make, merge: Merge | None = None
    ) -> ScopedTable:
        return ScopedTable(known, self.store, self.state.scopes, name, make, merge)

    def _match_tables(self) -> Iterator[ControlTable]:
        for number, info in self.catalog.tables.items():
            known = self.known[number]
            yield self._scoped(known, info.name, partial(self._match_table, known, info))

    def _match_table(self, known: TableSchema, info: TableInfo, own: Resources) -> ControlTable:
        scopes, name, table = self.state.scopes, info.name, own.tables[info.name]

        def pipes() -> list[int]:
            return [p for p in scopes.homes(name) if scopes.pipes[p].tables[name] is table]

        meter = info.table.meter
        adjustment = None if meter is None else own.adjustments[meter.name]
        masks, numbers = self._masks(known, info.table), _numbers(info.actions)
        return MatchActionTable(known, self.store, table, numbers, masks, pipes, adjustment)

    def _masks(self, schema: TableSchema, table: ir.Table) -> dict[str, list[Register]]:
        """Return the registers of the keys that have a mask, by the names of the key fields."""
        keys = (key for key in table.keys if key.match_kind != "selector")
        return {
            field.name: self.state.pipe_registers(key.mask.name)
            for field, key in zip(schema.keys, keys, strict=False)
            if key.mask is not None
        }

    def _profiles(self) -> Iterator[ControlTable]:
        for number, extern in self.catalog.profiles.items():
            name, actions = extern.name, _numbers(self.catalog.member_actions[number])
            members = self.known[table_id(TableId.ACTION_PROFILE, number)]
            yield self._scoped(members, name, partial(self._members, members, name, actions))
            if self.state.profiles[name].has_groups:
                groups = self.known[table_id(TableId.ACTION_SELECTOR, number)]
                selector = self._scoped(groups, name, partial(self._groups, groups, name))
                yield selector
                probe = self.known[table_id(TableId.SELECTOR_GET_MEMBER, number)]
                yield ProbeTable(probe, self.store, selector.of)

    def _cells(self) -> Iterator[ControlTable]:
        """Yield counters, meters and filters: with one value for all pipes, a counter's the sum."""
        catalog = self.catalog
        for number, extern in catalog.counters.items():
            known = self.known[table_id(TableId.COUNTER, number)]
            make = partial(self._counter, known, extern.name)
            yield self._scoped(known, extern.name, make, sum_of_counts)
        for number, extern in catalog.meters.items():
            known = self.known[table_id(TableId.METER, number)]
            yield self._scoped(known, extern.name, partial(self._meter, known, extern.name), _first)
        for kind in ("lpf", "wred"):
            named = (e for e in catalog.program.externs if e.kind == kind)
            for at, instance in enumerate(named):
                known = self.known[filter_id(kind, at)]
                make = partial(self._filter, known, instance.name, kind)
                yield self._scoped(known, instance.name, make, _first)

    def _registers(self) -> Iterator[ControlTable]:
        facts, store = self.program.facts, self.store
        for number, extern in self.catalog.registers.items():
            instance = self.program.instances[extern.name]
            cells = self.state.pipe_registers(extern.name)
            homes = range(self.pipes) if facts is None else facts.pipes_of(extern.name)
            pipes = {pipe: cells[pipe % len(cells)] for pipe in homes}
            if instance.type == "RegisterParam":
                known = self.known[table_id(TableId.REGISTER_PARAM, number)]
                yield RegisterParamTable(known, store, pipes)
            else:
                known = self.known[table_id(TableId.REGISTER, number)]
                yield RegisterTable(known, store, instance, pipes)

    def _hashes(self) -> Iterator[ControlTable]:
        for at, instance in enumerate(called_hashes(self.catalog.program), 1):
            known = self.known[table_id(TableId.HASH_ALGORITHM, at)]
            hash, width = self.state.hashes[instance.name], bit_width(instance.type_args[0]) or 0
            yield HashAlgorithmTable(known, self.store, hash, width)
            if fields := hashed_fields(self.catalog.program, instance):
                known = self.known[table_id(TableId.HASH_CONFIGURE, at)]
                yield HashConfigurationTable(known, self.store, hash, fields)
                known = self.known[table_id(TableId.HASH_COMPUTE, at)]
                yield HashComputeTable(known, self.store, hash, width, fields)

    # -- the table of one pipe's resources ------------------------------------------------------

    def _members(
        self, known: TableSchema, name: str, actions: dict[int, int], own: Resources
    ) -> ControlTable:
        return MemberTable(known, self.store, self.store.members(own.profiles[name]), actions)

    def _groups(self, known: TableSchema, name: str, own: Resources) -> ControlTable:
        return SelectorTable(known, self.store, self.store.groups(own.profiles[name]))

    def _counter(self, known: TableSchema, name: str, own: Resources) -> ControlTable:
        return CounterTable(known, self.store, self.store.counters(own.counters[name]))

    def _meter(self, known: TableSchema, name: str, own: Resources) -> ControlTable:
        meters = self.store.meters(own.meters[name])
        return MeterTable(known, self.store, meters, own.adjustments[name])

    def _filter(self, known: TableSchema, name: str, kind: str, own: Resources) -> ControlTable:
        return FilterTable(known, self.store, self.store.filters(own.filters[name]), kind)

    def _value_set(self, known: TableSchema, name: str, own: Resources) -> ControlTable:
        return ValueSetTable(known, self.store, self.store.values(own.value_sets[name]))


def _first(found: Sequence[Data]) -> Data:
    return found[0]


def _numbers(actions: ListedActions) -> dict[int, int]:
    return {id: action.index for id, action in actions.by_id.items()}


# -- tables of which the program has few ----------------------------------------------------------


class ValueSetTable(KindTable):
    """A parser value set: entries without data. Keys are ternary; a field that the switch matches
    in another way takes a full mask."""

    words: ClassVar = {
        "exists": "table {name}: the entry exists",
        "missing": "table {name}: it has no such entry",
    }
    kind: Values

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.row(scope, key)

    def clear(self, scope: Scope) -> None:
        self.kind.clear()

    def place(self, key: Key) -> Member:
        found: list[Match] = []
        for f, known in zip(self.schema.keys, self.kind.value_set.fields, strict=True):
            match = key[f.name]
            assert match is not None
            value, mask = match
            if known.kind == "ternary":
                found.append(known.canonical((value, mask)))
            elif mask == known.full:
                found.append(known.canonical((value, known.width) if known.kind == "lpm"
                                             else (value, value) if known.kind == "range"
                                             else (value,)))  # fmt: skip
            elif not mask and known.kind != "exact":
                found.append(None)
            else:
                raise self.invalid(f"{f.name} matches exactly: give the mask {known.full:#x}")
        return tuple(found)

    def key(self, row: Member) -> Key:
        key: Key = {}
        for f, known, match in zip(self.schema.keys, self.kind.value_set.fields, row, strict=True):
            if match is None:
                key[f.name] = (0, 0)
            else:
                key[f.name] = (match[0], match[1] if known.kind == "ternary" else known.full)
        return key


class PortMetadataTable(KindTable):
    """The metadata of the ports of a pipeline's pipes, which its ingress parser reads before each
    packet. A port without an entry has zeros."""

    first_handle, resets = 1, True
    words: ClassVar = {
        "exists": "table {name}: port {0.number} has an entry",
        "missing": "table {name}: port {0.number} has no entry",
    }

    def __init__(self, schema: TableSchema, store: Store, facts: DeviceFacts, number: int) -> None:
        super().__init__(schema, store, store.port_metadata)
        self._size = facts.port_metadata_bytes
        pipes = facts.pipelines[number].pipes
        self._ports = [port for port in range(facts.ports) if port >> facts.pipe_bits in pipes]
        self._places = _places(facts.pipelines[number], schema, 8 * self._size)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        place = self.place(key)
        self.kind.write(place, **self.record(place, data))

    def rows(self, scope: Scope) -> list[int]:
        return [port for port in self.kind.existing() if port in self._ports]

    def place(self, key: Key) -> int:
        port = self.number(key)
        if port not in self._ports:
            raise self.invalid(f"port {port} is not of this pipeline's pipes")
        return port

    def record(self, place: int, data: Data) -> Record:
        whole = 0
        for name, shift, width in self._places:
            whole |= (int(data.values.get(name, 0)) & (1 << width) - 1) << shift
        return {"data": whole.to_bytes(self._size, "big")}

    def values(self, place: int, record: Record) -> Data:
        whole = int.from_bytes(record["data"], "big")
        types = {f.name: f.type.name for f in self.schema.data}
        values = {}
        for name, shift, width in self._places:
            number = whole >> shift & (1 << width) - 1
            values[name] = bool(number) if types[name] == "bool" else number
        return Data(None, values)


def _places(
    pipeline: PipelineFacts, schema: TableSchema, total: int
) -> Sequence[tuple[str, int, int]]:
    """Return the name, shift and width of each data field in the metadata's bits."""
    if pipeline.port_metadata is None:
        width = schema.data[0].type.width
        return [(schema.data[0].name, total - width, width)]
    known, at, places = {f.name for f in schema.data}, total, []
    for field in pipeline.port_metadata.fields:
        width = bit_width(field.type) or (field.type.width if isinstance(field.type, Bits) else 1)
        at -= width
        if field.name in known:
            places.append((field.name, at, width))
    return places
