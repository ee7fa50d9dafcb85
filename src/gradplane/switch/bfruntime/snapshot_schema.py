"""The tables of snapshots and debug counters, with the names and fields that the Tofino back end of
p4c gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.identifiers import FieldId, TableId, table_id
from gradplane.switch.bfruntime.schema import DataField, FieldType, KeyField, TableSchema, bits
from gradplane.switch.bfruntime.snapshot_fields import SnapshotField, snapshot_fields

MASK_ID = 0x8000
"""What the id of a trigger field's mask is above the field's."""
TRIGGER, MASK = "trig.", "_mask"

_U32, _U64, _BOOL = FieldType("uint32"), FieldType("uint64"), FieldType("bool")
_TEXT = FieldType("string")
_OFF = FieldType("bool", default=False)
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
        yield _configuration(f"{name}.cfg", 2 * at, facts.stages, triggers)
        for number, gress in zip(numbers, pipeline.controls, strict=True):
            own = fields[pipeline.name, gress]
            yield _trigger(f"{name}.{gress}_trigger", number, facts.stages, own)
            yield _data(f"{name}.{gress}_data", number, facts, own)
            yield TableSchema(
                f"{name}.{gress}_liveness", table_id(TableId.SNAPSHOT_LIVENESS, number),
                "SnapshotLiveness", 0, (names,),
                (_shown(FieldId.SNAPSHOT_LIVENESS_VALID_STAGES, "valid_stages", _U32, True),),
            )  # fmt: skip
    yield TableSchema(
        "tbl_dbg_counter", table_id(TableId.DEBUG_COUNTER, 0), "TblDbgCnt",
        facts.stages * _LOGICAL_TABLES,
        (KeyField(FieldId.DEBUG_COUNTER_TABLE, "tbl_name", "Exact", _TEXT, True),),
        (DataField(FieldId.DEBUG_COUNTER_TYPE, "type", _COUNTED),
         DataField(FieldId.DEBUG_COUNTER_VALUE, "value", FieldType("uint64", default=0))),
    )  # fmt: skip


def _configuration(name: str, number: int, stages: int, triggers: Sequence[int]) -> TableSchema:
    last = FieldType("uint32", default=stages - 1)
    keys = (
        KeyField(FieldId.SNAPSHOT_START_STAGE, "start_stage", "Exact", _first_stage()),
        KeyField(FieldId.SNAPSHOT_END_STAGE, "end_stage", "Exact", last),
    )
    data = (
        DataField(FieldId.SNAPSHOT_TIMER_ENABLE, "timer_enable", _OFF),
        DataField(FieldId.SNAPSHOT_TIMER_VALUE_USECS, "timer_value_usecs", _U32),
        DataField(FieldId.SNAPSHOT_INGRESS_TRIGGER_MODE, "ingress_trigger_mode", _MODES),
        DataField(FieldId.SNAPSHOT_THREAD, "thread", _THREADS, mandatory=True),
        _shown(FieldId.SNAPSHOT_INGRESS_CAPTURE, "ingress_capture", _U32, True),
        _shown(FieldId.SNAPSHOT_EGRESS_CAPTURE, "egress_capture", _U32, True),
        _shown(FieldId.SNAPSHOT_GHOST_CAPTURE, "ghost_capture", _U32, True),
    )
    return TableSchema(
        name, table_id(TableId.SNAPSHOT_CONFIG, number), "SnapshotCfg", stages, keys, data,
        depends_on=tuple(triggers),
    )  # fmt: skip


def _trigger(name: str, number: int, stages: int, fields: Sequence[SnapshotField]) -> TableSchema:
    data = [
        DataField(FieldId.SNAPSHOT_ENABLE, "enable", _OFF),
        _shown(FieldId.SNAPSHOT_TRIGGER_STATE, "trigger_state", _STATES, True),
    ]
    for f in fields:
        data.append(DataField(f.id, f"{TRIGGER}{f.name}", bits(f.width)))
        data.append(DataField(f.id + MASK_ID, f"{TRIGGER}{f.name}{MASK}", bits(f.width)))
    known = table_id(TableId.SNAPSHOT_TRIGGER, number)
    return TableSchema(name, known, "SnapshotTrigger", stages, (_stage(),), tuple(data))


def _data(
    name: str, number: int, facts: DeviceFacts, fields: Sequence[SnapshotField]
) -> TableSchema:
    data = [
        _shown(FieldId.SNAPSHOT_PREV_STAGE_TRIGGER, "prev_stage_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_TIMER_TRIGGER, "timer_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_LOCAL_STAGE_TRIGGER, "local_stage_trigger", _OFF),
        _shown(FieldId.SNAPSHOT_NEXT_TABLE_NAME, "next_table_name", _TEXT),
        _container(FieldId.SNAPSHOT_TABLE_INFO, "table_info", (
            _shown(FieldId.SNAPSHOT_TABLE_NAME, "table_name", _TEXT),
            _shown(FieldId.SNAPSHOT_MATCH_HIT_HANDLE, "match_hit_handle", _U32),
            _shown(FieldId.SNAPSHOT_TABLE_HIT, "table_hit", _BOOL),
            _shown(FieldId.SNAPSHOT_TABLE_INHIBITED, "table_inhibited", _BOOL),
            _shown(FieldId.SNAPSHOT_TABLE_EXECUTED, "table_executed", _BOOL),
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
    yield _shown(FieldId.SNAPSHOT_DEPARSER_ERROR, "deparser_error", _BOOL)
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
    return DataField(id, name, _U64, read_only=True, repeated=True, container=fields)
