"""Keys and data between messages and Python values, by a table's schema.

A key is a mapping from field names to matches: (value,) for Exact and Optional, (value, mask) for
Ternary, (value, prefix length) for LPM, (low, high) for Range; None where an Optional matches
anything. Data are an action and a mapping from field names to ints, bools, floats, strings, lists
of them, or a list of mappings for a container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.bfruntime.schema import (
    ActionSpec,
    DataField,
    FieldType,
    KeyField,
    TableSchema,
)
from gradplane.switch.p4runtime.status_errors import RpcError, invalid

Match = tuple[Any, ...] | None
Key = dict[str, Match]

_MATCHES = {
    "Exact": "exact", "ATCAM": "exact", "Ternary": "ternary", "LPM": "lpm", "Range": "range",
    "Optional": "optional",
}  # fmt: skip
"""The field of a message that each kind of match is in."""
_LISTS = ("int_arr_val", "bool_arr_val", "str_arr_val")


@dataclass(slots=True)
class Data:
    """The data of an entry. action: None where the table has none or the request gives none."""

    action: ActionSpec | None = None
    values: dict[str, Any] = field(default_factory=dict)


def invalid_for(table: TableSchema, what: str) -> RpcError:
    """Return the error INVALID_ARGUMENT, which names the table."""
    return invalid(f"table {table.name}: {what}")


# -- keys ---------------------------------------------------------------------------------------


def read_key(table: TableSchema, message: Any) -> Key:
    """Decode a key. A field that is left out is its default or 0, with an empty mask or prefix.

    Raises RpcError.
    """
    key: Key = {}
    for given in message.fields:
        known = table.key_by_id.get(given.field_id)
        if known is None:
            names = ", ".join(f"{f.name} ({f.id})" for f in table.keys) or "none"
            raise invalid_for(table, f"no key field has id {given.field_id}; fields: {names}")
        key[known.name] = _match(table, known, given)
    for f in table.keys:
        if f.name not in key:
            if f.mandatory:
                raise invalid_for(table, f"key field {f.name} is missing")
            key[f.name] = _left_out(f)
    return key


def _left_out(f: KeyField) -> Match:
    if f.type.name == "string":
        return ("",)
    if f.match == "Range":
        return (0, (1 << f.type.bits) - 1)
    return {"Ternary": (0, 0), "LPM": (0, 0), "Optional": None}.get(f.match, (f.type.default or 0,))


def _match(table: TableSchema, f: KeyField, given: Any) -> Match:
    wanted, found = _MATCHES[f.match], given.WhichOneof("match_type")
    where = f"key field {f.name}"
    if found != wanted:
        raise invalid_for(table, f"{where} takes {wanted}, not {found or 'nothing'}")
    part = getattr(given, wanted)
    if f.type.name == "string":
        text = part.value.decode("utf-8", "replace")
        _check_choice(table, where, f.type, text)
        return (text,)

    def number(data: bytes) -> int:
        return read_number(table, where, f.type, data)

    match wanted:
        case "ternary":
            value, mask = number(part.value), number(part.mask)
            return (value & mask, mask)
        case "lpm":
            if not 0 <= part.prefix_len <= f.type.bits:
                what = f"prefix length {part.prefix_len} is not within 0 to {f.type.bits}"
                raise invalid_for(table, f"{where}: {what}")
            full = (1 << f.type.bits) - 1
            return (number(part.value) & (full ^ (full >> part.prefix_len)), part.prefix_len)
        case "range":
            return (number(part.low), number(part.high))
        case "optional":
            return (number(part.value),) if part.is_valid else None
    return (number(part.value),)


def show_key(table: TableSchema, key: Mapping[str, Match], out: Any) -> None:
    """Encode a key into a TableKey message."""
    for f in table.keys:
        match, kind = key[f.name], _MATCHES[f.match]
        shown = out.fields.add(field_id=f.id)
        part = getattr(shown, kind)
        part.SetInParent()
        if match is None:
            match = (0, 0) if kind in ("ternary", "lpm") else (0, (1 << f.type.bits) - 1)
            part_valid = False
        else:
            part_valid = True
        if f.type.name == "string":
            part.value = str(match[0]).encode()
            continue
        first = show_number(f.type, match[0])
        match kind:
            case "ternary":
                part.value, part.mask = first, show_number(f.type, match[1])
            case "lpm":
                part.value, part.prefix_len = first, match[1]
            case "range":
                part.low, part.high = first, show_number(f.type, match[1])
            case "optional":
                part.value, part.is_valid = first, part_valid
            case _:
                part.value = first


# -- data ---------------------------------------------------------------------------------------


def read_action(table: TableSchema, message: Any) -> ActionSpec | None:
    """Return the action of a TableData message, None if it has none. Raises RpcError."""
    if not message.action_id:
        return None
    found = table.action_by_id.get(message.action_id)
    if found is None:
        names = ", ".join(f"{a.name} ({a.id})" for a in table.actions) or "none"
        raise invalid_for(table, f"no action has id {message.action_id}; actions: {names}")
    return found


def read_data(table: TableSchema, message: Any) -> Data:
    """Decode data to write. Parameters of an action that are not given are 0, as with the chip's
    driver, which controllers rely on. Raises RpcError."""
    action = read_action(table, message)
    values: dict[str, Any] = {}
    for given in message.fields:
        f = _field(table, action, given.field_id)
        if f.read_only:
            raise invalid_for(table, f"data field {f.name} is read-only")
        value = _value(table, f, given)
        if f.a_value_a_pipe:
            values.setdefault(f.name, []).append(value)
        else:
            values[f.name] = value
    for f in action.data if action is not None else ():
        if f.mandatory:
            values.setdefault(f.name, [] if f.repeated else 0)
    return Data(action, values)


def wanted_fields(table: TableSchema, message: Any) -> set[str] | None:
    """Return the names of the data fields that a read asks for; None for all. Raises RpcError."""
    action = read_action(table, message)
    if not message.fields:
        return None
    return {_field(table, action, given.field_id).name for given in message.fields}


def show_data(table: TableSchema, data: Data, wanted: set[str] | None, out: Any) -> None:
    """Encode data into a TableData message, only the fields wanted (None: all)."""
    fields: Iterable[DataField] = table.data
    if data.action is not None:
        out.action_id = data.action.id
        fields = (*data.action.data, *table.data)
    for f in fields:
        if f.name in data.values and (wanted is None or f.name in wanted):
            value = data.values[f.name]
            for one in value if f.a_value_a_pipe else (value,):
                show_value(f, one, out.fields.add())


def _field(table: TableSchema, action: ActionSpec | None, number: int) -> DataField:
    own = {f.id: f for f in action.data} if action is not None else {}
    found = own.get(number) or table.data_by_id.get(number)
    if found is None:
        known = [f"{f.name} ({f.id})" for f in (*own.values(), *table.data)]
        where = f"action {action.name}: " if action is not None else ""
        there = ", ".join(known) or "none"
        raise invalid_for(table, f"{where}no data field has id {number}; fields: {there}")
    return found


def _value(table: TableSchema, f: DataField, given: Any) -> Any:
    where = f"data field {f.name}"
    wanted, found = form(f), given.WhichOneof("value")
    if f.repeated and f.type.name == "bytes" and found == "stream":
        return list(given.stream)
    if f.repeated and found in _LISTS and not getattr(given, found).val:
        return []  # of whatever kind: some clients send empty lists as numbers
    if found != wanted:
        raise invalid_for(table, f"{where} takes {wanted}, not {found or 'nothing'}")
    value = getattr(given, wanted)
    if f.container:
        contained = {inner.id: inner for inner in f.container}
        return [_contained(table, where, contained, item) for item in value.container]
    if f.repeated:
        items = list(value.val)
        if f.type.bits:
            for item in items:
                if item >> f.type.bits:
                    raise invalid_for(table, f"{where}: {item} does not fit {f.type.bits} bits")
        for item in items:
            _check_choice(table, where, f.type, item)
        return items
    if wanted == "stream":
        return read_number(table, where, f.type, value)
    _check_choice(table, where, f.type, value)
    return value


def _check_choice(table: TableSchema, where: str, t: FieldType, value: Any) -> None:
    if t.choices and value not in t.choices:
        raise invalid_for(table, f"{where}: {value!r} is not one of {', '.join(t.choices)}")


def _contained(
    table: TableSchema, where: str, known: Mapping[int, DataField], item: Any
) -> dict[str, Any]:
    values = {}
    for given in item.val:
        if given.field_id not in known:
            raise invalid_for(table, f"{where}: its container has no field {given.field_id}")
        f = known[given.field_id]
        values[f.name] = _value(table, f, given)
    return values


def form(f: DataField) -> str:
    """Return the field of a DataField message that holds values of a data field."""
    if f.container:
        return "container_arr_val"
    kind = {"bool": "bool", "float": "float", "string": "str", "enum": "str"}.get(f.type.name, "")
    if f.repeated:
        return f"{kind or 'int'}_arr_val"
    return f"{kind}_val" if kind else "stream"


def show_value(f: DataField, value: Any, out: Any) -> None:
    """Encode a value into a DataField message."""
    out.field_id = f.id
    kind = form(f)
    if f.container:
        out.container_arr_val.SetInParent()
        known = {inner.name: inner for inner in f.container}
        for item in value:
            container = out.container_arr_val.container.add()
            for name, inner in item.items():
                show_value(known[name], inner, container.val.add())
    elif f.repeated:
        getattr(out, kind).SetInParent()
        getattr(out, kind).val.extend(value)
    elif kind == "stream":
        out.stream = show_number(f.type, value)
    else:
        setattr(out, kind, value)


def read_number(table: TableSchema, where: str, t: FieldType, data: bytes) -> int:
    """Decode a number: big-endian bytes, of any length. Raises RpcError if it does not fit."""
    value = int.from_bytes(data, "big")
    if not data or value >> t.bits:
        what = f"{value} does not fit {t.bits} bits" if data else "the value is empty"
        raise invalid_for(table, f"{where}: {what}")
    if t.signed and value >> (t.bits - 1):
        value -= 1 << t.bits
    return value


def show_number(t: FieldType, value: int) -> bytes:
    """Encode a number in the bytes that its type takes."""
    return (value & ((1 << t.bits) - 1)).to_bytes(max(1, t.size), "big")


def target_pipes(target: Any, pipes: int) -> range:
    """Return the pipes that a request is for. Raises RpcError for one that does not exist."""
    number = target.pipe_id
    if number == ALL_PIPES:
        return range(pipes)
    if number >= pipes:
        what = f"pipe {number} does not exist: pipes are 0 to {pipes - 1}, {ALL_PIPES} all of them"
        raise invalid(what)
    return range(number, number + 1)


ALL_PIPES = 0xFFFF
"""The pipe of a request that is for all of them."""
