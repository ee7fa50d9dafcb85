"""The data fields of counters, meters, filters and selectors, as the Tofino back end of p4c names
them, and the types of what a program declares."""

from __future__ import annotations

from finsy.proto import p4i

from gradplane.switch.bfruntime.identifiers import FieldId
from gradplane.switch.bfruntime.schema import (
    Annotations,
    DataField,
    FieldType,
    KeyField,
    bits,
)
from gradplane.switch.ir.types import Bool, NewType, SerEnum, Type, bit_width

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
