"""The tables and digests of a program as BFRuntime has them, from its P4Info: what bf-rt.json says
of each, and how it is made on a running switch.

Names and fields are those that the Tofino back end of p4c gives them: a table's name begins with
the pipeline's, an action's and a field's does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradplane._p4runtime import ACTION_SCOPES, p4i
from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.arch.registry import device_facts
from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import (
    ActionSpec,
    DataField,
    FieldType,
    KeyField,
    LearnFilter,
    Schema,
    TableSchema,
    annotations_of,
    bits,
    field_type,
    index,
)
from gradplane.switch.bfruntime.snapshots import Snapshots, snapshot_tables
from gradplane.switch.bfruntime.tables import (
    arrays,
    cell_fields,
    hashes,
    parser_tables,
    profiles,
    snapshots,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.scoped import Make, Merge, ScopedTable
from gradplane.switch.control.names import FIELD_IDS, TableId, name_hash, table_id
from gradplane.switch.control.store import Store
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, bit_width
from gradplane.switch.p4runtime.catalog import Catalog, ListedActions
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.dynamic_hashes import DynamicHash
from gradplane.switch.runtime.pipe_scopes import Resources

_PORTS_OF_METADATA = 288
"""The entries of a chip's port metadata: 72 ports for each of four pipes."""
_METADATA_BITS = 128
"""The most bits of a port's metadata that an entry sets: Tofino 2's next 64 are always zero."""
MATCHES = {
    p4i.MatchField.EXACT: "Exact",
    p4i.MatchField.LPM: "LPM",
    p4i.MatchField.TERNARY: "Ternary",
    p4i.MatchField.RANGE: "Range",
    p4i.MatchField.OPTIONAL: "Optional",
}
OTHER_MATCHES = {"atcam_partition_index": "ATCAM"}
SCOPES = {
    p4i.ActionRef.TABLE_AND_DEFAULT: "TableAndDefault",
    p4i.ActionRef.TABLE_ONLY: "TableOnly",
    p4i.ActionRef.DEFAULT_ONLY: "DefaultOnly",
    ACTION_SCOPES["groupaction"]: "TableOnly",  # no word for it; as an entry's it is refused
}
_MASK = re.compile(r"&\s*(0x[0-9a-fA-F]+)")
_ERROR_BITS = 32  # of a key of errors, which has no width in P4Info
"""The mask in the name of a key."""
_ONE_BIT = "@idletime_precision(1)"
"""The annotation of tables whose entries are polled: they have no time of their own."""
U32 = FieldType("uint32")
MATCH_ACTION = "MatchAction_Direct"
INDIRECT = "MatchAction_Indirect"
SELECTED = "MatchAction_Indirect_Selector"


def bfrt_json(program: ir.Program) -> str:
    """Return bf-rt.json of a program, whose architecture has accepted it."""
    with internal_errors_reported(program.package.span):
        return json.dumps(ProgramSchema(Catalog(program)).schema.json(), indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Running:
    """A switch that runs a program."""

    store: Store
    snapshots: Snapshots | None

    def scoped(
        self, schema: TableSchema, name: str, make: Make, merge: Merge | None = None
    ) -> ScopedTable:
        """Return a table that pipes may have of their own."""
        return ScopedTable(schema, self.store, self.store.state.scopes, name, make, merge)


Row = tuple[TableSchema, Callable[[Running], ControlTable]]
"""A table: its schema, and how it is made on a switch."""


_LISTED = {
    "Lpf": 1, "Wred": 1, "Register": 2, "RegisterParam": 2, "DynHashAlgorithm": 3,
    "DynHashConfigure": 3, "DynHashCompute": 3, "PortMetadata": 4, "ParserValueSet": 5,
}  # fmt: skip
"""The places of kinds in messages that list all tables; bf-rt.json has the order of the chip's
compiler."""


def program_tables(
    program: ProgramSchema, store: Store, snapshots: Snapshots | None = None
) -> dict[int, ControlTable]:
    """Make the tables of a program on the store of the switch that runs it, by id."""
    on = Running(store, snapshots)
    rows = sorted(program.rows, key=lambda row: _LISTED.get(row[0].kind, 0))
    if snapshots is not None:
        rows += program.snapshot_rows
    return {schema.id: make(on) for schema, make in rows}


class ProgramSchema:
    """The schema of a program, and the names here of the program's objects.

    `names`: the table of a P4Info object, by its id; a selector's is that of its groups.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.info = catalog.p4info
        self.facts: DeviceFacts | None = device_facts(catalog.program)
        self.instances = {e.name: e for e in catalog.program.externs}
        self._users = arrays.users_of_parameters(catalog.program)
        self.rows = tuple(self._rows())
        self.snapshot_rows = tuple(self._snapshots()) if self.facts is not None else ()
        schemas = tuple(schema for schema, _ in (*self.rows, *self.snapshot_rows))
        self.schema = Schema(schemas, tuple(self._learn_filters()))

    # -- names ----------------------------------------------------------------------------------

    def table_name(self, name: str) -> str:
        """Return the name of a table or digest, from its name in P4Info."""
        return name if self.facts is None else self.facts.full_name(name)

    def own_name(self, name: str) -> str:
        """Return a name without its pipeline's."""
        return name if self.facts is None else self.facts.own_name(name)

    # -- tables ---------------------------------------------------------------------------------

    def _rows(self) -> Iterator[Row]:
        info = self.info
        yield from map(self._match_table, info.tables)
        for profile in info.action_profiles:
            yield from self._profile(profile)
        yield from map(self._counter, info.counters)
        yield from map(self._meter, info.meters)
        yield from map(self._register, info.registers)
        for kind in ("lpf", "wred"):
            named = (e for e in self.catalog.program.externs if e.kind == kind)
            yield from map(self._filter, named)
        for instance in hashes.called_hashes(self.catalog.program):
            yield from self._hash(instance)
        yield from map(self._value_set, info.value_sets)
        for at, pipeline in enumerate(self.facts.pipelines if self.facts else ()):
            yield self._port_metadata(at, pipeline)

    def _match_table(self, table: p4i.Table) -> Row:
        schema, info = self._match_schema(table), self.catalog.tables[table.preamble.id]
        meter = info.table.meter

        def make(on: Running) -> ControlTable:
            scopes = on.store.state.scopes

            def of(own: Resources) -> ControlTable:
                there = own.tables[info.name]

                def pipes() -> Sequence[int]:
                    homes = scopes.homes(info.name)
                    return [p for p in homes if scopes.pipes[p].tables[info.name] is there]

                adjustment = None if meter is None else own.adjustments[meter.name]
                masks = _masks(on.store, schema, info.table)
                numbers = _numbers(info.actions)
                return MatchActionTable(schema, on.store, there, numbers, masks, pipes, adjustment)

            return on.scoped(schema, info.name, of)

        return schema, make

    def _match_schema(self, table: p4i.Table) -> TableSchema:
        kind, depends_on, data = MATCH_ACTION, [], []
        actions: tuple[ActionSpec, ...] = ()
        profile = next((p for p in self.info.action_profiles
                        if p.preamble.id == table.implementation_id), None)  # fmt: skip
        if profile is None:
            actions = tuple(self.actions(table))
        elif profile.with_selector:
            kind, choice = SELECTED, "target"
            depends_on.append(table_id(TableId.ACTION_SELECTOR, profile.preamble.id))
            if profile.table_ids[0] == table.preamble.id:
                own = self.instances[profile.preamble.name]
                depends_on.append(profiles.members_id(profile, own, self.table_name))
            for name in ("ACTION_MEMBER_ID", "SELECTOR_GROUP_ID"):
                data.append(_own(name, U32, True, choice))
        else:
            kind = INDIRECT
            depends_on.append(table_id(TableId.ACTION_PROFILE, profile.preamble.id))
            data.append(_own("ACTION_MEMBER_ID", U32, True))
        source = self.catalog.tables[table.preamble.id].table
        operations, attributes = [], []
        if source.counter is not None:
            operations.append("SyncCounters")
            data += cell_fields.counter_fields(
                _spec(self.info.direct_counters, source.counter.name)
            )
        if source.meter is not None:
            attributes.append("MeterByteCountAdjust")
            data += cell_fields.meter_fields(_spec(self.info.direct_meters, source.meter.name))
        if source.register is not None:
            operations.append("SyncRegisters")
            last = max((f.id for a in actions for f in a.data), default=0)
            data += arrays.cells(source.register, self.own_name(source.register.name), last + 1)
        if source.filter is not None:
            fields = cell_fields.FILTER_FIELDS[source.filter.kind.removeprefix("direct_")]
            data += (replace(f, mandatory=False) for f in fields)
        attributes.append("EntryScope")
        if any(a.name == "dynamic_table_key_masks" for a in source.annotations):
            attributes.append("DynamicKeyMask")
        if table.is_const_table:
            attributes.append("ConstTable")
        if table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL:
            operations.append("UpdateHitState")
            attributes.append("IdleTimeout")
            states = FieldType("string", choices=("ENTRY_IDLE", "ENTRY_ACTIVE"))
            data.append(_own("ENTRY_HIT_STATE", states))
            if _ONE_BIT not in table.preamble.annotations:
                data.append(_own("ENTRY_TTL", FieldType("uint32", default=0)))
        keys = [self._key(f) for f in table.match_fields]
        if any(f.match in ("Ternary", "Range", "Optional") for f in keys):
            keys.append(KeyField(FIELD_IDS["MATCH_PRIORITY"], "$MATCH_PRIORITY", "Exact", U32))
        return TableSchema(
            self.table_name(table.preamble.name), table.preamble.id, kind, table.size, tuple(keys),
            tuple(data), actions, tuple(operations), tuple(attributes), tuple(depends_on),
            annotations_of(table.preamble), table.const_default_action_id != 0,
        )  # fmt: skip

    def _key(self, f: p4i.MatchField) -> KeyField:
        kind = OTHER_MATCHES.get(f.other_match_type) or MATCHES.get(f.match_type, "Exact")
        own = annotations_of(f)
        if re.search(r"\[\d+:\d+\]", f.name):
            own += (("isFieldSlice", "true"),)
        name = re.sub(r"\[(\d+)\]", r"$\1", self.own_name(f.name))
        if name.endswith(".$valid$"):
            name = name[:-1]
        error = not f.bitwidth and not f.type_name.name
        t = bits(_ERROR_BITS if error else f.bitwidth)
        if kind == "Exact" and name == f.name and (mask := _MASK.search(name)):
            t = replace(t, mask=mask[1])
        return KeyField(f.id, name, kind, t, annotations=own)

    def actions(self, table: p4i.Table) -> Iterator[ActionSpec]:
        known = {a.preamble.id: a for a in self.info.actions}
        for reference in table.action_refs:
            action = known.get(reference.id)
            if action is None:
                continue  # hidden
            data = tuple(
                DataField(
                    p.id, p.name, bits(p.bitwidth), mandatory=True, annotations=annotations_of(p)
                )
                for p in action.params
            )
            yield ActionSpec(
                action.preamble.id, self.own_name(action.preamble.name), data,
                SCOPES[reference.scope], annotations_of(reference),
            )  # fmt: skip

    def _offered(self, profile: p4i.ActionProfile) -> Iterator[ActionSpec]:
        """Yield the actions of the tables that use a profile."""
        for table in self.info.tables:
            if table.preamble.id in profile.table_ids:
                yield from self.actions(table)

    def _profile(self, profile: p4i.ActionProfile) -> Iterator[Row]:
        name = profile.preamble.name
        members, *rest = profiles.profile_tables(
            profile, self.instances[name], self._offered(profile), self.table_name
        )
        actions = _numbers(self.catalog.member_actions[profile.preamble.id])

        def of_members(on: Running) -> ControlTable:
            return on.scoped(members, name, lambda own: profiles.MemberTable(
                members, on.store, on.store.members(own.profiles[name]), actions
            ))  # fmt: skip

        def of_groups(on: Running) -> ScopedTable:
            return on.scoped(groups, name, lambda own: profiles.SelectorTable(
                groups, on.store, on.store.groups(own.profiles[name])
            ))  # fmt: skip

        yield members, of_members
        if rest:
            groups, probe = rest
            yield groups, of_groups
            yield probe, lambda on: profiles.ProbeTable(probe, on.store, of_groups(on).of)

    def _counter(self, counter: p4i.Counter) -> Row:
        name = counter.preamble.name
        schema = TableSchema(
            self.table_name(name), table_id(TableId.COUNTER, counter.preamble.id), "Counter",
            counter.size, (index("COUNTER_INDEX"),), cell_fields.counter_fields(counter.spec),
            operations=("Sync",), unlisted=("EntryScope",),
            annotations=annotations_of(counter.preamble),
        )  # fmt: skip
        return schema, lambda on: on.scoped(schema, name, lambda own: arrays.CounterTable(
            schema, on.store, on.store.counters(own.counters[name])
        ), arrays.sum_of_counts)  # fmt: skip

    def _meter(self, meter: p4i.Meter) -> Row:
        name = meter.preamble.name
        schema = TableSchema(
            self.table_name(name), table_id(TableId.METER, meter.preamble.id), "Meter", meter.size,
            (index("METER_INDEX"),), cell_fields.meter_fields(meter.spec),
            attributes=("MeterByteCountAdjust",), unlisted=("EntryScope",),
        )  # fmt: skip
        return schema, lambda on: on.scoped(schema, name, lambda own: arrays.MeterTable(
            schema, on.store, on.store.meters(own.meters[name]), own.adjustments[name]
        ), _first)  # fmt: skip

    def _register(self, register: p4i.Register) -> Row:
        known, facts = register.preamble.name, self.facts
        instance, name = self.instances[known], self.table_name(known)

        def pipes(on: Running) -> Mapping[int, Register]:
            own = on.store.state.pipe_registers(known)
            homes = range(1) if facts is None else facts.pipes_of(known)
            return {pipe: own[pipe % len(own)] for pipe in homes}

        if instance.type != arrays.PARAMETER:
            schema = arrays.register_table(register, instance, name, self.own_name(known))
            return schema, lambda on: arrays.RegisterTable(schema, on.store, instance, pipes(on))
        user = self._id_of_register(self._users.get(known))
        schema = arrays.parameter_table(register, instance, name, user)
        return schema, lambda on: arrays.RegisterParamTable(schema, on.store, pipes(on))

    def _id_of_register(self, name: str | None) -> int | None:
        """Return the id of a register's table, or of the one whose entries have it."""
        for register in self.info.registers:
            if register.preamble.name == name:
                return table_id(TableId.REGISTER, register.preamble.id)
        for number, found in self.catalog.tables.items():
            if found.table.register is not None and found.table.register.name == name:
                return number
        return None

    def _filter(self, instance: ir.ExternInstance) -> Row:
        name, kind, of_lpf = instance.name, instance.kind, instance.kind == "lpf"
        number = name_hash(self.table_name(name))
        schema = TableSchema(
            self.table_name(name), table_id(TableId.LPF if of_lpf else TableId.WRED, number),
            "Lpf" if of_lpf else "Wred", instance.number("size"),
            (index("LPF_INDEX" if of_lpf else "WRED_INDEX"),),
            cell_fields.FILTER_FIELDS[kind], unlisted=("EntryScope",),
        )  # fmt: skip
        return schema, lambda on: on.scoped(schema, name, lambda own: arrays.FilterTable(
            schema, on.store, on.store.filters(own.filters[name]), kind
        ), _first)  # fmt: skip

    def _hash(self, instance: ir.ExternInstance) -> Iterator[Row]:
        name, program = instance.name, self.catalog.program
        width, hashed = (
            bit_width(instance.type_args[0]) or 0,
            hashes.hashed_fields(program, instance),
        )
        algorithm, *rest = hashes.hash_tables(program, instance, self.table_name(name))

        def of(on: Running) -> tuple[Store, DynamicHash]:
            return on.store, on.store.state.hashes[name]

        yield algorithm, lambda on: hashes.HashAlgorithmTable(algorithm, *of(on), width)
        if rest:
            configure, compute = rest
            yield configure, lambda on: hashes.HashConfigurationTable(configure, *of(on), hashed)
            yield compute, lambda on: hashes.HashComputeTable(compute, *of(on), width, hashed)

    def _value_set(self, listed: p4i.ValueSet) -> Row:
        name = self.catalog.value_sets[listed.preamble.id].name
        number = table_id(TableId.VALUE_SET, listed.preamble.id)
        schema = TableSchema(
            self.table_name(listed.preamble.name), number, "ParserValueSet",
            listed.size, tuple(self._value_set_keys(listed)), attributes=("EntryScope",),
            annotations=annotations_of(listed.preamble),
        )  # fmt: skip
        return schema, lambda on: on.scoped(schema, name, lambda own: parser_tables.ValueSetTable(
            schema, on.store, on.store.values(own.value_sets[name])
        ))  # fmt: skip

    def _value_set_keys(self, listed: p4i.ValueSet) -> Iterator[KeyField]:
        for f in listed.match:
            yield KeyField(f.id, f.name or "f1", "Ternary", bits(f.bitwidth))

    def _port_metadata(self, at: int, pipeline: PipelineFacts) -> Row:
        facts = self.facts
        assert facts is not None
        t = pipeline.port_metadata
        whole = bits(min(8 * facts.port_metadata_bytes, _METADATA_BITS))
        data = [DataField(FIELD_IDS["PORT_METADATA_DEFAULT_FIELD"], "$DEFAULT_FIELD", whole)]
        if t is not None:
            fields = [f for f in t.fields if not any(a.name == "padding" for a in f.annotations)]
            data = [
                DataField(1 + i, f.name, field_type(f.type), mandatory=True)
                for i, f in enumerate(fields)
            ]
        port = f"{pipeline.port_key}.ingress_port"
        name = f"{pipeline.name}.{pipeline.ingress_parser}.$PORT_METADATA"
        name = name.removeprefix(facts.label)
        number = table_id(TableId.PORT_METADATA, name_hash(name))
        schema = TableSchema(
            name, number, "PortMetadata", _PORTS_OF_METADATA,
            (KeyField(FIELD_IDS["PORT_METADATA_PORT"], port, "Exact", bits(9), True),),
            tuple(data),
        )  # fmt: skip
        return schema, lambda on: parser_tables.PortMetadataTable(schema, on.store, facts, at)

    def _snapshots(self) -> Iterator[Row]:
        facts = self.facts
        assert facts is not None
        *schemas, counters = snapshot_tables(facts)
        rest = iter(schemas)
        for pipeline in facts.pipelines:
            yield _snapshot(next(rest), snapshots.SnapshotConfigTable, pipeline.name)
            for gress in pipeline.controls:
                where = pipeline.name, gress
                yield _snapshot(next(rest), snapshots.SnapshotTriggerTable, *where)
                yield _snapshot(next(rest), snapshots.SnapshotDataTable, *where, self.table_name)
                yield _snapshot(next(rest), snapshots.SnapshotLivenessTable, *where)
        yield _snapshot(counters, snapshots.DebugCounterTable, self.table_name, facts.label)

    # -- digests --------------------------------------------------------------------------------

    def _learn_filters(self) -> Iterator[LearnFilter]:
        for digest in self.info.digests:
            data = self.catalog.digests[digest.preamble.id].data
            parts = data.fields if isinstance(data, Fields) else ()
            named = [(f.name, f.type) for f in parts] or [("f1", data or Bits(1))]
            fields = tuple(
                DataField(1 + i, name, field_type(t)) for i, (name, t) in enumerate(named)
            )
            name, about = digest.preamble.name, annotations_of(digest.preamble)
            number = table_id(TableId.DIGEST, digest.preamble.id)
            yield LearnFilter(self.table_name(name), number, fields, about)


def _own(name: str, type: FieldType, mandatory: bool = False, choice: str = "") -> DataField:
    """Return a field that BFRuntime adds to a program's."""
    return DataField(FIELD_IDS[name], f"${name}", type, mandatory, choice=choice)


def _snapshot(schema: TableSchema, table: Callable[..., ControlTable], *about: object) -> Row:
    """Return the row of a table of snapshots or debug counters, which `about` tells apart."""
    return schema, lambda on: table(schema, on.store, on.snapshots, *about)


def _first(found: Sequence[Data]) -> Data:
    return found[0]


def _numbers(actions: ListedActions) -> dict[int, int]:
    return {id: action.index for id, action in actions.by_id.items()}


def _masks(store: Store, schema: TableSchema, table: ir.Table) -> dict[str, list[Register]]:
    """Return the registers of the keys that have a mask, by the names of the key fields."""
    keys = (key for key in table.keys if key.match_kind != "selector")
    return {
        field.name: store.state.pipe_registers(key.mask.name)
        for field, key in zip(schema.keys, keys, strict=False) if key.mask is not None
    }  # fmt: skip


def _spec(listed: Iterable[Any], name: str) -> Any:
    return next(x.spec for x in listed if x.preamble.name == name)
