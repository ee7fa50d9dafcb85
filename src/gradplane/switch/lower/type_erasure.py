"""Convert the checker's types to those of the IR (see switch/ir/types.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from gradplane.switch.check.checker_types import ExternType, TypeVar
from gradplane.switch.ir.nodes import ERROR_TYPE
from gradplane.switch.ir.types import (
    VOID,
    Array,
    Bits,
    Bool,
    Enum,
    Error,
    Field,
    Fields,
    Header,
    Integer,
    List,
    MatchKind,
    NewType,
    SerEnum,
    Stack,
    String,
    Struct,
    Tuple,
    Type,
    Varbit,
    Void,
    parts,
    with_parts,
)

CODE = Bits(32)  # the type of enum members and errors


@lru_cache(maxsize=4096)
def erase(t: Type) -> Type:
    """Return the runtime type of values of type t."""
    match t:
        case Bits() | Bool() | Varbit() | String():
            return t
        case Enum() | Error() | MatchKind() | Integer():
            return CODE
        case SerEnum(underlying=underlying) | NewType(underlying=underlying):
            return erase(underlying)
        case Tuple() | Array() | Fields():
            return _rebuilt(t, erase)
        case TypeVar() | List() | ExternType() | Void():
            return Struct(str(t), ())  # types of objects, unused and compile-time values only
    raise AssertionError(t)


def _rebuilt(t: Tuple | Array | Fields, inner: Callable[[Type], Type]) -> Type:
    """Return a composite type of the same form, with `inner` of each of its types."""
    if isinstance(t, Tuple):
        return Struct(str(t), tuple(Field(f"f{i}", inner(e)) for i, e in enumerate(t.elements)))
    made = with_parts(t, inner)
    if not isinstance(made, Fields) or not isinstance(t, Fields):
        return made
    both = zip(made.fields, t.fields, strict=True)
    fields = tuple(
        replace(f, named=of.type) if isinstance(of.type, Enum | SerEnum | Error) else f
        for f, of in both
    )
    return replace(made, name=str(t), args=(), fields=fields)


def without_headers(t: Type) -> Type:
    """Return a struct of the same bits without headers and stacks; t is erased."""
    match t:
        case Array(element=element, size=size):
            fields = tuple(Field(f"f{i}", without_headers(element)) for i in range(size))
            return Struct(f"bits of {t}", fields)
        case Header(fields=fields):
            return Struct(f"bits of {t}", fields)
        case Struct(fields=fields):
            plain = tuple(replace(f, type=without_headers(f.type)) for f in fields)
            return t if plain == fields else Struct(f"bits of {t}", plain)
    return t


@lru_cache(maxsize=4096)
def several_varbits(t: Type) -> str:
    """Return the name of a header in t with several varbit fields; empty if there is none."""
    if isinstance(t, Header):
        return t.name if sum(isinstance(part, Varbit) for part in parts(t)) > 1 else ""
    return next(filter(None, map(several_varbits, parts(t))), "")


def erase_keeping_names(t: Type) -> Type:
    """Erase a type, but keep enums, errors and `type` declarations, for the control plane."""
    match t:
        case NewType() | Enum() | SerEnum() | Error():
            return t
        case Array(element=element, size=size) if not isinstance(t, Stack):
            return erase_keeping_names(Tuple((element,) * size))  # P4Info has no arrays
        case Tuple() | Array() | Fields():
            return _rebuilt(t, erase_keeping_names)
    return erase(t)


def extern_type(t: Type) -> Type:
    """Return a type as a user-defined extern's implementation sees it.

    It is erase(t), but with enums, errors, tuples, lists and compile-time numbers kept; VOID for
    what is not a value.
    """
    match t:
        case Enum() | Error() | Integer():
            return t
        case NewType(underlying=underlying):
            return extern_type(underlying)
        case Tuple() | List():
            return with_parts(t, extern_type)
        case Array() | Fields():
            return _rebuilt(t, extern_type)
        case TypeVar() | ExternType() | Void():
            return VOID
    return erase(t)


def type_name(t: Type) -> str:
    """Return the name of a `type` declaration or enum, or "error", for P4Info; empty for other
    types."""
    if isinstance(t, Error):
        return ERROR_TYPE
    return t.name if isinstance(t, NewType | SerEnum | Enum) else ""
