"""A notation for tables that are the same in every program.

A table's lines: "table NAME KIND ID SIZE", then keys and data fields: number, name, type. A type
with * is repeated, with ! mandatory, with - read-only, with ^ only to be cleared, with # shown
first by the driver's prompt, a key's with ? may be left out. @ and a word say what kind of port it
names (@ alone: a port's number). A first value follows =, the default ~, choices a colon. An
action's fields come after its line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gradplane.switch.bfruntime.schema import (
    CLEAR_ONLY,
    ActionSpec,
    DataField,
    FieldType,
    KeyField,
    TableSchema,
)

_SHOWN_FIRST = ("$bfrt_field_imp_level", "2")


def choices(prefix: str, names: str, marks: str = "") -> str:
    """Return the type of a string that is one of some names."""
    return f"string{marks}:" + ",".join(prefix + name for name in names.split())


def parse_tables(text: str) -> list[TableSchema]:
    """Return the tables that a text describes."""
    return [_table(block) for block in text.split("table ")[1:]]


def _table(block: str) -> TableSchema:
    lines = [line.split() for line in block.splitlines() if line.strip()]
    name, kind, number, size = lines[0]
    keys: list[KeyField] = []
    actions: list[tuple[str, str]] = []
    data: dict[str, list[DataField]] = {"": []}
    attributes: list[str] = []
    for what, *rest in lines[1:]:
        action = actions[-1][1] if actions else ""
        if what == "key":
            f = _data_field(*rest)
            may_lack = "?" in rest[2].partition(":")[0]
            keys.append(KeyField(f.id, f.name, "Exact", f.type, not may_lack, f.annotations))
        elif what == "data":
            data[action].append(_data_field(*rest))
        elif what == "action":
            actions.append((rest[0], rest[1]))
            data[rest[1]] = []
        else:
            attributes.append(rest[0])
    specs = tuple(ActionSpec(int(id), action, tuple(data[action]), "") for id, action in actions)
    return TableSchema(
        name, int(number), kind, int(size), tuple(keys), tuple(data[""]), specs,
        attributes=tuple(attributes),
    )  # fmt: skip


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
        int(number), name, t, "!" in marks, "-" in marks, "*" in marks, tuple(annotations)
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
