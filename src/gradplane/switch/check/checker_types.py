"""Types used by the checker only: type variables, and the types of things that are not values.

And the sizes of types on the wire (specification, chapter 9).

Headers that a compiler may lay out as it likes (`@flexible`) fill whole bytes.

    @flexible header h { bit<9> port; }   ->   header h { bit<9> port; bit<7> _padding; }

The program does not see the padding: lists and structs that are assigned have no value for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gradplane.switch.ir.types import (
    Annotation,
    Annotations,
    Array,
    Bits,
    Field,
    Fields,
    Header,
    List,
    MatchKind,
    NewType,
    Tuple,
    Type,
    Union,
    Varbit,
    Void,
    bit_width,
    make_array,
    parts,
    with_parts,
)

if TYPE_CHECKING:
    from gradplane.switch.syntax import ast


@dataclass(frozen=True, slots=True)
class TypeVar(Type):
    """A type parameter; `serial` distinguishes equal names and uses of one declaration."""

    name: str
    serial: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnyType(Type):
    """The type of an erroneous expression: it matches every type, so errors do not cascade."""

    def __str__(self) -> str:
        return "<unknown>"


@dataclass(frozen=True, slots=True)
class ExternType(Type):
    """An extern object: `register<bit<32>>`."""

    decl: ast.ExternDecl = field(hash=False)
    args: tuple[Type, ...] = ()

    @property
    def name(self) -> str:
        return self.decl.name

    def __str__(self) -> str:
        return self.name + (f"<{', '.join(map(str, self.args))}>" if self.args else "")


@dataclass(frozen=True, slots=True)
class ParamType:
    """A parameter of a signature. `default` is its default expression, if any."""

    name: str
    direction: str
    type: Type
    optional: bool = False
    default: ast.Expr | None = field(default=None, compare=False)
    decl: ast.Param | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Signature(Type):
    """The signature of a function, method, action or constructor, or of a block's apply."""

    name: str
    type_params: tuple[TypeVar, ...]
    params: tuple[ParamType, ...]
    result: Type

    def __str__(self) -> str:
        params = ", ".join(f"{p.direction} {p.type} {p.name}".strip() for p in self.params)
        return f"{self.name}({params})"


@dataclass(frozen=True, slots=True)
class BlockType(Type):
    """A parser, control or package (`kind`), or the type declaration of one.

    Two block types are equal when their kinds and parameters are.
    """

    kind: str  # "parser" | "control" | "package"
    name: str = field(compare=False)
    params: tuple[ParamType, ...]
    decl: ast.Decl | None = field(default=None, compare=False, hash=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class TableType(Type):
    decl: ast.TableDecl = field(hash=False)

    def __str__(self) -> str:
        return f"table {self.decl.name}"


@dataclass(frozen=True, slots=True)
class ApplyResult(Type):
    """The result of table.apply(), with members hit, miss and action_run."""

    decl: ast.TableDecl = field(hash=False)

    def __str__(self) -> str:
        return f"result of {self.decl.name}.apply()"


@dataclass(frozen=True, slots=True)
class ActionRun(Type):
    decl: ast.TableDecl = field(hash=False)

    def __str__(self) -> str:
        return f"action_run of table {self.decl.name}"


@dataclass(frozen=True, slots=True)
class SetType(Type):
    """A parser value set, or a keyset, over values of `element`."""

    element: Type

    def __str__(self) -> str:
        return f"set of {self.element}"


@dataclass(frozen=True, slots=True)
class TypeName(Type):
    """The type of an expression that names a type: the `E` of `E.member`, a constructor's name."""

    denoted: Type

    def __str__(self) -> str:
        return f"type {self.denoted}"


@dataclass(frozen=True, slots=True)
class ListLiteral(Type):
    """`{a, b}` before its context determines its type; `dots`: ends with `...`."""

    elements: tuple[Type, ...]
    dots: bool = False

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


@dataclass(frozen=True, slots=True)
class StructLiteral(Type):
    """`{a = x}` before its context determines its type."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{n} = {t}" for n, t in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class DefaultLiteral(Type):
    """`...` or `{#}` before its context determines its type."""

    text: str

    def __str__(self) -> str:
        return self.text


ANY = AnyType()


def is_value(t: Type) -> bool:
    """Return whether an expression of this type has a value.

    Types, tables, objects and calls that return nothing, for example, have none.
    """
    return not isinstance(
        t,
        TypeName
        | TableType
        | Signature
        | SetType
        | ApplyResult
        | ActionRun
        | ExternType
        | BlockType
        | Void,
    )


def compile_time_only(t: Type | None) -> bool:
    """Return whether values of this type exist at compile time only, though it has no int in it."""
    if isinstance(t, Tuple):
        return any(map(compile_time_only, t.elements))
    return isinstance(t, List | MatchKind)


Substitution = Mapping[TypeVar, Type]


def substitute(t: Type, by: Substitution) -> Type:
    """Return `t` with type variables replaced, also inside the types they are bound to."""
    return _Substituter(by)(t) if by else t


class _Substituter:
    """Replaces variables in each type once, however often the type occurs in others.

    Otherwise generic types that each hold another twice would take exponential time.
    """

    def __init__(self, by: Substitution) -> None:
        self.by = by
        self.done: dict[
            int, tuple[Type, Type]
        ] = {}  # by identity; the first element keeps the type alive

    def __call__(self, t: Type) -> Type:
        found = self.done.get(id(t))
        if found is None:
            found = self.done[id(t)] = t, self._replaced(t)
        return found[1]

    def _replaced(self, t: Type) -> Type:
        match t:
            case TypeVar():
                bound = self.by.get(t)
                return t if bound is None or bound == t else self(bound)
            case Array() | Tuple() | List():
                return with_parts(t, self)
            case SetType(element=element):
                return SetType(self(element))
            case ExternType(args=args) if args:
                return replace(t, args=tuple(map(self, args)))
            case NewType(underlying=underlying):
                return replace(t, underlying=self(underlying))
            case Fields() if free_variables(t):
                return with_parts(replace(t, args=tuple(map(self, t.args))), self)
            case Signature(params=params):
                return replace(t, params=self.params(params), result=self(t.result))
            case BlockType(params=params):
                return replace(t, params=self.params(params))
            case ListLiteral(elements=elements):
                return replace(t, elements=tuple(map(self, elements)))
            case StructLiteral(fields=given):
                return replace(t, fields=tuple((n, self(f)) for n, f in given))
        return t

    def params(self, params: Iterable[ParamType]) -> tuple[ParamType, ...]:
        return tuple(replace(p, type=self(p.type)) for p in params)


def substitute_params(params: Iterable[ParamType], by: Substitution) -> tuple[ParamType, ...]:
    return _Substituter(by).params(params)


def free_variables(t: Type) -> set[TypeVar]:
    """Return the type variables that occur in `t`."""
    found: set[TypeVar] = set()
    seen: set[int] = set()
    pending = [t]
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        match one:
            case TypeVar():
                found.add(one)
            case Array(element=e) | List(element=e) | SetType(element=e):
                pending.append(e)
            case Tuple(elements=types) | ExternType(args=types) | Fields(args=types):
                pending += types
            case Signature(params=params, result=result):
                pending += [result, *(p.type for p in params)]
            case BlockType(params=params):
                pending += [p.type for p in params]
    return found


def innermost(t: Type) -> Type:
    """Return the type of an array's elements, of the innermost arrays where they nest."""
    while isinstance(t, Array):
        t = t.element
    return t


def with_innermost(t: Type, element: Type) -> Type:
    """Return the type of arrays of the same sizes with other innermost elements."""
    return (
        make_array(with_innermost(t.element, element), t.size) if isinstance(t, Array) else element
    )


MAX_WIDTH = 1 << 16  # limit on a type's or literal's width, to bound the work at compile time


def size_bits(t: Type, largest: bool) -> int | None:
    """Return minSizeInBits or maxSizeInBits of a type; a varbit counts 0, or its maximum."""
    if isinstance(t, Varbit):
        return t.width if largest else 0
    if not isinstance(t, Array | Fields):
        return bit_width(t)
    sizes = [size_bits(part, largest) for part in parts(t)]
    known = [s for s in sizes if s is not None]
    if len(known) != len(sizes):
        return None
    if isinstance(t, Union):
        return max(known, default=0) if largest else min(known, default=0)
    return sum(known) * (t.size if isinstance(t, Array) else 1)


def emittable(t: Type) -> bool:
    """Return whether packet_out.emit takes a value of this type."""
    if isinstance(t, Header | Union | AnyType):
        return True
    return isinstance(t, Array | Fields | Tuple) and all(map(emittable, parts(t)))


def varbits(t: Type) -> int:
    """Count the varbit fields of a header, those of its structs included."""
    if isinstance(t, Fields):
        return sum(map(varbits, parts(t)))
    return int(isinstance(t, Varbit))


# -- headers that fill whole bytes ------------------------------------------------------------


_PADDING = Annotation("padding")
_NAME = "_padding_of_flexible_header"


def padded(fields: tuple[Field, ...], annotations: Annotations) -> tuple[Field, ...]:
    """Return a header's fields, with padding behind them if it or one of them is `@flexible`."""
    notes = [*annotations, *(note for field in fields for note in field.annotations)]
    widths = [bit_width(field.type) for field in fields]
    if not any(note.name == "flexible" for note in notes) or None in widths:
        return fields
    missing = -sum(width for width in widths if width is not None) % 8
    return (*fields, Field(_NAME, Bits(missing), (_PADDING,))) if missing else fields


def is_padded(t: Type) -> bool:
    """Return whether a type's last field is such padding."""
    return isinstance(t, Header) and bool(t.fields) and t.fields[-1].name == _NAME
