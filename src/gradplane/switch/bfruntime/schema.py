"""The schema of BFRuntime's tables: what bf-rt.json says of them, and how values are encoded; and a
notation for tables that are the same in every program.

In the notation, a table's lines are "table NAME KIND ID SIZE", then keys and data fields: number,
name, type. A type with * is repeated, with ! mandatory, with - read-only, with ^ only to be
cleared, with # shown first by the driver's prompt, a key's with ? may be left out. @ and a word say
what kind of port it names (@ alone: a port's number). A first value follows =, the default ~,
choices a colon. An action's fields come after its line (number, name, its scope if it has one),
those of a container's items, with "inner", after the container's. "depends", "operation",
"attribute" and "unlisted" have a word each. A number may be the name of one of BFRuntime's own
fields; one that ends in _ goes on with the field's name, and a dot is that name without $.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gradplane.switch.control.names import FIELD_IDS
from gradplane.switch.ir.types import Bool, NewType, SerEnum, Type, bit_width

Json = dict[str, Any]

REGISTER_DATA = ("$bfrt_field_class", "register_data")
"""The annotation of a register's values, of which there is one for each pipe."""
_UNANNOTATED = ("Meter", "Register", "SnapshotCfg", "SnapshotTrigger", "SnapshotData",
                "SnapshotLiveness", "TblDbgCnt")  # fmt: skip
"""The kinds of tables for which the chip's compiler writes no annotations, not even none."""
CLEAR_ONLY = ("clear_only", "true")
"""The annotation of a count that can only be set to 0."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a key's or a data field's values.

    name: "bytes" (with its width in bits), "uint8" to "uint64", "int32", "bool", "float", "string",
    "enum". choices: the only strings allowed. mask: that of a key of which only some bits count.
    """

    name: str
    width: int = 0
    default: int | bool | str | float | None = None
    choices: tuple[str, ...] = ()
    mask: str = ""

    @property
    def bits(self) -> int:
        """The bits of a number, 0 for other types."""
        return self.width if self.name == "bytes" else _BITS.get(self.name, 0)

    @property
    def size(self) -> int:
        """The bytes of a number in a message."""
        return (self.bits + 7) // 8

    @property
    def signed(self) -> bool:
        return self.name.startswith("int")

    def json(self) -> Json:
        out: Json = {"type": self.name}
        if self.name == "bytes":
            out["width"] = self.width
        if self.choices:
            out["choices"] = list(self.choices)
        if self.default is not None:
            out["default_value"] = self.default
        if self.mask:
            out["mask"] = self.mask
        return out


_BITS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "int32": 32}


def bits(width: int, default: int | None = None) -> FieldType:
    """Return the type of a number of `width` bits."""
    return FieldType("bytes", width, default)


def field_type(t: Type) -> FieldType:
    """Return the type of a register's or digest's value."""
    match t:
        case Bool():
            return FieldType("bool")
        case NewType(underlying=inner) | SerEnum(underlying=inner):
            return field_type(inner)
    return bits(bit_width(t) or 0)


Annotations = tuple[tuple[str, str], ...]


def annotations_of(message: object) -> Annotations:
    """Return the annotations of a P4Info object, each with its arguments as a name, as the chip's
    compiler writes them."""
    return tuple((text, "") for text in getattr(message, "annotations", ()))


def _annotations(annotations: Annotations) -> list[Json]:
    return [{"name": name, "value": value} if value else {"name": name}
            for name, value in annotations]  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyField:
    """A key's field; match: "Exact", "Ternary", "LPM", "Range" or "Optional"."""

    id: int
    name: str
    match: str
    type: FieldType
    mandatory: bool = False
    annotations: Annotations = ()

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "repeated": False,
            "annotations": _annotations(self.annotations),
            "mandatory": self.mandatory,
            "match_type": self.match,
            "type": self.type.json(),
        }


@dataclass(frozen=True, slots=True)
class DataField:
    """A data field. repeated: it has a list of values. container: the fields of each item.

    choice: the field of which it is an alternative ("oneof"); one of the two is given. first: the
    value before any is written, of tables whose entries always exist.
    """

    id: int
    name: str
    type: FieldType
    mandatory: bool = False
    read_only: bool = False
    repeated: bool = False
    annotations: Annotations = ()
    container: tuple[DataField, ...] = ()
    choice: str = ""
    first: Any = None

    @property
    def a_value_a_pipe(self) -> bool:
        """Whether each pipe has a value of its own: the field occurs in a message once for each."""
        return REGISTER_DATA in self.annotations

    def core(self) -> Json:
        out: Json = {
            "id": self.id,
            "name": self.name,
            "repeated": self.repeated,
            "annotations": _annotations(self.annotations),
        }
        if self.container:
            out["container"] = data_json(self.container)
        else:
            out["type"] = self.type.json()
        return out

    def action_json(self) -> Json:
        return {**self.core(), "mandatory": self.mandatory, "read_only": self.read_only}


def data_json(fields: Iterable[DataField]) -> list[Json]:
    """Return data fields as bf-rt.json has them; alternatives are one item."""
    out: list[Json] = []
    alternatives: dict[str, list[Json]] = {}
    for f in fields:
        about = {"mandatory": f.mandatory, "read_only": f.read_only}
        if not f.choice:
            out.append({**about, "singleton": f.core()})
        elif f.choice in alternatives:
            alternatives[f.choice].append(f.core())
        else:
            alternatives[f.choice] = [f.core()]
            out.append({**about, "oneof": alternatives[f.choice]})
    return out


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action of a table; scope: "TableAndDefault", "TableOnly" or "DefaultOnly"; "" for an
    action of a table that has no scopes: one of the device."""

    id: int
    name: str
    data: tuple[DataField, ...] = ()
    scope: str = "TableAndDefault"
    annotations: Annotations = ()

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            **({"action_scope": self.scope} if self.scope else {}),
            "annotations": _annotations(self.annotations),
            "data": [f.action_json() for f in self.data],
        }


@dataclass(frozen=True)
class TableSchema:
    """A table as clients see it. unlisted: attributes that it has beyond those of bf-rt.json, where
    the chip's compiler does not list them."""

    name: str
    id: int
    kind: str  # bf-rt.json's table_type
    size: int
    keys: tuple[KeyField, ...] = ()
    data: tuple[DataField, ...] = ()
    actions: tuple[ActionSpec, ...] = ()
    operations: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    depends_on: tuple[int, ...] = ()
    annotations: Annotations = ()
    const_default: bool | None = None  # None: the table has no default action
    unlisted: tuple[str, ...] = ()
    read_only: bool = False

    @cached_property
    def key_by_id(self) -> Mapping[int, KeyField]:
        return {f.id: f for f in self.keys}

    @cached_property
    def data_by_id(self) -> Mapping[int, DataField]:
        """The data fields that do not depend on the action, those in containers included."""
        return {f.id: f for f in _with_contained(self.data)}

    @cached_property
    def action_by_id(self) -> Mapping[int, ActionSpec]:
        return {a.id: a for a in self.actions}

    def action_named(self, name: str) -> ActionSpec:
        return next(a for a in self.actions if a.name == name)

    def json(self) -> Json:
        out: Json = {
            "name": self.name,
            "id": self.id,
            "table_type": self.kind,
            "size": self.size,
            "annotations": _annotations(self.annotations),
            "depends_on": list(self.depends_on),
        }
        if self.kind in _UNANNOTATED and not self.annotations:
            del out["annotations"]
        if self.const_default is not None:
            out["has_const_default_action"] = self.const_default
        out["key"] = [f.json() for f in self.keys]
        if self.actions:
            out["action_specs"] = [a.json() for a in self.actions]
        out["data"] = data_json(self.data)
        out["supported_operations"] = list(self.operations)
        out["attributes"] = list(self.attributes)
        if self.read_only:
            out["read_only"] = True
        return out


def _with_contained(fields: Iterable[DataField]) -> Iterable[DataField]:
    for f in fields:
        yield f
        yield from _with_contained(f.container)


@dataclass(frozen=True, slots=True)
class LearnFilter:
    """A digest as clients see it."""

    name: str
    id: int
    fields: tuple[DataField, ...]
    annotations: Annotations = ()

    def json(self) -> Json:
        annotations = _annotations(self.annotations)
        fields = [f.core() for f in self.fields]
        return {
            "name": self.name, "id": self.id, "annotations": annotations, "fields": fields
        }  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """The tables and digests of a program, or of the device."""

    tables: tuple[TableSchema, ...]
    learn_filters: tuple[LearnFilter, ...] = field(default=())

    def json(self) -> Json:
        return {
            "schema_version": "1.0.0",
            "tables": [t.json() for t in self.tables],
            "learn_filters": [f.json() for f in self.learn_filters],
        }


# -- a notation -----------------------------------------------------------------------------------


_SHOWN_FIRST = ("$bfrt_field_imp_level", "2")


def choices(prefix: str, names: str, marks: str = "") -> str:
    """Return the type of a string that is one of some names."""
    return f"string{marks}:" + ",".join(prefix + name for name in names.split())


def parse_tables(text: str) -> list[TableSchema]:
    """Return the tables that a text describes."""
    return [_table(block) for block in text.split("table ")[1:]]


def data_fields(text: str) -> tuple[DataField, ...]:
    """Return the data fields that lines describe."""
    return _table(f"- - 0 0\n{text}").data


def index(name: str) -> KeyField:
    """Return the key of an array, or of a profile, by the name of its field."""
    return KeyField(FIELD_IDS[name], f"${name}", "Exact", FieldType("uint32"), mandatory=True)


def _table(block: str) -> TableSchema:
    lines = [line.split() for line in block.splitlines() if line.strip()]
    name, kind, place, size = lines[0]
    keys: list[KeyField] = []
    actions: list[ActionSpec] = []
    data: list[list[DataField]] = [[]]  # of the table, then of each action
    words: dict[str, list[str]] = {
        "depends": [], "operation": [], "attribute": [], "unlisted": []
    }  # fmt: skip
    for what, *rest in lines[1:]:
        if what == "key":
            f = _data_field(*rest)
            may_lack = "?" in rest[2].partition(":")[0]
            keys.append(KeyField(f.id, f.name, "Exact", f.type, not may_lack, f.annotations))
        elif what == "data":
            data[-1].append(_data_field(*rest))
        elif what == "inner":
            whole = data[-1].pop()
            data[-1].append(replace(whole, container=(*whole.container, _data_field(*rest))))
        elif what == "action":
            number, action, *scope = rest
            actions.append(ActionSpec(_id(number, action), action, scope="".join(scope)))
            data.append([])
        else:
            words[what] += rest
    own, *of_actions = map(tuple, data)
    pairs = zip(actions, of_actions, strict=True)
    return TableSchema(
        name, int(place), kind, int(size), tuple(keys), own,
        tuple(replace(action, data=found) for action, found in pairs), tuple(words["operation"]),
        tuple(words["attribute"]), tuple(map(int, words["depends"])),
        unlisted=tuple(words["unlisted"]),
    )  # fmt: skip


def _id(number: str, name: str) -> int:
    if number.isdigit():
        return int(number)
    if number.endswith("_"):
        number += name.upper()
    return FIELD_IDS[name.removeprefix("$") if number == "." else number]


def _data_field(number: str, name: str, text: str) -> DataField:
    """Make a field of "uint32*=1,2", "string-=A:A,B", ..."""
    text, _, allowed = text.partition(":")
    given = _FIELD.fullmatch(text)
    assert given is not None, text
    kind, marks = given["kind"], given["marks"]
    width = 0
    if kind.startswith("bytes"):
        kind, width = "bytes", int(kind.removeprefix("bytes"))
    default = None if given["default"] is None else _value(kind, given["default"])
    t = FieldType(kind, width, default, tuple(allowed.split(",")) if allowed else ())
    port = given["port"]
    annotations = [("$bfrt_port_type_class", port or "dev_port")] if port is not None else []
    annotations += [_SHOWN_FIRST] if "#" in marks else []
    annotations += [CLEAR_ONLY] if "^" in marks else []
    field = DataField(
        _id(number, name), name, t, "!" in marks, "-" in marks, "*" in marks, tuple(annotations)
    )
    return replace(field, first=_first(field, given["first"]))


_FIELD = re.compile(
    r"(?P<kind>\w+)(?P<marks>[*!^#?-]*)(@(?P<port>\w*))?(=(?P<first>[^~]+))?(~(?P<default>.+))?"
)


def _value(kind: str, text: str) -> int | bool | str:
    if kind == "bool":
        return text == "true"
    return text if kind in ("string", "enum") else int(text)


def _first(field: DataField, text: str | None) -> Any:
    """Return the value of a setting that was never made."""
    if field.repeated:
        return []
    if text is None and field.type.name in ("string", "enum"):
        return (field.type.choices or ("",))[0]
    return _value(field.type.name, text or "0")
