"""The facts that only P4Info has, not the JSON, as annotations and types of the IR.

Ids become `@id(n)` annotations, so that the program describes itself as the P4Info does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from gradplane._p4runtime import ACTION_SCOPES, p4i, p4t
from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    Annotation,
    Annotations,
    Bits,
    Enum,
    Field,
    Header,
    NewType,
    SerEnum,
    Struct,
    Type,
    Varbit,
)

HIDDEN = Annotation("hidden")
_EXTERNS = {
    "counter": "counters",
    "direct_counter": "direct_counters",
    "meter": "meters",
    "direct_meter": "direct_meters",
    "register": "registers",
    "action_profile": "action_profiles",
    "action_selector": "action_profiles",
}
_UNITS = {1: "bytes", 2: "packets", 3: "packets_and_bytes"}
_KINDS = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}
_OTHER_SECTIONS = ("pkg_info", "type_info", "externs")  # v1model has no externs of that kind
_WIDTHS = ("bitwidth", "max_bitwidth", "sdn_bitwidth")  # fields of P4Info
_GENERATED = "tbl_"  # what p4c calls a table that it made of an action's call


def _id(number: int) -> Annotation:
    return Annotation("id", (number,), body=str(number))


class ControlPlane:
    """The objects of a P4Info by section and name; None: there is no P4Info."""

    def __init__(self, p4info: p4i.P4Info | None) -> None:
        self._info = p4info if p4info is not None and p4info.ListFields() else None
        self._objects: dict[str, dict[str, Any]] = {}
        self._widths: dict[str, int] = {}  # of translated types, in the switch
        for descriptor, value in () if self._info is None else self._info.ListFields():
            if descriptor.name not in _OTHER_SECTIONS:
                self._objects[descriptor.name] = {o.preamble.name: o for o in value}

    def _find(self, section: str, name: str) -> Any | None:
        return self._objects.get(section, {}).get(name)

    # -- objects --------------------------------------------------------------------------------

    def annotations(self, section: str, name: str) -> Annotations:
        """Return an object's id; @hidden if the P4Info does not have it."""
        if self._info is None:
            return ()
        found = self._find(section, name)
        return (HIDDEN,) if found is None else (_id(found.preamble.id),)

    def is_generated(self, table: Item) -> bool:
        """Return whether the compiler made a table, which controllers do not see."""
        name = table["name"].text
        if self._info is not None:
            return self._find("tables", name) is None
        return name.startswith(_GENERATED) and not table.elements("key")

    def extern_annotations(self, kind: str, name: str) -> Annotations:
        """Return the id of an extern instance, and what belongs to a selector's groups."""
        found = self._find(_EXTERNS[kind], name)
        if found is None:
            return ()
        notes = [_id(found.preamble.id)]
        if kind == "action_selector":
            if found.max_group_size:
                notes.append(_number("max_group_size", found.max_group_size))
            if found.HasField("sum_of_members"):
                notes.append(Annotation("selector_size_semantics", body="sum_of_members"))
                most = found.sum_of_members.max_member_weight
                if most:
                    notes.append(_number("max_member_weight", most))
        return tuple(notes)

    def counter_unit(self, name: str) -> str:
        """Return what a counter counts; BMv2's count both."""
        found = self._find("counters", name) or self._find("direct_counters", name)
        return _UNITS.get(found.spec.unit if found is not None else 3, "packets_and_bytes")

    # -- tables ---------------------------------------------------------------------------------

    def key(
        self, table: str, at: int, name: str, kind: str, width: int
    ) -> tuple[str, Annotations, str]:
        """Return the match kind of a table's field, its annotations and its declared type."""
        found = self._find("tables", table)
        fields = [] if found is None else found.match_fields
        field = next((f for f in fields if f.name == name), None)
        if field is None and at < len(fields):
            field = fields[at]
        if field is None:
            return kind, (), ""
        given = _KINDS.get(field.match_type, kind)
        if {given, kind} == {"ternary", "optional"}:  # one kind in BMv2
            kind = given
        self._widths[field.type_name.name] = width
        error = not field.bitwidth and not field.type_name.name and self._has_errors
        return kind, (_id(field.id),), ir.ERROR_TYPE if error else field.type_name.name

    @property
    def _has_errors(self) -> bool:
        return self._info is not None and bool(self._info.type_info.error.members)

    def key_name(self, table: str, at: int, name: str) -> str:
        """Return a field's name, by position where the JSON has none of the P4Info's."""
        found = self._find("tables", table)
        if found is None or any(f.name == name for f in found.match_fields):
            return name
        return found.match_fields[at].name if at < len(found.match_fields) else name

    def reference_annotations(self, table: str, action: str) -> Annotations:
        """Return how a table may use an action."""
        found, known = self._find("tables", table), self._find("actions", action)
        if found is None or known is None:
            return ()
        for reference in found.action_refs:
            if reference.id == known.preamble.id:
                return tuple(
                    Annotation(n) for n, s in ACTION_SCOPES.items() if s == reference.scope
                )
        return ()

    def table_size(self, table: str) -> int:
        """Return how many entries a table can have; 0 if the P4Info does not have it.

        BMv2's JSON has the number of the source's entries, for a table that has some."""
        found = self._find("tables", table)
        return 0 if found is None else int(found.size)

    def has_const_entries(self, table: str) -> bool:
        """Return whether controllers may not change a table that has entries in the source."""
        found = self._find("tables", table)
        return True if found is None else bool(found.is_const_table)

    def parameter(self, action: str, name: str, width: int) -> tuple[Annotations, str]:
        """Return the annotations and the declared type of an action's parameter."""
        found = self._find("actions", action)
        params = [] if found is None else found.params
        param = next((p for p in params if p.name == name), None)
        if param is None:
            return (), ""
        self._widths[param.type_name.name] = width
        return (_id(param.id),), param.type_name.name

    # -- value sets -----------------------------------------------------------------------------

    def value_set_types(self, name: str) -> list[Type]:
        """Return the types of a value set's fields."""
        found = self._find("value_sets", name)
        return [] if found is None else [Bits(f.bitwidth) for f in found.match]

    def value_set_size(self, name: str) -> int:
        """Return how many members a value set can have."""
        found = self._find("value_sets", name)
        return 1024 if found is None else int(found.size)

    def value_set_fields(self, name: str, types: Sequence[Type]) -> list[ir.Key]:
        """Return the fields of a value set."""
        found = self._find("value_sets", name)
        fields = [] if found is None else list(found.match)
        if len(fields) != len(types):
            names = [""] if len(types) == 1 else [f"f{i}" for i in range(len(types))]
            return [ir.Key(n, ir.Zero(t), "exact") for n, t in zip(names, types, strict=True)]
        return [
            ir.Key(
                f.name,
                ir.Zero(t),
                _KINDS.get(f.match_type, "exact"),
                (_id(f.id),),
                f.type_name.name,
            )
            for f, t in zip(fields, types, strict=True)
        ]

    # -- types ----------------------------------------------------------------------------------

    def cell_types(self, name: str) -> list[Type]:
        """Return the declared types of a register's cells and index."""
        found = self._find("registers", name)
        if found is None:
            return []
        cell = self._type(found.type_spec)
        if cell is None:
            return []
        index = found.index_type_name.name
        declared = self._info is not None and index in self._info.type_info.new_types
        return [cell, NewType(index, Bits(32))] if declared else [cell]

    def is_tuple_digest(self, name: str) -> bool:
        """Return whether a learn list has the name that p4c gives one of a tuple.

        In P4Info such digests have numbers instead."""
        if self._info is not None:
            return self._find("digests", name) is None
        return name.startswith("tuple_")

    def digest_type(self, name: str, types: Sequence[Type]) -> list[str]:
        """Return the names of a digest's fields; none if the P4Info does not have them."""
        found = self._find("digests", name)
        if found is None:
            return []
        spec = found.type_spec
        if spec.HasField("struct") and self._info is not None:
            members = self._info.type_info.structs[spec.struct.name].members
            if len(members) == len(types):
                return [m.name for m in members]
        return []

    def declared_types(self) -> tuple[dict[str, ir.TypeInfo], dict[str, SerEnum | Enum]]:
        """Return the `type` declarations, and the enums, by name."""
        types: dict[str, ir.TypeInfo] = {}
        enums: dict[str, SerEnum | Enum] = {}
        if self._info is None:
            return types, enums
        info = self._info.type_info
        for name, spec in info.new_types.items():
            if spec.HasField("translated_type"):
                translated = spec.translated_type
                text = translated.HasField("sdn_string")
                width = self._widths.get(name, 0)
                sdn = None if text else translated.sdn_bitwidth
                types[name] = ir.TypeInfo(name, width, translated.uri, sdn)
            else:
                t = self._type(spec.original_type)
                types[name] = ir.TypeInfo(name, t.width if isinstance(t, Bits) else 1)
        for name, enum in info.serializable_enums.items():
            values = {m.name: int.from_bytes(m.value, "big") for m in enum.members}
            enums[name] = SerEnum(name, Bits(enum.underlying_type.bitwidth), values)
        for name, enum in info.enums.items():
            enums[name] = Enum(name, tuple(m.name for m in enum.members))
        return types, enums

    def _type(self, spec: p4t.P4DataTypeSpec) -> Type | None:
        """Return a type that P4Info describes; None for those that no register has."""
        assert self._info is not None
        info = self._info.type_info
        match spec.WhichOneof("type_spec"):
            case "bitstring":
                return _bitstring(spec.bitstring)
            case "bool":
                return BOOL
            case "error":
                return ERROR
            case "serializable_enum":
                name = spec.serializable_enum.name
                enum = info.serializable_enums[name]
                values = {m.name: int.from_bytes(m.value, "big") for m in enum.members}
                return SerEnum(name, Bits(enum.underlying_type.bitwidth), values)
            case "enum":
                return Enum(
                    spec.enum.name, tuple(m.name for m in info.enums[spec.enum.name].members)
                )
            case "struct":
                members = info.structs[spec.struct.name].members
                types = [(m.name, self._type(m.type_spec)) for m in members]
                if all(t is not None for _, t in types):
                    return Struct(spec.struct.name, tuple(Field(n, t) for n, t in types if t))
        return None

    # -- headers for the controller -------------------------------------------------------------

    def controller_headers(self) -> list[Header]:
        """Return the headers of packet-ins and packet-outs."""
        found = []
        for name, listed in self._objects.get("controller_packet_metadata", {}).items():
            fields = tuple(Field(m.name, Bits(m.bitwidth), (_id(m.id),)) for m in listed.metadata)
            notes = (Annotation("controller_header", (name,)), _id(listed.preamble.id))
            found.append(Header(name, fields, notes))
        return found


def impossible_widths(message: Message, place: str) -> Iterator[str]:
    """Yield the widths in a P4Info that no type can have: "P4Info.value_sets[0]...bitwidth is -1".

    place: of the message.
    """
    for descriptor, value in message.ListFields():
        here = f"{place}.{descriptor.name}"
        if descriptor.name in _WIDTHS and not 0 <= value <= MAX_WIDTH:
            yield f"{here} is {value}"
        if descriptor.message_type is None:
            continue
        if isinstance(value, Message):
            yield from impossible_widths(value, here)
            continue
        is_map = isinstance(value, Mapping)
        for key, inner in value.items() if is_map else enumerate(value):
            yield from impossible_widths(inner, f"{here}[{key}]")


def _number(name: str, value: int) -> Annotation:
    return Annotation(name, (value,), body=str(value))


def _bitstring(spec: p4t.P4BitstringLikeTypeSpec) -> Type:
    if spec.HasField("int"):
        return Bits(spec.int.bitwidth, True)
    if spec.HasField("varbit"):
        return Varbit(spec.varbit.max_bitwidth)
    return Bits(spec.bit.bitwidth)
