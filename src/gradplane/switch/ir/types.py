"""Types of values, shared by the checker and the intermediate representation.

The checker uses all of them. Lowering erases those below the line "checker only": what an engine
sees is Bits, Bool, Varbit, String (constants of log_msg only), Struct, Header, Union, Array and
Stack.
Enums and errors become their position in the declaration as bit<32>, serializable enums and `type`
declarations their underlying type, tuples structs with fields f0, f1, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(values)`: constants and strings in `values`, the text as written in `body`.

    `structured`: written `@name[values]`, or `@name[key = value]` with `pairs`. `span`: its place
    in the source, if it has one.
    """

    name: str
    values: tuple[int | bool | str, ...] = ()
    pairs: tuple[tuple[str, int | bool | str], ...] = ()
    body: str = ""
    structured: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


Annotations = tuple[Annotation, ...]


def given_name(annotations: Annotations) -> str:
    """Return the text of @name; empty if there is none."""
    for a in annotations:
        if a.name == "name" and a.values and isinstance(a.values[0], str):
            return a.values[0]
    return ""


@dataclass(frozen=True, slots=True)
class Type:
    """A type; equality is structural except for declared (named) types, which are their name."""


@dataclass(frozen=True, slots=True)
class Bits(Type):
    """bit<W>, or int<W> (two's complement) when signed."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


class Bool(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class Varbit(Type):
    """varbit<W>: up to `width` bits; a value knows its current length in bits."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


class String(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class Field:
    """A field. `named`: the enum or error that its numbers stand for, where its type is erased."""

    name: str
    type: Type
    annotations: Annotations = ()
    named: Type | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fields(Type):
    """A struct, header or header union. Compared by name and by field types.

    `args` are the type arguments of a specialised generic declaration.
    """

    name: str
    fields: tuple[Field, ...]
    annotations: Annotations = field(default=(), compare=False)
    args: tuple[Type, ...] = ()

    def index(self, name: str) -> int | None:
        """Return the position of a field, None if there is none of this name."""
        return next((i for i, f in enumerate(self.fields) if f.name == name), None)

    def __str__(self) -> str:
        return self.name + (f"<{', '.join(map(str, self.args))}>" if self.args else "")


class Struct(Fields):
    __slots__ = ()


class Header(Fields):
    """Its fields are Bits, Bool, Varbit, or structs of those."""

    __slots__ = ()


class Union(Fields):
    """A header union: at most one of its headers is valid."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Array(Type):
    """`element[size]`. One of headers or unions is a Stack: make_array() makes the right one."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


class Stack(Array):
    """An array of headers, or of header unions, with a next index."""

    __slots__ = ()


def make_array(element: Type, size: int) -> Array:
    return (Stack if isinstance(element, Header | Union) else Array)(element, size)


# -- checker only ------------------------------------------------------------------------------


class Integer(Type):
    """int: arbitrary precision, compile time only."""

    __slots__ = ()

    def __str__(self) -> str:
        return "int"


class Error(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "error"


class MatchKind(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "match_kind"


class Void(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class Enum(Type):
    """An enum without underlying type."""

    name: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SerEnum(Type):
    """A serializable enum: `values` maps member to number."""

    name: str
    underlying: Bits
    values: Mapping[str, int] = field(compare=False, hash=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """`type underlying name;`"""

    name: str
    underlying: Type
    annotations: Annotations = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class List(Type):
    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


BOOL = Bool()
STRING = String()
INTEGER = Integer()
ERROR = Error()
MATCH_KIND = MatchKind()
VOID = Void()


def parts(t: Type) -> tuple[Type, ...]:
    """Return the types of what a value consists of: of its fields, or of its elements, once for an
    array or list; none for other types."""
    if isinstance(t, Fields):
        return tuple(f.type for f in t.fields)
    if isinstance(t, Tuple):
        return t.elements
    return (t.element,) if isinstance(t, Array | List) else ()


def with_parts(t: Type, change: Callable[[Type], Type]) -> Type:
    """Return a type of the same form with other parts; a type without parts itself."""
    match t:
        case Fields(fields=fields):
            return replace(t, fields=tuple(replace(f, type=change(f.type)) for f in fields))
        case Tuple(elements=elements):
            return Tuple(tuple(map(change, elements)))
        case Array(element=element, size=size):
            return make_array(change(element), size)
        case List(element=element):
            return List(change(element))
    return t


def bit_width(t: Type) -> int | None:
    """Return a value's bits on the wire; None for varbit and for types that have no wire form."""
    match t:
        case Bits(width=width):
            return width
        case Bool():
            return 1
        case SerEnum(underlying=bits):
            return bits.width
        case NewType(underlying=behind):
            return bit_width(behind)
        case Struct() | Header() | Array() | Tuple():
            widths = list(map(bit_width, parts(t)))
            count = t.size if isinstance(t, Array) else 1
            return None if None in widths else count * sum(w for w in widths if w is not None)
    return None
