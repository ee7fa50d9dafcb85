"""The layout of a program's variables in BMv2: header instances, stacks, unions and fields.

BMv2 has one set of header instances for a packet's whole path. The blocks' parameters share them by
position; local variables have their own. A struct has no instance: its members are laid out one by
one, headers as instances, other fields in a metadata header (`scalars` for local variables).
Nor are there arrays but stacks: an array is as a struct of its elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Bool,
    Field,
    Fields,
    Header,
    Stack,
    Struct,
    Type,
    Union,
    Varbit,
)
from gradplane.switch.source import Span, refuse

Json = dict[str, Any]
SCALARS = "scalars"


@dataclass(frozen=True, slots=True)
class FieldAt:
    """A field: header instance and field name."""

    header: str
    name: str
    type: Type

    @property
    def reference(self) -> list[str]:
        """The field as JSON refers to it."""
        return [self.header, self.name]


@dataclass(frozen=True, slots=True)
class HeaderAt:
    """A header instance."""

    name: str
    type: Header

    def member(self, index: int) -> Place:
        """Return the place of a field, which may be a struct of fields."""
        return _inside(self.name, self.type.fields[index].name, self.type.fields[index].type)


@dataclass(frozen=True, slots=True)
class UnionAt:
    """A header union instance."""

    name: str
    type: Union

    def member(self, index: int) -> HeaderAt:
        """Return the place of one of its headers."""
        one = self.type.fields[index]
        assert isinstance(one.type, Header), one.type
        return HeaderAt(f"{self.name}.{one.name}", one.type)


@dataclass(frozen=True, slots=True)
class StackAt:
    """A stack of headers or unions."""

    name: str
    type: Stack

    def element(self, index: int) -> Place:
        """Return the place of element `index`."""
        name, kind = f"{self.name}[{index}]", self.type.element
        return UnionAt(name, kind) if isinstance(kind, Union) else HeaderAt(name, _header(kind))


@dataclass(frozen=True, slots=True)
class StructAt:
    """A struct or an array: the places of its members, in order."""

    members: tuple[Place, ...]
    type: Fields | Array

    def member(self, index: int) -> Place:
        """Return the place of a member."""
        return self.members[index]


Place = FieldAt | HeaderAt | UnionAt | StackAt | StructAt


def _header(t: Type) -> Header:
    assert isinstance(t, Header), t
    return t


def _inside(header: str, name: str, t: Type) -> Place:
    """Return the place of a header's field; a struct or array in it is laid out in place."""
    if isinstance(t, Struct | Array):
        return StructAt(tuple(_inside(header, *part) for part in named_parts(name, t)), t)
    return FieldAt(header, name, t)


def named_parts(name: str, t: Fields | Array) -> Iterator[tuple[str, Type]]:
    """Yield the names and types of the members of a variable or field of some name."""
    if isinstance(t, Array):
        yield from ((f"{name}[{i}]", t.element) for i in range(t.size))
    else:
        yield from ((f"{name}.{f.name}" if name else f.name, f.type) for f in t.fields)


def flat_fields(t: Fields | Array, name: str = "") -> Iterator[tuple[str, Type]]:
    """Yield the names and types of a header's fields, those of structs inside it one by one."""
    for part, kind in named_parts(name, t):
        if isinstance(kind, Struct | Array):
            yield from flat_fields(kind, part)
        else:
            yield part, kind


def scalar_width(t: Type) -> int:
    """Return the width of a scalar in bits."""
    assert isinstance(t, Bits | Bool | Varbit), t
    return 1 if isinstance(t, Bool) else t.width


@dataclass
class _Metadata:
    """A header instance that only holds fields, and grows while the program is translated."""

    fields: list[list[Any]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def add(self, name: str, t: Type) -> str:
        unique, number = name, 0
        while unique in self.taken:
            number += 1
            unique = f"{name}_{number}"
        self.taken.add(unique)
        self.fields.append([unique, scalar_width(t), False])
        return unique


class Storage:
    """The places of all variables, and the JSON sections that declare them."""

    def __init__(self, span: Span, reserved: Sequence[str] = ()) -> None:
        self._span = span  # of the program, which errors refer to
        self._places: dict[ir.Var, Place] = {}
        self._types: dict[Fields, str] = {}
        self._headers: list[Json] = []
        self._header_types: list[Json] = []
        self._stacks: list[Json] = []
        self._union_types: dict[Union, Json] = {}
        self._unions: list[Json] = []
        self._union_stacks: list[Json] = []
        self._names: set[str] = {SCALARS, *reserved}  # of header instances
        self._metadata: dict[str, _Metadata] = {SCALARS: _Metadata()}

    # -- places ---------------------------------------------------------------------------------

    def share(self, variables: list[ir.Var], place: Place) -> None:
        """Give variables, such as one parameter of all blocks, the same place."""
        for variable in variables:
            self._places[variable] = place

    def declare(self, name: str, t: Type, header: str = SCALARS) -> Place:
        """Lay out a variable; its fields outside headers go into the metadata header `header`."""
        if isinstance(t, Struct) or (isinstance(t, Array) and not isinstance(t, Stack)):
            return StructAt(tuple(self.declare(*p, header) for p in named_parts(name, t)), t)
        if isinstance(t, Header):
            return self._instance(self._unique(name), t)
        if isinstance(t, Union):
            return self._union(self._unique(name), t)
        if isinstance(t, Stack):
            return self._stack(self._unique(name), t)
        if isinstance(t, Varbit):
            return self._varbit(self._unique(name), t)
        return FieldAt(header, self._fields_of(header).add(name, t), t)

    def place(self, variable: ir.Var) -> Place:
        """Return the place of a variable; a local one is laid out when it is first met."""
        if variable not in self._places:
            self._places[variable] = self.declare(variable.name, variable.type)
        return self._places[variable]

    def temporary(self, t: Type, name: str = "tmp") -> FieldAt:
        """Return a new field for a scalar."""
        place = self.declare(name, t)
        assert isinstance(place, FieldAt), t
        return place

    # -- declarations ---------------------------------------------------------------------------

    def _fields_of(self, header: str) -> _Metadata:
        if header not in self._metadata:
            self._names.add(header)
        return self._metadata.setdefault(header, _Metadata())

    def _unique(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        return unique

    def _instance(self, name: str, t: Header) -> HeaderAt:
        self._names.add(name)
        self._declare_header(name, self._header_type(t), metadata=False)
        return HeaderAt(name, t)

    def _varbit(self, name: str, t: Varbit) -> FieldAt:
        """Give a varbit outside headers a header of its own: BMv2 has one in each at most."""
        alone = Header(f"$varbit{t.width}", (Field("field", t),))
        self._declare_header(name, self._header_type(alone), metadata=True)
        return FieldAt(name, "field", t)

    def _declare_header(self, name: str, kind: str, metadata: bool) -> int:
        number = len(self._headers)
        entry = {"name": name, "id": number, "header_type": kind, "metadata": metadata}
        self._headers.append(entry | {"pi_omit": True})
        return number

    def _header_type(self, t: Header) -> str:
        if t not in self._types:
            self._types[t] = str(t)
            fields: list[list[Any]] = []
            longest = 0
            for name, kind in flat_fields(t):
                variable = isinstance(kind, Varbit)
                longest += scalar_width(kind)
                fields.append([name, "*" if variable else scalar_width(kind), False])
            kind_json: Json = {"name": str(t), "id": len(self._header_types), "fields": fields}
            fixed = sum(width for _, width, _ in fields if width != "*")
            if fixed % 8:
                text = f"BMv2 needs headers of whole bytes; header {t} has {fixed} bits"
                raise refuse(self._span, text + (", varbit aside" if longest > fixed else ""))
            if any(width == "*" for _, width, _ in fields):
                kind_json["max_length"] = (longest + 7) // 8
            self._header_types.append(kind_json)
        return self._types[t]

    def _union(self, name: str, t: Union) -> UnionAt:
        kind = self._union_types.get(t)
        if kind is None:
            members = [[f.name, self._header_type(_header(f.type))] for f in t.fields]
            kind = {"name": str(t), "id": len(self._union_types), "headers": members}
            self._union_types[t] = kind
        first = len(self._headers)
        place = UnionAt(name, t)
        for index in range(len(t.fields)):
            member = place.member(index)
            self._instance(member.name, member.type)
        self._unions.append(
            {
                "name": name,
                "id": len(self._unions),
                "union_type": kind["name"],
                "header_ids": list(range(first, len(self._headers))),
                "pi_omit": True,
            }
        )
        return place

    def _stack(self, name: str, t: Stack) -> StackAt:
        if isinstance(t.element, Union):
            first = len(self._unions)
            for index in range(t.size):
                self._union(f"{name}[{index}]", t.element)
            self._union_stacks.append(
                {
                    "name": name,
                    "id": len(self._union_stacks),
                    "union_type": str(t.element),
                    "header_union_ids": list(range(first, len(self._unions))),
                }
            )
            return StackAt(name, t)
        element, first = _header(t.element), len(self._headers)
        for index in range(t.size):
            self._instance(f"{name}[{index}]", element)
        self._stacks.append(
            {
                "name": name,
                "id": len(self._stacks),
                "header_type": self._header_type(element),
                "size": t.size,
                "header_ids": list(range(first, len(self._headers))),
            }
        )
        return StackAt(name, t)

    def sections(self) -> Json:
        """Return the JSON sections; call it last, as temporaries are declared on the way."""
        for name, metadata in self._metadata.items():
            fields = list(metadata.fields)
            odd = sum(width for _, width, _ in fields) % 8
            if odd or not fields:
                fields.append(["_padding", 8 - odd, False])
            kind = f"{name}_t"
            self._header_types.append(
                {"name": kind, "id": len(self._header_types), "fields": fields}
            )
            self._declare_header(name, kind, metadata=True)
        return {
            "header_types": self._header_types,
            "headers": self._headers,
            "header_stacks": self._stacks,
            "header_union_types": list(self._union_types.values()),
            "header_unions": self._unions,
            "header_union_stacks": self._union_stacks,
        }
