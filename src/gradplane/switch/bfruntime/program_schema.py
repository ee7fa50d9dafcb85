"""bf-rt.json of a program: its tables and digests as BFRuntime has them, from its P4Info.

Names and fields are those that the Tofino back end of p4c gives them: a table's name begins with
the pipeline's, an action's and a field's does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from finsy.proto import p4i

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.arch.registry import device_facts
from gradplane.switch.bfruntime.object_schemas import (
    LPF_FIELDS,
    PARAMETER,
    U32,
    WRED_FIELDS,
    annotations_of,
    cells,
    counter_fields,
    field_type,
    hash_tables,
    index,
    meter_fields,
    parameter_table,
    profile_tables,
    register_table,
    singleton,
    snapshot_tables,
    users_of_parameters,
)
from gradplane.switch.bfruntime.schema import (
    ActionSpec,
    DataField,
    FieldType,
    KeyField,
    LearnFilter,
    Schema,
    TableSchema,
    bits,
)
from gradplane.switch.bfruntime.tables.hashes import called_hashes
from gradplane.switch.control.names import FieldId, TableId, table_id
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields
from gradplane.switch.p4runtime.catalog import Catalog

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
}
_MASK = re.compile(r"&\s*(0x[0-9a-fA-F]+)")
_ERROR_BITS = 32  # of a key of errors, which has no width in P4Info
"""The mask in the name of a key."""
_ONE_BIT = "@idletime_precision(1)"
"""The annotation of tables whose entries are polled: they have no time of their own."""
MATCH_ACTION = "MatchAction_Direct"
INDIRECT = "MatchAction_Indirect"
SELECTED = "MatchAction_Indirect_Selector"


def bfrt_json(program: ir.Program) -> str:
    """Return bf-rt.json of a program, whose architecture has accepted it."""
    with internal_errors_reported(program.package.span):
        return json.dumps(ProgramSchema(Catalog(program)).schema.json(), indent=2) + "\n"


class ProgramSchema:
    """The schema of a program, and the names here of the program's objects.

    `names`: the table of a P4Info object, by its id; a selector's is that of its groups.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.info = catalog.p4info
        self.facts: DeviceFacts | None = device_facts(catalog.program)
        self.instances = {e.name: e for e in catalog.program.externs}
        self.schema = Schema(tuple(self._tables()), tuple(self._learn_filters()))

    # -- names ----------------------------------------------------------------------------------

    def table_name(self, name: str) -> str:
        """Return the name of a table or digest, from its name in P4Info."""
        if self.facts is None or len(self.facts.pipelines) != 1:
            return name
        return f"{self.facts.pipelines[0].name}.{name}"

    def own_name(self, name: str) -> str:
        """Return a name without its pipeline's."""
        if self.facts is not None and len(self.facts.pipelines) > 1:
            for pipeline in self.facts.pipelines:
                name = name.removeprefix(f"{pipeline.name}.")
        return name

    # -- tables ---------------------------------------------------------------------------------

    def _tables(self) -> Iterator[TableSchema]:
        for table in self.info.tables:
            yield self._match_table(table)
        for profile in self.info.action_profiles:
            instance = self.instances[profile.preamble.name]
            yield from profile_tables(profile, instance, self._offered(profile), self.table_name)
        for counter in self.info.counters:
            yield TableSchema(
                self.table_name(counter.preamble.name),
                table_id(TableId.COUNTER, counter.preamble.id), "Counter", counter.size,
                (index(FieldId.COUNTER_INDEX),), counter_fields(counter.spec),
                operations=("Sync",), unlisted=("EntryScope",),
                annotations=annotations_of(counter.preamble),
            )  # fmt: skip
        for meter in self.info.meters:
            yield TableSchema(
                self.table_name(meter.preamble.name),
                table_id(TableId.METER, meter.preamble.id), "Meter", meter.size,
                (index(FieldId.METER_INDEX),), meter_fields(meter.spec),
                attributes=("MeterByteCountAdjust",), unlisted=("EntryScope",),
            )  # fmt: skip
        users = users_of_parameters(self.catalog.program)
        for register in self.info.registers:
            yield self._register(register, users)
        for kind in ("lpf", "wred"):
            named = (e for e in self.catalog.program.externs if e.kind == kind)
            for at, instance in enumerate(named):
                yield self._filter(instance, at)
        for at, instance in enumerate(called_hashes(self.catalog.program), 1):
            name = self.table_name(instance.name)
            yield from hash_tables(self.catalog.program, instance, name, at)
        for listed in self.info.value_sets:
            yield TableSchema(
                self.table_name(listed.preamble.name), listed.preamble.id, "ParserValueSet",
                listed.size, tuple(self._value_set_keys(listed)), attributes=("EntryScope",),
                annotations=annotations_of(listed.preamble),
            )  # fmt: skip
        for at, pipeline in enumerate(self.facts.pipelines if self.facts else ()):
            yield self._port_metadata(at, pipeline)
        if self.facts is not None:
            yield from snapshot_tables(self.facts)

    def _match_table(self, table: p4i.Table) -> TableSchema:
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
                depends_on.append(table_id(TableId.ACTION_PROFILE, profile.preamble.id))
            for field in (FieldId.ACTION_MEMBER_ID, FieldId.SELECTOR_GROUP_ID):
                data.append(DataField(field, f"${field.name}", U32, mandatory=True, choice=choice))
        else:
            kind = INDIRECT
            depends_on.append(table_id(TableId.ACTION_PROFILE, profile.preamble.id))
            data.append(singleton(FieldId.ACTION_MEMBER_ID, "ACTION_MEMBER_ID", U32, True))
        source = self.catalog.tables[table.preamble.id].table
        operations, attributes = [], []
        if source.counter is not None:
            operations.append("SyncCounters")
            data += counter_fields(_spec(self.info.direct_counters, source.counter.name))
        if source.meter is not None:
            attributes.append("MeterByteCountAdjust")
            data += meter_fields(_spec(self.info.direct_meters, source.meter.name))
        if source.register is not None:
            operations.append("SyncRegisters")
            last = max((f.id for a in actions for f in a.data), default=0)
            data += cells(source.register, self.own_name(source.register.name), last + 1)
        if source.filter is not None:
            fields = LPF_FIELDS if source.filter.kind == "direct_lpf" else WRED_FIELDS
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
            data.append(singleton(FieldId.ENTRY_HIT_STATE, "ENTRY_HIT_STATE", states))
            if _ONE_BIT not in table.preamble.annotations:
                never = FieldType("uint32", default=0)
                data.append(singleton(FieldId.ENTRY_TTL, "ENTRY_TTL", never))
        keys = [self._key(f) for f in table.match_fields]
        if any(f.match in ("Ternary", "Range", "Optional") for f in keys):
            keys.append(KeyField(FieldId.MATCH_PRIORITY, "$MATCH_PRIORITY", "Exact", U32))
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

    def _register(self, register: p4i.Register, users: Mapping[str, str]) -> TableSchema:
        """Return the table of a register or a parameter. users: the registers of parameters."""
        known = register.preamble.name
        instance, name = self.instances[known], self.table_name(known)
        if instance.type != PARAMETER:
            return register_table(register, instance, name, self.own_name(known))
        return parameter_table(register, instance, name, self._id_of_register(users.get(known)))

    def _id_of_register(self, name: str | None) -> int | None:
        """Return the id of a register's table, or of the one whose entries have it."""
        for register in self.info.registers:
            if register.preamble.name == name:
                return table_id(TableId.REGISTER, register.preamble.id)
        for number, found in self.catalog.tables.items():
            if found.table.register is not None and found.table.register.name == name:
                return number
        return None

    def _filter(self, instance: ir.ExternInstance, at: int) -> TableSchema:
        of_lpf = instance.kind == "lpf"
        return TableSchema(
            self.table_name(instance.name), filter_id(instance.kind, at),
            "Lpf" if of_lpf else "Wred", instance.number("size"),
            (index(FieldId.LPF_INDEX if of_lpf else FieldId.WRED_INDEX),),
            LPF_FIELDS if of_lpf else WRED_FIELDS, unlisted=("EntryScope",),
        )  # fmt: skip

    def _value_set_keys(self, listed: p4i.ValueSet) -> Iterator[KeyField]:
        for f in listed.match:
            yield KeyField(f.id, f.name or "f1", "Ternary", bits(f.bitwidth))

    def _port_metadata(self, at: int, pipeline: PipelineFacts) -> TableSchema:
        assert self.facts is not None
        t = pipeline.port_metadata
        data = [DataField(
            FieldId.PORT_METADATA_DEFAULT_FIELD, "$DEFAULT_FIELD",
            bits(min(8 * self.facts.port_metadata_bytes, _METADATA_BITS)),
        )]  # fmt: skip
        if t is not None:
            fields = [f for f in t.fields if not any(a.name == "padding" for a in f.annotations)]
            data = [
                DataField(1 + i, f.name, field_type(f.type), mandatory=True)
                for i, f in enumerate(fields)
            ]
        key = KeyField(
            FieldId.PORT_METADATA_PORT, f"{pipeline.port_key}.ingress_port", "Exact", bits(9), True
        )
        return TableSchema(
            f"{pipeline.name}.{pipeline.ingress_parser}.$PORT_METADATA",
            table_id(TableId.PORT_METADATA, at), "PortMetadata", _PORTS_OF_METADATA, (key,),
            tuple(data),
        )  # fmt: skip

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


def filter_id(kind: str, at: int) -> int:
    """Return the id of the table of a program's filter, by its place among those of its kind."""
    return table_id(TableId.LPF if kind == "lpf" else TableId.WRED, at)


def _spec(listed: Iterable[Any], name: str) -> Any:
    return next(x.spec for x in listed if x.preamble.name == name)
