"""The catalog of a program: its objects by P4Info id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gradplane._p4runtime import p4i
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Type, bit_width
from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.digest_calls import digest_calls
from gradplane.switch.p4runtime.p4info import (
    PRIORITY_KINDS,
    SELECTOR_KIND,
    build_p4info,
    control_plane_types,
    is_hidden,
    listed_actions,
)
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.p4runtime.typespec import flat_fields
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.translations import ErrorNames, Translation

_SHOWN = 12  # choices listed in a message


@dataclass(frozen=True, slots=True)
class Value:
    """The encoding of a match field's, parameter's or metadata field's values.

    `width`: bits in the switch. `wire`: bits in messages, which differ for a translated type; 0:
    text, by `names`; another translation keeps the number.
    """

    id: int
    name: str
    width: int
    wire: int
    signed: bool = False
    names: Translation | None = None

    def read(self, data: bytes, where: str) -> int:
        """Decode a received value to an unsigned number of `width` bits.

        Raises RpcError if it is invalid.
        """
        if self.wire == self.width:
            return from_bytes(data, self.width, where)
        if self.names is not None:
            return self.names.number(_name(data, where))
        number = from_bytes(data, self.wire, where)
        if number >> self.width:
            raise RpcError("OUT_OF_RANGE", f"{where}: {number} does not fit bit<{self.width}>")
        return number

    def read_mask(self, data: bytes, where: str) -> int:
        """Decode a mask: that of a name is a number, in decimal digits. Raises RpcError."""
        if self.names is None:
            return self.read(data, where)
        text = _name(data, where)
        if not (
            text.isascii() and text.isdigit() and len(text) < 40 and not int(text) >> self.width
        ):
            raise invalid(
                f"{where}: {text!r} is a name; a mask of names is decimal digits, a number of"
                f" bit<{self.width}>"
            )
        return int(text)

    def __str__(self) -> str:
        return self.name or str(self.id)  # a value set of bits has one field, without a name

    def show(self, bits: int) -> bytes:
        """Encode a value, given as its unsigned bits, as the canonical string."""
        if self.names is not None:
            return self.names.name(bits).encode()
        return to_bytes(bits, self.wire)

    def show_mask(self, bits: int) -> bytes:
        """Encode a mask, as `read_mask` takes it."""
        return self.show(bits) if self.names is None else str(bits).encode()


_LONGEST_NAME = 256


def _name(data: bytes, where: str) -> str:
    try:
        if len(data) <= _LONGEST_NAME:
            return data.decode()
        reason = f"{len(data)} bytes, the most are {_LONGEST_NAME}"
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
    raise invalid(f"{where}: {data[:40]!r} is no name in UTF-8: {reason}")


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action; `params` are in the order of the source."""

    id: int
    name: str
    params: tuple[Value, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TableAction:
    """An action of a table; `index` is its position there."""

    index: int
    info: ActionInfo
    scope: p4i.ActionRef.Scope.ValueType

    def __str__(self) -> str:
        return self.info.name


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A match field; `position` is its place in Entry.matches."""

    position: int
    kind: str
    value: Value

    def __str__(self) -> str:
        return f"{self.value.name} ({self.kind})"


@dataclass(frozen=True, slots=True)
class ListedActions:
    """The actions that a table, or members of an action profile, can have, by id.

    owner: "table NAME" or "action profile NAME", for errors.
    """

    owner: str
    by_id: Mapping[int, TableAction]


@dataclass(frozen=True, slots=True)
class TableInfo:
    id: int
    table: ir.Table
    fields: Mapping[int, FieldInfo]
    actions: ListedActions
    weights_disallowed: bool = False  # of its selector's members
    counts_members: bool = False  # its selector's sizes are numbers of members, not sums of weights

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def has_priority(self) -> bool:
        return any(f.kind in PRIORITY_KINDS for f in self.fields.values())

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    id: int
    name: str
    fields: Mapping[int, FieldInfo]
    size: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Extern:
    """A counter, meter, register, action profile or digest.

    `data`: the type of a cell or message at the controller; `inside`: the same in the switch.
    """

    id: int
    name: str
    size: int = 0
    data: Type | None = None
    inside: Type | None = None
    tables: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class HeaderInfo:
    """The packet_in or packet_out header: its fields in order, hidden padding included."""

    name: str
    fields: tuple[Value, ...]

    @property
    def size(self) -> int:
        """Bytes of the header on the CPU port."""
        return (sum(f.width for f in self.fields) + 7) // 8


@dataclass(slots=True)
class Catalog:
    """A program and its P4Info, with the objects by id."""

    program: ir.Program
    p4info: p4i.P4Info = field(init=False)
    fixed_names: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    translations: dict[str, Translation] = field(init=False)
    tables: dict[int, TableInfo] = field(init=False)
    actions: dict[int, ActionInfo] = field(init=False)
    value_sets: dict[int, ValueSetInfo] = field(init=False)
    profiles: dict[int, Extern] = field(init=False)
    member_actions: dict[int, ListedActions] = field(init=False)  # by the profile's id
    counters: dict[int, Extern] = field(init=False)
    meters: dict[int, Extern] = field(init=False)
    registers: dict[int, Extern] = field(init=False)
    digests: dict[int, Extern] = field(init=False)
    headers: dict[str, HeaderInfo] = field(init=False)
    port_names: Translation | None = field(init=False)  # see _port_names
    meter_types: dict[str, int] = field(init=False)  # by name, direct meters included

    def __post_init__(self) -> None:
        program = self.program
        self.p4info = info = build_p4info(program)
        self.translations = _translations(program, self.fixed_names)
        names = {**self.translations, ir.ERROR_TYPE: ErrorNames(program.errors)}
        self.actions = _actions(program, info, names)
        self.tables = _tables(program, info, self.actions, names)
        _note_sources_values(self.tables.values())
        self.value_sets = _value_sets(program, info, names)
        cells = {
            e.name: (e.cell or e.type_args[0], control_plane_types(e)[0])
            for e in program.externs
            if e.type_args
        }
        self.profiles = _externs(info.action_profiles)
        self.member_actions = {
            number: _member_actions(extern, self.tables) for number, extern in self.profiles.items()
        }
        self.counters = _externs(info.counters)
        self.meters = _externs(info.meters)
        self.registers = _externs(info.registers, cells)
        self.digests = _externs(info.digests, cells | digest_calls(program))
        self.headers = _headers(program, info, names)
        self.port_names = _port_names(self.headers.values())
        meters = [*info.meters, *info.direct_meters]
        self.meter_types = {m.preamble.name: m.spec.type for m in meters}

    def table_named(self, name: str) -> TableInfo | None:
        return next((t for t in self.tables.values() if t.name == name), None)

    def digest_of(self, name: str, data: Type) -> Extern | None:
        """Return the digest of this name.

        The unnamed ones of v1model are found by the type of their data.
        """
        known = self.digests.values()
        named = next((d for d in known if d.name == name), None)
        return named or next((d for d in known if d.inside == data), None)


_Info = TypeVar("_Info")


def find(objects: Mapping[int, _Info], number: int, what: str, where: str = "") -> _Info:
    """Return the object of this id.

    Raises RpcError, which lists the existing ones, where there is none: as in PI NOT_FOUND for a
    digest, else INVALID_ARGUMENT. where: the object that it is part of.
    """
    found = objects.get(number)
    if found is None:
        shown = [f"{o} ({i})" for i, o in objects.items()][:_SHOWN]
        more = ", ..." if len(objects) > _SHOWN else ""
        there = f"there are: {', '.join(shown)}{more}" if shown else "there are none"
        prefix = f"{where}: " if where else ""
        code, pi_text = "INVALID_ARGUMENT", "" if where else "Invalid P4 id"
        if what == "digest":
            code, pi_text = "NOT_FOUND", f"{number} is not a valid digest id"
        raise RpcError(code, f"{prefix}no {what} has id {number}; {there}", pi_text)
    return found


Translations = Mapping[str, Translation]
"""The names of values, by the names of the types."""


def _value(
    listed: p4i.MatchField | p4i.Action.Param | p4i.ControllerPacketMetadata.Metadata,
    t: Type,
    names: Translations,
    declared: str = "",
) -> Value:
    signed = isinstance(t, Bits) and t.signed
    translated = names.get(declared or listed.type_name.name)
    return Value(listed.id, listed.name, bit_width(t) or 0, listed.bitwidth, signed, translated)


_MAPPING = re.compile(r'\{\s*"([^"]*)"\s*,\s*(0[xX][0-9a-fA-F]+|[0-9]+)\s*\}')


def _translations(
    program: ir.Program, fixed: Mapping[str, Mapping[str, int]]
) -> dict[str, Translation]:
    """Return the names of translated types, those that are fixed by the program or by `fixed`.

    A program says @p4runtime_translation_mappings({ {"", 0}, ... }). Raises RpcError.
    """
    texts = {t.name: t for t in program.types.values() if t.uri is not None and not t.sdn_width}
    unknown = [name for name in fixed if name not in texts]
    if unknown:
        there = ", ".join(texts) or "none"
        raise invalid(
            f"names are given for {unknown[0]}, which is no type that is translated to strings;"
            f" there are: {there}"
        )
    found = {}
    for name, t in texts.items():
        found[name] = Translation(name, t.width)
        bodies = [a.body for a in t.annotations if a.name == "p4runtime_translation_mappings"]
        own = {text: int(number, 0) for body in bodies for text, number in _MAPPING.findall(body)}
        try:
            for text, number in {**own, **fixed.get(name, {})}.items():
                found[name].fix(text, number)
        except TableError as error:
            raise invalid(error.message) from error
    return found


def _actions(program: ir.Program, info: p4i.P4Info, names: Translations) -> dict[int, ActionInfo]:
    sources = {action.name: action for action in listed_actions(program)}
    out = {}
    for listed in info.actions:
        params = [
            _value(p, source.type, names, source.type_name)
            for p, source in zip(listed.params, sources[listed.preamble.name].params, strict=True)
        ]
        out[listed.preamble.id] = ActionInfo(
            listed.preamble.id, listed.preamble.name, tuple(params)
        )
    return out


def _tables(
    program: ir.Program, info: p4i.P4Info, actions: Mapping[int, ActionInfo], names: Translations
) -> dict[int, TableInfo]:
    sources = {t.name: t for t in program.tables}
    profiles = {p.preamble.id: p for p in info.action_profiles}
    out = {}
    for listed in info.tables:
        source = sources[listed.preamble.name]
        choices = {
            ref.id: TableAction(index, actions[ref.id], ref.scope)
            for index, ref in enumerate(listed.action_refs)
            if ref.id in actions
        }
        listed_actions = ListedActions(f"table {source.name}", choices)
        fields = _fields(listed.match_fields, source.keys, names)
        profile = profiles.get(listed.implementation_id, p4i.ActionProfile())
        out[listed.preamble.id] = TableInfo(
            listed.preamble.id, source, fields, listed_actions, profile.weights_disallowed,
            profile.HasField("sum_of_members"),
        )  # fmt: skip
    return out


def _note_sources_values(tables: Iterable[TableInfo]) -> None:
    """Note the values of the source's entries and default actions, so that no other name gets
    them."""
    for info in tables:
        entries = info.table.entries
        calls = [info.table.default, *(entry.action for entry in entries)]
        for choice in info.actions.by_id.values():
            for at, param in enumerate(choice.info.params):
                if param.names is not None:
                    given = (call.args[at] for call in calls if call.index == choice.index)
                    param.names.meant.update(map(int, given))
        for key in info.fields.values():
            if key.value.names is not None:
                for entry in entries:
                    for match in entry.matches[key.position : key.position + 1]:
                        if isinstance(match, ir.MatchValue) and isinstance(match.value, ir.Const):
                            key.value.names.meant.add(int(match.value.value))


def _member_actions(profile: Extern, tables: Mapping[int, TableInfo]) -> ListedActions:
    """Return the actions of a profile's members, numbered as ActionProfile.attach does it."""
    numbers: dict[str, int] = {}
    found: dict[int, TableAction] = {}
    for table in (t for number, t in tables.items() if number in profile.tables):
        for number, choice in table.actions.by_id.items():
            at = numbers.setdefault(choice.info.name, len(numbers))
            if number not in found or found[number].scope == p4i.ActionRef.DEFAULT_ONLY:
                found[number] = TableAction(at, choice.info, choice.scope)
    return ListedActions(f"action profile {profile.name}", found)


def _fields(
    listed: Iterable[p4i.MatchField], keys: Iterable[ir.Key], names: Translations
) -> dict[int, FieldInfo]:
    visible = [key for key in keys if key.match_kind != SELECTOR_KIND]
    return {
        f.id: FieldInfo(i, key.match_kind, _value(f, key.expr.type, names, key.type_name))
        for i, (f, key) in enumerate(zip(listed, visible, strict=True))
    }


def _value_sets(
    program: ir.Program, info: p4i.P4Info, names: Translations
) -> dict[int, ValueSetInfo]:
    return {
        listed.preamble.id: ValueSetInfo(
            listed.preamble.id,
            source.name,
            _fields(listed.match, source.fields, names),
            source.size,
        )
        for listed, source in zip(info.value_sets, program.value_sets, strict=True)
    }


def _externs(
    listed: Iterable[object], types: Mapping[str, tuple[Type, Type]] | None = None
) -> dict[int, Extern]:
    out = {}
    for extern in listed:
        preamble: p4i.Preamble = extern.preamble  # type: ignore[attr-defined]
        inside, data = (types or {}).get(preamble.name, (None, None))
        out[preamble.id] = Extern(
            preamble.id,
            preamble.name,
            getattr(extern, "size", 0),
            data,
            inside,
            tuple(getattr(extern, "table_ids", ())),
        )
    return out


def _headers(program: ir.Program, info: p4i.P4Info, names: Translations) -> dict[str, HeaderInfo]:
    """Return the controller headers by name.

    A field that is @hidden has id 0 here: zero on the way out, skipped on the way in.
    """
    visible = [h for h in program.controller_headers if not is_hidden(h.annotations)]
    out = {}
    for listed, source in zip(info.controller_packet_metadata, visible, strict=True):
        numbers = {m.name: m for m in listed.metadata}
        fields = []
        for name, t in flat_fields(source):
            known = numbers.get(name)
            width = bit_width(t) or 0
            fields.append(_value(known, t, names) if known else Value(0, name, width, width))
        out[listed.preamble.name] = HeaderInfo(listed.preamble.name, tuple(fields))
    return out


def _port_names(headers: Iterable[HeaderInfo]) -> Translation | None:
    """Return the names of ports: of the type that a controller header's port has, as on SAI.

    Replicas and watched ports, which have no type, have them, too.
    """
    fields = (f for header in headers for f in header.fields)
    names = (f.names for f in fields if f.name in ("ingress_port", "egress_port"))
    return next((found for found in names if found is not None), None)
