"""The hashes that a program computes: the fields that each takes, its algorithm, which may be
replaced with a CRC while the program runs, and what it gives for some fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from gradplane.switch.arch.load_checks import extern_calls
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import (
    DataField,
    FieldType,
    KeyField,
    TableSchema,
    bits,
    data_fields,
    parse_tables,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Scope, SettingsTable
from gradplane.switch.control.names import FIELD_IDS, TableId, name_hash, table_id
from gradplane.switch.control.store import Store
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Fields, bit_width
from gradplane.switch.runtime.dynamic_hashes import (
    SPANS,
    DynamicHash,
    Spans,
    is_symmetric,
    selector_hash,
)
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.hashes import pack_bits

# -- what is hashed -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HashedField:
    """A number that a hash takes: `width` bits; `value`: a constant's, None for others."""

    name: str
    width: int
    value: int | None = None


def called_hashes(program: ir.Program) -> list[ir.ExternInstance]:
    """Return the hashes that a program computes, by name, those of its selectors included."""
    found = {instance.name: instance for instance, _ in _uses(program)}
    return [found[name] for name in sorted(found)]


def hashed_fields(program: ir.Program, instance: ir.ExternInstance) -> Sequence[HashedField]:
    """Return what a hash takes, in order; nothing if that is not the same in all calls, or if two
    fields have one name."""
    lists = {fields for used, fields in _uses(program) if used is instance}
    if len(lists) != 1:
        return ()
    (found,) = lists
    names = [f.name for f in found if f.value is None]
    return found if len(set(names)) == len(names) else ()


def configured_fields(fields: Sequence[HashedField]) -> list[HashedField]:
    """Return the fields with names for the constants, by number, width and what the source has."""
    constants = (f for f in fields if f.value is not None)
    names = {id(f): f"constant{i}_{f.width}_{f.name}" for i, f in enumerate(constants)}
    return [replace(f, name=names.get(id(f), f.name)) for f in fields]


def _uses(program: ir.Program) -> Iterator[tuple[ir.ExternInstance, tuple[HashedField, ...]]]:
    """Yield each use of a hash, with what it takes there; those with symmetric fields stay as they
    are, as in the driver."""
    for instance, fields in _all_uses(program):
        if not is_symmetric(instance):
            yield instance, fields


def _all_uses(program: ir.Program) -> Iterator[tuple[ir.ExternInstance, tuple[HashedField, ...]]]:
    for _, call in extern_calls(program):
        instance = call.instance
        if instance and instance.kind == "hash" and instance.word("algorithm") != "random":
            yield instance, tuple(_fields(call.args[0]))
    for table in program.tables:
        made = selector_hash(table.implementation) if table.implementation else None
        if made is not None and made.word("algorithm") != "random":
            keys = (key.expr for key in table.keys if key.match_kind == "selector")
            yield made, tuple(field for key in keys for field in _fields(key))


def _fields(e: ir.Expr) -> Iterator[HashedField]:
    """Yield the numbers of a value; none of a varbit."""
    if isinstance(e.type, Fields):
        for i in range(len(e.type.fields)):
            yield from _fields(e.fields[i] if isinstance(e, ir.Make) else build.field(e, i))
        return
    if isinstance(e, ir.Binary) and e.op == "++":
        yield from _fields(e.left)
        yield from _fields(e.right)
        return
    width = bit_width(e.type)
    if width:
        value = int(e.value) if isinstance(e, ir.Const) and isinstance(e.value, int) else None
        yield HashedField(_name(e), width, value)


_FORMATS = {2: "#b", 8: "#o", 10: "d", 16: "#x"}


def _name(e: ir.Expr) -> str:
    """Return an expression as the chip's compiler names it: 8w0xff, without the width in an
    operation, whose operands have no parentheses."""
    match e:
        case ir.Const(Bits() as t, int() as value):
            sign = "s" if t.signed else "w"
            return f"{t.width}{sign}{value:{_FORMATS[e.base]}}"
        case ir.Binary():
            return f"{_operand(e.left)} {e.op} {_operand(e.right)}"
        case ir.Cast():
            return f"({e.type}){_operand(e.operand)}"
    return expression_text(e)


def _operand(e: ir.Expr) -> str:
    return str(e.value) if isinstance(e, ir.Const) else _name(e)


# -- the algorithm --------------------------------------------------------------------------------

PRE_DEFINED, USER_DEFINED = "pre_defined", "user_defined"
RANDOM, IDENTITY, XOR = "RANDOM", "IDENTITY", "XOR"

HASH_VALUE = "hash_value"

_FULL16, _FULL32, _FULL64 = 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
NAMED = {
    "CRC_8": Crc(8, 0x07),
    "CRC_8_DARC": Crc(8, 0x39, reflected=True),
    "CRC_8_I_CODE": Crc(8, 0x1D, 0xFD),
    "CRC_8_ITU": Crc(8, 0x07, 0, 0x55),
    "CRC_8_MAXIM": Crc(8, 0x31, reflected=True),
    "CRC_8_ROHC": Crc(8, 0x07, 0xFF, reflected=True),
    "CRC_8_WCDMA": Crc(8, 0x9B, reflected=True),
    "CRC_16": Crc(16, 0x8005, reflected=True),
    "CRC_16_BYPASS": Crc(16, 0x8005),
    "CRC_16_DDS_110": Crc(16, 0x8005, 0x800D),
    "CRC_16_DECT": Crc(16, 0x0589, 0, 0x0001),
    "CRC_16_DECT_R": Crc(16, 0x0589, 0, 0x0001),
    "CRC_16_DECT_X": Crc(16, 0x0589),
    "CRC_16_DNP": Crc(16, 0x3D65, 0, _FULL16, reflected=True),
    "CRC_16_EN_13757": Crc(16, 0x3D65, 0, _FULL16),
    "CRC_16_GENIBUS": Crc(16, 0x1021, _FULL16, _FULL16),
    "CRC_16_MAXIM": Crc(16, 0x8005, 0, _FULL16, reflected=True),
    "CRC_16_MCRF4XX": Crc(16, 0x1021, _FULL16, reflected=True),
    "CRC_16_RIELLO": Crc(16, 0x1021, 0xB2AA, reflected=True),
    "CRC_16_T10_DIF": Crc(16, 0x8BB7),
    "CRC_16_TELEDISK": Crc(16, 0xA097),
    "CRC_16_USB": Crc(16, 0x8005, _FULL16, _FULL16, reflected=True),
    "X_25": Crc(16, 0x1021, _FULL16, _FULL16, reflected=True),
    "XMODEM": Crc(16, 0x1021),
    "MODBUS": Crc(16, 0x8005, _FULL16, reflected=True),
    "KERMIT": Crc(16, 0x1021, reflected=True),
    "CRC_CCITT_FALSE": Crc(16, 0x1021, _FULL16),
    "CRC_AUG_CCITT": Crc(16, 0x1021, 0x1D0F),
    "CRC_32": Crc(32, 0x04C11DB7, _FULL32, _FULL32, reflected=True),
    "CRC_32_BZIP2": Crc(32, 0x04C11DB7, _FULL32, _FULL32),
    "CRC_32C": Crc(32, 0x1EDC6F41, _FULL32, _FULL32, reflected=True),
    "CRC_32D": Crc(32, 0xA833982B, _FULL32, _FULL32, reflected=True),
    "CRC_32_MPEG": Crc(32, 0x04C11DB7, _FULL32),
    "POSIX": Crc(32, 0x04C11DB7, 0, _FULL32),
    "CRC_32Q": Crc(32, 0x814141AB),
    "JAMCRC": Crc(32, 0x04C11DB7, _FULL32, reflected=True),
    "XFER": Crc(32, 0x000000AF),
    "CRC_64": Crc(64, 0x42F0E1EBA9EA3693),
    "CRC_64_GO_ISO": Crc(64, 0x000000000000001B, _FULL64, _FULL64, reflected=True),
    "CRC_64_WE": Crc(64, 0x42F0E1EBA9EA3693, _FULL64, _FULL64),
    "CRC_64_JONES": Crc(64, 0xAD93D23594C935A9, _FULL64, reflected=True),
}
"""The parameters of CRCs, by their names in the chip's driver."""
NAMES = (IDENTITY, RANDOM, XOR, *NAMED)

_CHOSEN, _PARTS = "algorithm_name", "parts"
"""The store's attributes of a hash for clients: the last algorithm that was chosen by name, and
the parts of fields that it takes."""

_ALGORITHM = f"""
data HASH_ALGORITHM_ rotate uint32~0
data HASH_ALGORITHM_ seed uint32~0
data HASH_ALGORITHM_ msb bool~false
data HASH_ALGORITHM_ extend bool~false
action HASH_ALGORITHM_ {PRE_DEFINED} TableAndDefault
data 1 algorithm_name string~{RANDOM}:{",".join(NAMES)}
action HASH_ALGORITHM_ {USER_DEFINED} TableAndDefault
data 1 reverse bool~false
data 2 polynomial uint64!
data 3 init uint64~0
data 4 final_xor uint64~0
data 5 hash_bit_width uint64
"""
_SPAN = """
data HASH_CONFIGURE_ start_bit uint64~0
data HASH_CONFIGURE_ length uint64~{}
data HASH_CONFIGURE_ order uint64!
"""
"""A part of a hashed field of so many bits, and its place."""


def hash_tables(
    program: ir.Program, instance: ir.ExternInstance, name: str
) -> Iterator[TableSchema]:
    """Yield the tables of a hash: its algorithm and, if it takes the same fields in all calls, the
    choice of these and what it gives. name: their names' first part."""
    hashed = hashed_fields(program, instance)
    algorithm, configure, compute = (
        table_id(kind, name_hash(name))
        for kind in (TableId.HASH_ALGORITHM, TableId.HASH_CONFIGURE, TableId.HASH_COMPUTE)
    )
    (schema,) = parse_tables(f"table - DynHashAlgorithm {algorithm} 1{_ALGORITHM}")
    depends_on = (configure,) if hashed else ()
    yield replace(schema, name=f"{name}.algorithm", depends_on=depends_on)
    if not hashed:
        return
    whole, width = FieldType("uint64"), bit_width(instance.type_args[0]) or 0
    data = tuple(
        DataField(i, f.name, whole, repeated=True, container=data_fields(_SPAN.format(f.width)),
                  annotations=(("bfrt_p4_constant", ""),) if f.value is not None else ())
        for i, f in enumerate(configured_fields(hashed), 1)
    )  # fmt: skip
    yield TableSchema(f"{name}.configure", configure, "DynHashConfigure", 1, (), data)
    keys = (f for f in hashed if f.value is None)
    yield TableSchema(
        f"{name}.compute", compute, "DynHashCompute", 1,
        tuple(KeyField(i, f.name, "Exact", bits(f.width)) for i, f in enumerate(keys, 1)),
        (DataField(FIELD_IDS["HASH_VALUE"], HASH_VALUE, bits(width), read_only=True),),
        depends_on=(configure,), read_only=True,
    )  # fmt: skip


_OF_PROGRAM = {
    "identity": IDENTITY, "random": RANDOM, "xor8": XOR, "xor16": XOR, "xor32": XOR,
    "crc8": "CRC_8", "crc16": "CRC_16", "crc32": "CRC_32", "crc64": "CRC_64",
}  # fmt: skip
"""The names of the algorithms of programs."""


class HashAlgorithmTable(SettingsTable):
    """The algorithm of a hash, as the default entry. `width`: the bits of its result."""

    def __init__(self, schema: TableSchema, store: Store, hash: DynamicHash, width: int) -> None:
        super().__init__(schema, store)
        self.hash = hash
        self._width = width
        self._own = _name_of(hash.algorithm)

    def set_default(self, scope: Scope, data: Data) -> None:
        if not scope.all:
            raise self.invalid("all pipes share it: leave the target's pipe at 0xffff")
        if data.action is None:
            raise self.invalid(f"give one of the actions {PRE_DEFINED} and {USER_DEFINED}")
        if data.values.get("rotate"):
            raise self.refused("its result cannot be rotated")
        if data.action.name != PRE_DEFINED:
            self._set(self._given(data), "")
            return
        name = data.values.get("algorithm_name", self._own)
        self._set(self._named(name, data.values.get("seed", 0)), name)

    def reset_default(self, scope: Scope) -> None:
        self._set(None, self._own)

    def default(self, scope: Scope) -> Data | None:
        crc, name = self.hash.crc, self.hash.shown.get(_CHOSEN, "")
        if crc is None:
            own = self.hash.algorithm
            crc, name = own if isinstance(own, Crc) else None, self._own
        common = {"rotate": 0, "seed": 0, "msb": False, "extend": False}
        if crc is None or crc == NAMED.get(name):
            action = self.schema.action_named(PRE_DEFINED)
            return Data(action, {**common, "algorithm_name": name})
        return Data(self.schema.action_named(USER_DEFINED), {
            **common, "seed": crc.initial & _FULL32, "reverse": crc.reflected,
            "polynomial": crc.polynomial, "init": crc.initial, "final_xor": crc.final,
            "hash_bit_width": crc.width,
        })  # fmt: skip

    def _named(self, name: str, seed: int) -> Crc | None:
        """Return the CRC of a name, None for the program's own algorithm."""
        crc, own = NAMED.get(name), self.hash.algorithm
        if name == self._own:
            if not seed:
                return None
            crc = own if isinstance(own, Crc) else crc
        elif crc is None:
            raise self.refused(f"{name} is not the program's algorithm: use {self._known()}")
        if crc is None:
            raise self.refused(f"{name} takes no seed: use {self._known()}")
        if not seed:
            return crc
        return Crc(crc.width, crc.polynomial, self._fitting("seed", seed, crc.width), crc.final,
                   crc.reflected)  # fmt: skip

    def _known(self) -> str:
        return f"{self._own}, or the name of a CRC" if self._own else "the name of a CRC"

    def _given(self, data: Data) -> Crc:
        values = data.values
        width = values.get("hash_bit_width") or self._width
        if not 8 <= width <= 64:
            raise self.invalid(f"hash_bit_width {width} is not within 8 to 64")
        numbers = {
            "polynomial": values["polynomial"],
            "init": values.get("init", 0) or values.get("seed", 0),
            "final_xor": values.get("final_xor", 0),
        }
        polynomial, initial, final = (self._fitting(n, v, width) for n, v in numbers.items())
        return Crc(width, polynomial, initial, final, values.get("reverse", False))

    def _fitting(self, name: str, value: int, width: int) -> int:
        if value >> width:
            raise self.invalid(f"{name} {value:#x} does not fit {width} bits")
        return value

    def _set(self, crc: Crc | None, name: str) -> None:
        shown = {**self.hash.shown, _CHOSEN: name}
        self.store.hashes.modify(self.hash.name, crc=crc, shown=shown)


def _name_of(algorithm: Crc | str) -> str:
    """Return the name of a program's algorithm, "" for a CRC that has none."""
    if isinstance(algorithm, str):
        return _OF_PROGRAM.get(algorithm, algorithm.upper())
    return next((name for name, crc in NAMED.items() if crc == algorithm), "")


# -- what it takes, and gives ---------------------------------------------------------------------

Part = dict[str, Any]


class HashConfigurationTable(SettingsTable):
    """The parts of fields that a hash takes, as the default entry: each with its lowest bit, its
    length, and its place among all parts. Parts with the order 0 are not hashed, nor are fields
    that an entry leaves out. As in the chip's driver, a part begins at bit 0 unless the entry says
    where, and ends with its field."""

    def __init__(
        self, schema: TableSchema, store: Store, hash: DynamicHash, fields: Sequence[HashedField]
    ) -> None:
        super().__init__(schema, store)
        self.hash = hash
        self._fields = configured_fields(fields)
        ends = accumulate(f.width for f in self._fields)
        self._ends = dict(zip((f.name for f in self._fields), ends, strict=True))
        self._total = sum(f.width for f in self._fields)

    def _all(self) -> dict[str, list[Part]]:
        return {
            f.name: [{"start_bit": 0, "length": f.width, "order": i}]
            for i, f in enumerate(self._fields, 1)
        }

    def set_default(self, scope: Scope, data: Data) -> None:
        if not scope.all:
            raise self.invalid("all pipes share it: leave the target's pipe at 0xffff")
        values = {f.name: self._parts_of(f, data.values.get(f.name, ())) for f in self._fields}
        spans = self._spans(values)
        if not spans or len(spans) > SPANS or sum(n for _, n in spans) > self._total:
            what = f"choose 1 to {SPANS} parts, of up to {self._total} bits together"
            raise self.invalid(what)
        self._set(values, spans)

    def reset_default(self, scope: Scope) -> None:
        self._set({}, None)

    def default(self, scope: Scope) -> Data | None:
        return Data(None, dict(self.hash.shown.get(_PARTS) or self._all()))

    def _parts_of(self, field: HashedField, items: Sequence[Part]) -> list[Part]:
        """Return the parts of a field that an entry gives: without any, the field with order 0."""
        parts = [self._part(field, item) for item in items]
        taken = sorted((p["start_bit"], p["start_bit"] + p["length"]) for p in parts if p["order"])
        if any(first[1] > second[0] for first, second in pairwise(taken)):
            raise self.invalid(f"data field {field.name}: its parts have bits in common")
        return parts or [{"start_bit": 0, "length": field.width, "order": 0}]

    def _part(self, field: HashedField, item: Part) -> Part:
        if "order" not in item:
            raise self.invalid(f"data field {field.name}: no value for order")
        start = item.get("start_bit", 0)
        if start >= field.width:
            what = f"data field {field.name}: start_bit {start} is not within its {field.width}"
            raise self.invalid(f"{what} bits")
        length = min(item.get("length", field.width), field.width - start)
        return {"start_bit": start, "length": length, "order": item["order"] if length else 0}

    def _spans(self, values: dict[str, list[Part]]) -> Spans:
        placed = sorted(self._placed(values))
        for (order, *_), (following, *_) in pairwise(placed):
            if order == following:
                what = f"two parts have the order {order}: a symmetric hash is made with @symmetric"
                raise self.refused(what)
        return [(start, length) for _, start, length in placed]

    def _placed(self, values: dict[str, list[Part]]) -> Iterator[tuple[int, int, int]]:
        """Yield order, first bit and length of each part that is hashed."""
        for name, parts in values.items():
            for part in parts:
                if part["order"]:
                    start = self._ends[name] - part["start_bit"] - part["length"]
                    yield part["order"], start, part["length"]

    def _set(self, values: dict[str, list[Part]], spans: Spans | None) -> None:
        shown = {**self.hash.shown, _PARTS: values}
        self.store.hashes.modify(self.hash.name, spans=spans, total=self._total, shown=shown)


class HashComputeTable(ControlTable):
    """The results of a hash: an entry for each key, which is read only.

    Fields that a key leaves out are 0. `width`: the bits of the result."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        hash: DynamicHash,
        width: int,
        fields: Sequence[HashedField],
    ) -> None:
        super().__init__(schema, store)
        self.hash = hash
        self._mask = (1 << width) - 1
        self._fields = fields
        bits = sum(f.width for f in fields)
        self._in_front = -bits % 8 if hash.filled_in_front else 0

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        parts = [(self._value(f, key), f.width) for f in self._fields]
        data = pack_bits([(0, self._in_front), *parts])
        return key, Data(None, {HASH_VALUE: self.hash.compute(data) & self._mask})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        return iter(())

    def usage(self, scope: Scope) -> int:
        return 0

    def _value(self, field: HashedField, key: Key) -> int:
        if field.value is not None:
            return field.value
        return self.number(key, field.name) if key.get(field.name) is not None else 0
