"""From the checker's types to those the engines know (see switch/ir/types.py)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gradplane.switch.check.checker_types import ExternType, TypeVar
from gradplane.switch.ir.types import (
    VOID,
    Bits,
    Bool,
    Enum,
    Error,
    Field,
    Fields,
    Header,
    Integer,
    List,
    NewType,
    SerEnum,
    Stack,
    String,
    Struct,
    Tuple,
    Type,
    Varbit,
    Void,
)

CODE = Bits(32)  # of enum members and errors


@lru_cache(maxsize=4096)
def erase(t: Type) -> Type:
    """The runtime type of values of type t."""
    match t:
        case Bits() | Bool() | Varbit() | String():
            return t
        case Enum() | Error() | Integer():
            return CODE
        case SerEnum(underlying=underlying) | NewType(underlying=underlying):
            return erase(underlying)
        case Tuple(elements=elements):
            fields = tuple(Field(f"f{i}", erase(e)) for i, e in enumerate(elements))
            return Struct(str(t), fields)
        case Stack(element=element, size=size):
            return Stack(erase(element), size)
        case Fields():
            fields = tuple(replace(f, type=erase(f.type)) for f in t.fields)
            return replace(t, name=str(t), fields=fields, args=())
        case TypeVar() | List():
            return Struct(str(t), ())  # only the types of unused or compile-time values
    raise AssertionError(t)


def without_headers(t: Type) -> Type:
    """A struct of the same bits with structs instead of headers and stacks; t erased."""
    match t:
        case Stack(element=element, size=size):
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
    """The name of a header in t with more than one varbit field; empty if there is none."""
    match t:
        case Header(name=name, fields=fields):
            return name if sum(isinstance(f.type, Varbit) for f in fields) > 1 else ""
        case Stack(element=element):
            return several_varbits(element)
        case Fields(fields=fields):
            return next(filter(None, (several_varbits(f.type) for f in fields)), "")
    return ""


def erase_but_named(t: Type) -> Type:
    """As `erase`, but enums, errors and `type` declarations stay: controllers are told of them."""
    match t:
        case NewType() | Enum() | SerEnum() | Error():
            return t
        case Tuple(elements=elements):
            fields = tuple(Field(f"f{i}", erase_but_named(e)) for i, e in enumerate(elements))
            return Struct(str(t), fields)
        case Stack(element=element, size=size):
            return Stack(erase_but_named(element), size)
        case Fields():
            fields = tuple(replace(f, type=erase_but_named(f.type)) for f in t.fields)
            return replace(t, name=str(t), fields=fields, args=())
    return erase(t)


def told(t: Type) -> Type:
    """As an extern's implementation sees it: like erase(t), but enums, errors, tuples and lists
    stay, and compile-time numbers; VOID for what is no value."""
    match t:
        case Enum() | Error() | Integer():
            return t
        case NewType(underlying=underlying):
            return told(underlying)
        case Tuple(elements=elements):
            return Tuple(tuple(map(told, elements)))
        case List(element=element):
            return List(told(element))
        case Stack(element=element, size=size):
            return Stack(told(element), size)
        case Fields():
            fields = tuple(replace(f, type=told(f.type)) for f in t.fields)
            return replace(t, name=str(t), fields=fields, args=())
        case TypeVar() | ExternType() | Void():
            return VOID
    return erase(t)


def type_name(t: Type) -> str:
    """The name of a `type` declaration or enum, for P4Info; empty for other types."""
    return t.name if isinstance(t, NewType | SerEnum | Enum) else ""
