"""The tables of a hash that a program computes: its algorithm, what it takes, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.bfruntime.identifiers import FieldId, TableId, table_id
from gradplane.switch.bfruntime.schema import (
    ActionSpec,
    DataField,
    FieldType,
    KeyField,
    TableSchema,
    bits,
)
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
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width

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
