"""bf-rt.json of a program: its tables and digests as BFRuntime has them, from its P4Info.

Names and fields are those that the Tofino back end of p4c gives them: a table's name begins with
the pipeline's, an action's and a field's does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from finsy.proto import p4i

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts, device_facts
from gradplane.switch.bfruntime.hash_schema import hash_tables
from gradplane.switch.bfruntime.hashed_fields import called_hashes
from gradplane.switch.bfruntime.identifiers import FieldId, TableId, table_id
from gradplane.switch.bfruntime.schema import (
    REGISTER_DATA,
    ActionSpec,
    Annotations,
    DataField,
    FieldType,
    KeyField,
    LearnFilter,
    Schema,
    TableSchema,
    bits,
)
from gradplane.switch.bfruntime.snapshot_schema import snapshot_tables
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Bits,
    Bool,
    Fields,
    NewType,
    SerEnum,
    Type,
    bit_width,
)
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.p4info import control_plane_types

U32, U64 = FieldType("uint32"), FieldType("uint64")
BOOL, FLOAT = FieldType("bool"), FieldType("float")
UNLIMITED = (1 << 64) - 1
"""The default of a meter's rates: every packet is green."""

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
MATCH_ACTION = "MatchAction_Direct"
INDIRECT = "MatchAction_Indirect"
SELECTED = "MatchAction_Indirect_Selector"


def bfrt_json(program: ir.Program) -> str:
    """Return bf-rt.json of a program, whose architecture has accepted it."""
    with internal_errors_reported(program.package.span):
        return json.dumps(ProgramSchema(Catalog(program)).schema.json(), indent=2) + "\n"


def singleton(id: int, name: str, type: FieldType, mandatory: bool = False) -> DataField:
    return DataField(id, f"${name}", type, mandatory)


LPF_FIELDS = (
    singleton(
        FieldId.LPF_SPEC_TYPE,
        "LPF_SPEC_TYPE",
        FieldType("string", choices=("RATE", "SAMPLE")),
        True,
    ),
    singleton(
        FieldId.LPF_SPEC_GAIN_TIME_CONSTANT_NS, "LPF_SPEC_GAIN_TIME_CONSTANT_NS", FLOAT, True
    ),
    singleton(
        FieldId.LPF_SPEC_DECAY_TIME_CONSTANT_NS, "LPF_SPEC_DECAY_TIME_CONSTANT_NS", FLOAT, True
    ),
    singleton(FieldId.LPF_SPEC_OUT_SCALE_DOWN_FACTOR, "LPF_SPEC_OUT_SCALE_DOWN_FACTOR", U32, True),
)
WRED_FIELDS = (
    singleton(FieldId.WRED_SPEC_TIME_CONSTANT_NS, "WRED_SPEC_TIME_CONSTANT_NS", FLOAT, True),
    singleton(FieldId.WRED_SPEC_MIN_THRESH_CELLS, "WRED_SPEC_MIN_THRESH_CELLS", U32, True),
    singleton(FieldId.WRED_SPEC_MAX_THRESH_CELLS, "WRED_SPEC_MAX_THRESH_CELLS", U32, True),
    singleton(FieldId.WRED_SPEC_MAX_PROBABILITY, "WRED_SPEC_MAX_PROBABILITY", FLOAT, True),
)


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
            yield from self._profile(profile)
        for counter in self.info.counters:
            yield TableSchema(
                self.table_name(counter.preamble.name), counter.preamble.id, "Counter",
                counter.size, (index(FieldId.COUNTER_INDEX),), counter_fields(counter.spec),
                operations=("Sync",), attributes=("EntryScope",),
                annotations=annotations_of(counter.preamble),
            )  # fmt: skip
        for meter in self.info.meters:
            yield TableSchema(
                self.table_name(meter.preamble.name), meter.preamble.id, "Meter", meter.size,
                (index(FieldId.METER_INDEX),), meter_fields(meter.spec),
                attributes=("MeterByteCountAdjust", "EntryScope"),
                annotations=annotations_of(meter.preamble),
            )  # fmt: skip
        for register in self.info.registers:
            yield self._register(register)
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
            data += self._cells(source.register, last + 1)
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
            data.append(singleton(FieldId.ENTRY_TTL, "ENTRY_TTL", FieldType("uint32", default=0)))
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
        return KeyField(f.id, name, kind, bits(f.bitwidth), annotations=own)

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

    def _profile(self, profile: p4i.ActionProfile) -> Iterator[TableSchema]:
        tables = {t.preamble.id: t for t in self.info.tables}
        users = [tables[number] for number in profile.table_ids if number in tables]
        specs: dict[int, ActionSpec] = {}
        for user in users:
            specs.update((a.id, a) for a in self.actions(user) if a.scope != "DefaultOnly")
        name = profile.preamble.name
        number = table_id(TableId.ACTION_PROFILE, profile.preamble.id)
        members, groups = self.profile_names(name) if profile.with_selector else (name, "")
        member_key = KeyField(FieldId.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", "Exact", U32, True)
        yield TableSchema(
            self.table_name(members), number, "Action", profile.size, (member_key,), (),
            tuple(specs.values()), attributes=("EntryScope",),
            annotations=annotations_of(profile.preamble),
        )  # fmt: skip
        if not profile.with_selector:
            return
        selector = table_id(TableId.ACTION_SELECTOR, profile.preamble.id)
        yield TableSchema(
            self.table_name(groups), selector, "Selector", self._groups(name, profile.size),
            (KeyField(FieldId.SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", "Exact", U32, True),),
            selector_fields(profile.max_group_size), depends_on=(number,),
            attributes=("EntryScope",), annotations=annotations_of(profile.preamble),
        )  # fmt: skip
        yield TableSchema(
            self.table_name(groups) + "_get_member",
            table_id(TableId.SELECTOR_GET_MEMBER, profile.preamble.id), "SelectorGetMember", 1,
            (KeyField(FieldId.SELECTOR_GROUP, "$SELECTOR_GROUP_ID", "Exact", U64, True),
             KeyField(FieldId.HASH_VALUE, "hash_value", "Exact", U64, True)),
            (DataField(FieldId.SELECTOR_MEMBER_ID, "$ACTION_MEMBER_ID", U64),),
            depends_on=(selector,),
        )  # fmt: skip

    def profile_names(self, selector: str) -> tuple[str, str]:
        """Return the names of a selector's members and groups.

        Members are those of the ActionProfile that it is made with; without one, they have the
        selector's name, and the groups' ends in _sel.
        """
        for argument in self.instances[selector].args:
            if isinstance(argument, ir.ExternInstance) and argument.kind == "action_profile":
                return argument.name, selector
        return selector, f"{selector}_sel"

    def _groups(self, selector: str, members: int) -> int:
        """Return how many groups a selector has: its constructor's last argument or its size."""
        first, *rest = self.instances[selector].args
        if not isinstance(first, ir.ExternInstance) or not isinstance(rest[-1], int):
            return members
        return rest[-1]

    def _register(self, register: p4i.Register) -> TableSchema:
        instance = self.instances[register.preamble.name]
        name, number = self.table_name(register.preamble.name), register.preamble.id
        about = annotations_of(register.preamble)
        if instance.type == "RegisterParam":
            width = bit_width(instance.type_args[0]) or 0
            value = DataField(1, "value", bits(width, instance.number("initial", 0)), True)
            number = table_id(TableId.REGISTER_PARAM, number)
            return TableSchema(name, number, "RegisterParam", 1, (), (value,), annotations=about)
        return TableSchema(
            name, number, "Register", register.size, (index(FieldId.REGISTER_INDEX),),
            tuple(self._cells(instance, 1)), operations=("Sync",), annotations=about,
        )  # fmt: skip

    def _cells(self, register: ir.ExternInstance, first: int) -> Iterator[DataField]:
        cell = register.cell or control_plane_types(register)[0]
        name = self.own_name(register.name)
        parts = (
            [(f.name, f.type) for f in cell.fields] if isinstance(cell, Fields) else [("f1", cell)]
        )
        for at, (part, t) in enumerate(parts):
            yield DataField(
                first + at, f"{name}.{part}", field_type(t), mandatory=True,
                annotations=(REGISTER_DATA,),
            )  # fmt: skip

    def _filter(self, instance: ir.ExternInstance, at: int) -> TableSchema:
        of_lpf = instance.kind == "lpf"
        return TableSchema(
            self.table_name(instance.name), filter_id(instance.kind, at),
            "Lpf" if of_lpf else "Wred", instance.number("size"),
            (index(FieldId.LPF_INDEX if of_lpf else FieldId.WRED_INDEX),),
            LPF_FIELDS if of_lpf else WRED_FIELDS, attributes=("EntryScope",),
        )  # fmt: skip

    def _value_set_keys(self, listed: p4i.ValueSet) -> Iterator[KeyField]:
        for f in listed.match:
            yield KeyField(f.id, f.name or "f1", "Ternary", bits(f.bitwidth))

    def _port_metadata(self, at: int, pipeline: PipelineFacts) -> TableSchema:
        assert self.facts is not None
        t = pipeline.port_metadata
        data = [DataField(
            FieldId.PORT_METADATA_DEFAULT_FIELD, "$DEFAULT_FIELD",
            bits(8 * self.facts.port_metadata_bytes),
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
            table_id(TableId.PORT_METADATA, at), "PortMetadata", self.facts.ports, (key,),
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
            yield LearnFilter(self.table_name(name), digest.preamble.id, fields, about)


def filter_id(kind: str, at: int) -> int:
    """Return the id of the table of a program's filter, by its place among those of its kind."""
    return table_id(TableId.LPF if kind == "lpf" else TableId.WRED, at)


def index(field: FieldId) -> KeyField:
    """Return the key of an array."""
    return KeyField(field, f"${field.name}", "Exact", U32, mandatory=True)


def counter_fields(spec: p4i.CounterSpec) -> tuple[DataField, ...]:
    """Return the fields of a counter: bytes, packets or both."""
    zero, found = FieldType("uint64", default=0), []
    if spec.unit != p4i.CounterSpec.PACKETS:
        found.append(singleton(FieldId.COUNTER_SPEC_BYTES, "COUNTER_SPEC_BYTES", zero))
    if spec.unit != p4i.CounterSpec.BYTES:
        found.append(singleton(FieldId.COUNTER_SPEC_PKTS, "COUNTER_SPEC_PKTS", zero))
    return tuple(found)


def meter_fields(spec: p4i.MeterSpec) -> tuple[DataField, ...]:
    """Return the fields of a meter: rates in kbit/s and bursts in kbit, or packets."""
    rate, burst = ("PPS", "PKTS") if spec.unit == p4i.MeterSpec.PACKETS else ("KBPS", "KBITS")
    names = [f"METER_SPEC_{x}_{u}" for x, u in
             (("CIR", rate), ("PIR", rate), ("CBS", burst), ("PBS", burst))]  # fmt: skip
    t = FieldType("uint64", default=UNLIMITED)
    return tuple(singleton(FieldId[name], name, t) for name in names)


def selector_fields(most: int) -> tuple[DataField, ...]:
    """Return the fields of a selector's group; most: members of a group."""
    return (
        DataField(FieldId.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", U32, repeated=True),
        DataField(FieldId.SELECTOR_MEMBER_STATUS, "$ACTION_MEMBER_STATUS", BOOL, repeated=True),
        singleton(
            FieldId.SELECTOR_MAX_GROUP_SIZE, "MAX_GROUP_SIZE", FieldType("uint32", default=most)
        ),
        singleton(FieldId.ADT_OFFSET, "ADT_OFFSET", U32),
    )


def field_type(t: Type) -> FieldType:
    """Return the type of a register's or digest's value."""
    match t:
        case Bool():
            return FieldType("bool")
        case NewType(underlying=inner) | SerEnum(underlying=inner):
            return field_type(inner)
    return bits(bit_width(t) or 0)


def annotations_of(message: object) -> Annotations:
    """Return the annotations of a P4Info object: name and value."""
    found = []
    for text in getattr(message, "annotations", ()):
        name, _, rest = text.partition("(")
        found.append((name, rest.removesuffix(")")))
    return tuple(found)


def _spec(listed: Iterable[Any], name: str) -> Any:
    return next(x.spec for x in listed if x.preamble.name == name)
