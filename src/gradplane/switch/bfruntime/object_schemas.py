"""The tables of what a program declares and a chip adds to it, with the names and fields that the
Tofino back end of p4c gives them: action profiles and selectors, registers and their parameters,
hashes, snapshots and debug counters; and the data fields of counters, meters and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from finsy.proto import p4i

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.schema import (
    REGISTER_DATA,
    ActionSpec,
    Annotations,
    DataField,
    FieldType,
    KeyField,
    TableSchema,
    bits,
)
from gradplane.switch.bfruntime.snapshots import SnapshotField, snapshot_fields
from gradplane.switch.bfruntime.tables.hashes import (
    HASH_VALUE,
    NAMES,
    PRE_DEFINED,
    RANDOM,
    USER_DEFINED,
    HashedField,
    configured_fields,
    hashed_fields,
)
from gradplane.switch.control.names import FieldId, TableId, table_id
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bool, Fields, NewType, SerEnum, Type, bit_width
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.p4runtime.p4info import control_plane_types

U32, U64 = FieldType("uint32"), FieldType("uint64")
BOOL, FLOAT = FieldType("bool"), FieldType("float")
UNLIMITED = (1 << 64) - 1
"""The default of a meter's rates: every packet is green."""

_NO_OFFSET = 0xDEADBEEF
"""The default of $ADT_OFFSET; a client that reads it knows that the field was not set."""


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
        singleton(FieldId.ADT_OFFSET, "ADT_OFFSET", FieldType("uint32", default=_NO_OFFSET)),
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
    """Return the annotations of a P4Info object, each with its arguments as a name, as the chip's
    compiler writes them."""
    return tuple((text, "") for text in getattr(message, "annotations", ()))


# -- action profiles ------------------------------------------------------------------------------


def profile_tables(
    profile: p4i.ActionProfile,
    instance: ir.ExternInstance,
    actions: Iterable[ActionSpec],
    table_name: Callable[[str], str],
) -> Iterator[TableSchema]:
    """Yield the table of a profile's members, and those of its groups if it is a selector.

    actions: those of the tables that use it. table_name: gives a table's name here."""
    specs = {a.id: a for a in actions if a.scope != "DefaultOnly"}
    number = table_id(TableId.ACTION_PROFILE, profile.preamble.id)
    members, groups = profile.preamble.name, ""
    if profile.with_selector:
        members, groups = profile_names(instance)
    about = annotations_of(profile.preamble)
    yield TableSchema(
        table_name(members), number, "Action", profile.size,
        (KeyField(FieldId.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", "Exact", U32, True),), (),
        tuple(specs.values()), unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    if not groups:
        return
    selector = table_id(TableId.ACTION_SELECTOR, profile.preamble.id)
    yield TableSchema(
        table_name(groups), selector, "Selector", _groups(instance, profile.size),
        (KeyField(FieldId.SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", "Exact", U32, True),),
        selector_fields(profile.max_group_size), depends_on=(number,),
        unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    yield TableSchema(
        table_name(groups) + "_get_member",
        table_id(TableId.SELECTOR_GET_MEMBER, profile.preamble.id), "SelectorGetMember", 1,
        (KeyField(FieldId.SELECTOR_GROUP, "$SELECTOR_GROUP_ID", "Exact", U64, True),
         KeyField(FieldId.HASH_VALUE, "hash_value", "Exact", U64, True)),
        (DataField(FieldId.SELECTOR_MEMBER_ID, "$ACTION_MEMBER_ID", U64),),
        depends_on=(selector,), annotations=about,
    )  # fmt: skip


def profile_names(selector: ir.ExternInstance) -> tuple[str, str]:
    """Return the names of a selector's members and groups.

    Members are those of the ActionProfile that it is made with; without one, they have the
    selector's name, and the groups' ends in _sel.
    """
    for argument in selector.args:
        if isinstance(argument, ir.ExternInstance) and argument.kind == "action_profile":
            return argument.name, selector.name
    return selector.name, f"{selector.name}_sel"


def _groups(selector: ir.ExternInstance, members: int) -> int:
    """Return how many groups a selector has: its constructor's last argument or its size."""
    first, *rest = selector.args
    if not isinstance(first, ir.ExternInstance) or not isinstance(rest[-1], int):
        return members
    return rest[-1]


# -- registers ------------------------------------------------------------------------------------


PARAMETER = "RegisterParam"


def register_table(
    register: p4i.Register, instance: ir.ExternInstance, name: str, own_name: str
) -> TableSchema:
    """Return the table of a register. own_name: the register's, for its fields."""
    return TableSchema(
        name, table_id(TableId.REGISTER, register.preamble.id), "Register", register.size,
        (index(FieldId.REGISTER_INDEX),),
        tuple(cells(instance, own_name, 1)), operations=("Sync",), unlisted=("EntryScope",),
    )  # fmt: skip


def parameter_table(
    parameter: p4i.Register, instance: ir.ExternInstance, name: str, user: int | None
) -> TableSchema:
    """Return the table of a register's parameter. user: the id of the register's table."""
    width = bit_width(instance.type_args[0]) or 0
    value = DataField(1, "value", bits(width, instance.number("initial", 0)), True)
    return TableSchema(
        name, table_id(TableId.REGISTER_PARAM, parameter.preamble.id), PARAMETER, 1, (), (value,),
        depends_on=() if user is None else (user,), annotations=annotations_of(parameter.preamble),
    )  # fmt: skip


def cells(register: ir.ExternInstance, own_name: str, first: int) -> Iterator[DataField]:
    """Yield the fields of a register's cell; first: the id of the first one."""
    cell = register.cell or control_plane_types(register)[0]
    parts = [(f.name, f.type) for f in cell.fields] if isinstance(cell, Fields) else [("f1", cell)]
    for at, (part, t) in enumerate(parts):
        yield DataField(
            first + at, f"{own_name}.{part}", field_type(t), mandatory=True,
            annotations=(REGISTER_DATA,),
        )  # fmt: skip


def users_of_parameters(program: ir.Program) -> Mapping[str, str]:
    """Return, by the name of each parameter that a register action reads, the register's name."""
    found = {}
    for _, block in blocks(program.package):
        for stmt in statements(block):
            if not isinstance(stmt, ir.Block) or stmt.access is None:
                continue
            register = stmt.access.args[0]
            if not isinstance(register, ir.ExternInstance):
                continue
            for inner in nested(stmt.body):
                read = inner.instance if isinstance(inner, ir.CallExtern) else None
                if read is not None and read.type == PARAMETER:
                    found[read.name] = register.name
    return found


# -- hashes ---------------------------------------------------------------------------------------


_NUMBER, _OFF = FieldType("uint64"), FieldType("bool", default=False)


def hash_tables(
    program: ir.Program, instance: ir.ExternInstance, name: str, number: int
) -> Iterator[TableSchema]:
    """Yield the tables of a hash. name: their names' first part. number: the hash's, from 1."""
    fields = hashed_fields(program, instance)
    configured = (table_id(TableId.HASH_CONFIGURE, number),) if fields else ()
    yield _algorithm(name, number, configured)
    if fields:
        yield _configuration(name, number, fields)
        yield _computation(name, number, fields, bit_width(instance.type_args[0]) or 0)


def _algorithm(name: str, number: int, depends_on: tuple[int, ...]) -> TableSchema:
    algorithm = FieldType("string", default=RANDOM, choices=NAMES)
    return TableSchema(
        f"{name}.algorithm", table_id(TableId.HASH_ALGORITHM, number), "DynHashAlgorithm", 1, (), (
            DataField(FieldId.HASH_ALGORITHM_ROTATE, "rotate", FieldType("uint32", default=0)),
            DataField(FieldId.HASH_ALGORITHM_SEED, "seed", FieldType("uint32", default=0)),
            DataField(FieldId.HASH_ALGORITHM_MSB, "msb", _OFF),
            DataField(FieldId.HASH_ALGORITHM_EXTEND, "extend", _OFF),
        ), (
            ActionSpec(FieldId.HASH_ALGORITHM_PRE_DEFINED, PRE_DEFINED,
                       (DataField(1, "algorithm_name", algorithm),)),
            ActionSpec(FieldId.HASH_ALGORITHM_USER_DEFINED, USER_DEFINED, (
                DataField(1, "reverse", _OFF),
                DataField(2, "polynomial", _NUMBER, mandatory=True),
                DataField(3, "init", FieldType("uint64", default=0)),
                DataField(4, "final_xor", FieldType("uint64", default=0)),
                DataField(5, "hash_bit_width", _NUMBER),
            )),
        ), depends_on=depends_on,
    )  # fmt: skip


def _configuration(name: str, number: int, fields: Sequence[HashedField]) -> TableSchema:
    data = tuple(
        DataField(i, f.name, _NUMBER, repeated=True, container=_span_fields(f.width),
                  annotations=(("bfrt_p4_constant", ""),) if f.value is not None else ())
        for i, f in enumerate(configured_fields(fields), 1)
    )  # fmt: skip
    return TableSchema(
        f"{name}.configure", table_id(TableId.HASH_CONFIGURE, number), "DynHashConfigure", 1, (),
        data,
    )  # fmt: skip


def _span_fields(width: int) -> tuple[DataField, ...]:
    """Return the fields that choose a part of a hashed field of so many bits, and its place."""
    zero, whole = (FieldType("uint64", default=n) for n in (0, width))
    return (
        DataField(FieldId.HASH_CONFIGURE_START_BIT, "start_bit", zero),
        DataField(FieldId.HASH_CONFIGURE_LENGTH, "length", whole),
        DataField(FieldId.HASH_CONFIGURE_ORDER, "order", _NUMBER, mandatory=True),
    )


def _computation(name: str, number: int, fields: Sequence[HashedField], width: int) -> TableSchema:
    keys = (f for f in fields if f.value is None)
    return TableSchema(
        f"{name}.compute", table_id(TableId.HASH_COMPUTE, number), "DynHashCompute", 1,
        tuple(KeyField(i, f.name, "Exact", bits(f.width)) for i, f in enumerate(keys, 1)),
        (DataField(FieldId.HASH_VALUE, HASH_VALUE, bits(width), read_only=True),),
        depends_on=(table_id(TableId.HASH_CONFIGURE, number),), read_only=True,
    )  # fmt: skip


# -- snapshots and debug counters -----------------------------------------------------------------

MASK_ID = 0x8000
"""The distance from a trigger field's id to that of its mask."""
TRIGGER, MASK = "trig.", "_mask"

_TEXT = FieldType("string")
_MODES = FieldType(
    "string", default="INGRESS", choices=("INGRESS", "GHOST", "INGRESS_GHOST", "ANY")
)
_THREADS = FieldType("string", choices=("INGRESS", "EGRESS", "ALL"))
_STATES = FieldType("string", choices=("PASSIVE", "ARMED", "FULL"))
_COUNTED = FieldType("string", default="TBL_HIT", choices=(
    "DISABLED", "TBL_MISS", "TBL_HIT", "GW_TBL_MISS", "GW_TBL_HIT", "GW_TBL_INHIBIT",
))  # fmt: skip
_LOGICAL_TABLES = 16  # of a stage


def snapshot_tables(facts: DeviceFacts) -> Iterator[TableSchema]:
    """Yield the tables of each pipeline's snapshots, then that of debug counters."""
    fields = snapshot_fields(facts.pipelines)
    names = KeyField(FieldId.SNAPSHOT_LIVENESS_FIELD_NAME, "field_name", "Exact", _TEXT, True)
    for at, pipeline in enumerate(facts.pipelines):
        name, numbers = f"{pipeline.name}.snapshot", range(2 * at, 2 * at + 2)
        triggers = [table_id(TableId.SNAPSHOT_TRIGGER, number) for number in numbers]
        yield _snapshot_configuration(f"{name}.cfg", 2 * at, facts.stages, triggers)
        for number, gress in zip(numbers, pipeline.controls, strict=True):
            own = fields[pipeline.name, gress]
            yield _snapshot_trigger(f"{name}.{gress}_trigger", number, facts.stages, own)
            yield _snapshot_data(f"{name}.{gress}_data", number, facts, own)
            yield TableSchema(
                f"{name}.{gress}_liveness", table_id(TableId.SNAPSHOT_LIVENESS, number),
                "SnapshotLiveness", 0, (names,),
                (_shown(FieldId.SNAPSHOT_LIVENESS_VALID_STAGES, "valid_stages", U32, True),),
            )  # fmt: skip
    yield TableSchema(
        "tbl_dbg_counter", table_id(TableId.DEBUG_COUNTER, 0), "TblDbgCnt",
        facts.stages * _LOGICAL_TABLES,
        (KeyField(FieldId.DEBUG_COUNTER_TABLE, "tbl_name", "Exact", _TEXT, True),),
        (DataField(FieldId.DEBUG_COUNTER_TYPE, "type", _COUNTED),
         DataField(FieldId.DEBUG_COUNTER_VALUE, "value", FieldType("uint64", default=0))),
    )  # fmt: skip


def _snapshot_configuration(
    name: str, number: int, stages: int, triggers: Sequence[int]
) -> TableSchema:
    last = FieldType("uint32", default=stages - 1)
    keys = (
        KeyField(FieldId.SNAPSHOT_START_STAGE, "start_stage", "Exact", _first_stage()),
        KeyField(FieldId.SNAPSHOT_END_STAGE, "end_stage", "Exact", last),
    )
    data = (
        DataField(FieldId.SNAPSHOT_TIMER_ENABLE, "timer_enable", _OFF),
        DataField(FieldId.SNAPSHOT_TIMER_VALUE_USECS, "timer_value_usecs", U32),
        DataField(FieldId.SNAPSHOT_INGRESS_TRIGGER_MODE, "ingress_trigger_mode", _MODES),
        DataField(FieldId.SNAPSHOT_THREAD, "thread", _THREADS, mandatory=True),
        _shown(FieldId.SNAPSHOT_INGRESS_CAPTURE, "ingress_capture", U32, True),
        _shown(FieldId.SNAPSHOT_EGRESS_CAPTURE, "egress_capture", U32, True),
        _shown(FieldId.SNAPSHOT_GHOST_CAPTURE, "ghost_capture", U32, True),
    )
    return TableSchema(
        name, table_id(TableId.SNAPSHOT_CONFIG, number), "SnapshotCfg", stages, keys, data,
        depends_on=tuple(triggers),
    )  # fmt: skip


def _snapshot_trigger(
    name: str, number: int, stages: int, fields: Sequence[SnapshotField]
) -> TableSchema:
    data = [
        DataField(FieldId.SNAPSHOT_ENABLE, "enable", _OFF),
        _shown(FieldId.SNAPSHOT_TRIGGER_STATE, "trigger_state", _STATES, True),
    ]
    for f in fields:
        data.append(DataField(f.id, f"{TRIGGER}{f.name}", bits(f.width)))
        data.append(DataField(f.id + MASK_ID, f"{TRIGGER}{f.name}{MASK}", bits(f.width)))
    known = table_id(TableId.SNAPSHOT_TRIGGER, number)
    return TableSchema(name, known, "SnapshotTrigger", stages, (_stage(),), tuple(data))


def _snapshot_data(
    name: str, number: int, facts: DeviceFacts, fields: Sequence[SnapshotField]
) -> TableSchema:
    data = [
        _shown(FieldId.SNAPSHOT_PREV_STAGE_TRIGGER, "prev_stage_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_TIMER_TRIGGER, "timer_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_LOCAL_STAGE_TRIGGER, "local_stage_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_NEXT_TABLE_NAME, "next_table_name", _TEXT),
        _container(FieldId.SNAPSHOT_TABLE_INFO, "table_info", (
            _shown(FieldId.SNAPSHOT_TABLE_NAME, "table_name", _TEXT),
            _shown(FieldId.SNAPSHOT_MATCH_HIT_HANDLE, "match_hit_handle", U32),
            _shown(FieldId.SNAPSHOT_TABLE_HIT, "table_hit", BOOL),
            _shown(FieldId.SNAPSHOT_TABLE_INHIBITED, "table_inhibited", BOOL),
            _shown(FieldId.SNAPSHOT_TABLE_EXECUTED, "table_executed", BOOL),
        )),
    ]  # fmt: skip
    if facts.family != "tf1":
        data += _of_second_chip()
    data += [_shown(f.id, f.name, bits(f.width)) for f in fields]
    known = table_id(TableId.SNAPSHOT_DATA, number)
    return TableSchema(name, known, "SnapshotData", facts.stages, (_stage(),), tuple(data))


def _of_second_chip() -> Iterator[DataField]:
    for id in (
        FieldId.SNAPSHOT_ENABLED_NEXT_TABLES,
        FieldId.SNAPSHOT_GLOBAL_EXECUTE_TABLES,
        FieldId.SNAPSHOT_ENABLED_GLOBAL_EXECUTE_TABLES,
        FieldId.SNAPSHOT_LONG_BRANCH_TABLES,
        FieldId.SNAPSHOT_ENABLED_LONG_BRANCH_TABLES,
    ):
        yield _shown(id, id.name.removeprefix("SNAPSHOT_").lower(), _TEXT, True)
    yield _shown(FieldId.SNAPSHOT_DEPARSER_ERROR, "deparser_error", BOOL)
    yield _container(FieldId.SNAPSHOT_METER_ALU_INFO, "meter_alu_info", (
        _shown(FieldId.SNAPSHOT_METER_TABLE_NAME, "table_name", _TEXT),
        _shown(FieldId.SNAPSHOT_METER_ALU_OPERATION_TYPE, "meter_alu_operation_type", _TEXT),
    ))  # fmt: skip


def _first_stage() -> FieldType:
    return FieldType("uint32", default=0)


def _stage() -> KeyField:
    return KeyField(FieldId.SNAPSHOT_START_STAGE, "stage", "Exact", _first_stage(), True)


def _shown(id: int, name: str, type: FieldType, repeated: bool = False) -> DataField:
    return DataField(id, name, type, read_only=True, repeated=repeated)


def _container(id: int, name: str, fields: tuple[DataField, ...]) -> DataField:
    return DataField(id, name, U64, read_only=True, repeated=True, container=fields)
