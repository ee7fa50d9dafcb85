"""Values as the Python code that implements user-defined externs has them.

bit<W>, int<W>, serializable enum: int. bool: bool. enum, error: the member's name. varbit: (length
in bits, int). struct: dict by field. header: the same, None where it is invalid. header union: dict
with its valid header, if any. stack: list. tuple: tuple. list: list. string: str.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue, Value, maker
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Bool,
    Enum,
    Error,
    Field,
    Fields,
    Header,
    List,
    Stack,
    Struct,
    Tuple,
    Type,
    Union,
    Varbit,
)

ToPython = Callable[[Value], Any]
FromPython = Callable[[Any, Value], Value]
"""A function of a Python value and the former value, or None: a stack keeps its next index. Raises
ValueError for a value of another type."""

_SHOWN = 60  # characters of a wrong value


def to_python(t: Type, errors: Sequence[str]) -> ToPython:
    """Return the function that converts values of a type; `errors`: the names by code."""
    match t:
        case Enum(members=members):
            return _named(members)
        case Error():
            return _named(errors)
        case Tuple(elements=elements):
            parts = [to_python(e, errors) for e in elements]
            return lambda value: tuple(p(v) for p, v in zip(parts, value, strict=True))
        case List(element=element):
            item = to_python(element, errors)
            return lambda value: [item(v) for v in value]
        case Stack(element=element):
            item = to_python(element, errors)
            return lambda value: [item(v) for v in value.items]
        case Array(element=element):
            item = to_python(element, errors)
            return lambda value: [item(v) for v in value]
        case Fields(fields=fields):
            return _fields_to_python(t, fields, errors)
    return lambda value: value


def _named(names: Sequence[str]) -> ToPython:
    """Convert a code to its name. A number beyond the names, which only casts can make, stays one;
    a constructor's argument may be the name already."""
    return lambda v: names[v] if isinstance(v, int) and v < len(names) else v


def _fields_to_python(t: Fields, fields: tuple[Field, ...], errors: Sequence[str]) -> ToPython:
    parts = [(f.name, to_python(f.type, errors)) for f in fields]

    def named(values: Sequence[Value]) -> dict[str, Any]:
        return {name: part(v) for (name, part), v in zip(parts, values, strict=True)}

    if isinstance(t, Header):
        return lambda v: named(v.fields) if v.valid else None
    if isinstance(t, Union):
        return lambda v: {name: f for name, f in named(v).items() if f is not None}
    return named


def from_python(t: Type, errors: Sequence[str]) -> FromPython:
    """Return the function that converts Python values to those of a type."""
    match t:
        case Bits():
            return _number(t)
        case Bool():
            return _bool
        case Enum(members=members):
            return _code(str(t), members)
        case Error():
            return _code("error", errors)
        case Varbit(width=width):
            return _varbit(width)
        case Tuple(elements=elements):
            return _items(f"a tuple of {len(elements)}", [from_python(e, errors) for e in elements])
        case Stack(element=element, size=size):
            return _stack(size, from_python(element, errors))
        case Array(element=element, size=size):
            return _items(f"a list of {size}", [from_python(element, errors)] * size)
        case Header() | Union():
            return _header(t, errors) if isinstance(t, Header) else _union(t, errors)
        case Struct():
            return _struct(t, errors)
    raise AssertionError(t)


def labelled(name: str, t: Type, errors: Sequence[str]) -> FromPython:
    """Return from_python()'s function, whose errors name the value's purpose."""
    convert = from_python(t, errors)

    def checked(given: Any, before: Value) -> Value:
        try:
            return convert(given, before)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    return checked


def _number(t: Bits) -> FromPython:
    low = -(1 << t.width >> 1) if t.signed else 0
    high = low + (1 << t.width) - 1

    def number(given: Any, before: Value) -> int:
        try:
            value = operator.index(given)
        except TypeError:
            raise _wrong(given, f"a number, {t}") from None
        if not low <= value <= high:
            raise ValueError(f"{shown(given)} does not fit {t}")
        return value

    return number


def _bool(given: Any, before: Value) -> bool:
    if isinstance(given, bool) or type(given).__name__ == "bool_":  # NumPy's
        return bool(given)
    raise _wrong(given, "True or False")


def _code(name: str, members: Sequence[str]) -> FromPython:
    codes = {member: code for code, member in enumerate(members)}

    def code(given: Any, before: Value) -> int:
        if not isinstance(given, str) or given not in codes:
            raise _wrong(given, f"a member of {name} as a string")
        return codes[given]

    return code


def _varbit(width: int) -> FromPython:
    def varbit(given: Any, before: Value) -> tuple[int, int]:
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise _wrong(given, f"(length in bits, number), varbit<{width}>")
        length = _number(Bits(32))(given[0], None)
        if length > width:
            raise ValueError(f"{length} bits do not fit varbit<{width}>")
        return length, _number(Bits(length))(given[1], None)

    return varbit


def _items(what: str, parts: Sequence[FromPython]) -> Callable[[Any, Any], list[Value]]:
    def items(given: Any, before: Any) -> list[Value]:
        if not isinstance(given, tuple | list) or len(given) != len(parts):
            raise _wrong(given, what)
        old = [None] * len(parts) if before is None else before
        return [part(v, o) for part, v, o in zip(parts, given, old, strict=True)]

    return items


def _stack(size: int, item: FromPython) -> FromPython:
    items = _items(f"a list of {size}", [item] * size)

    def stack(given: Any, before: Value) -> StackValue:
        if before is None:
            return StackValue(items(given, None))
        return StackValue(items(given, before.items), before.next)

    return stack


def _struct(t: Fields, errors: Sequence[str]) -> Callable[[Any, Any], list[Value]]:
    parts = [(f.name, labelled(f.name, f.type, errors)) for f in t.fields]
    names = {f.name for f in t.fields}

    def struct(given: Any, before: Any) -> list[Value]:
        if not isinstance(given, Mapping) or set(given) != names:
            listed = ", ".join(name for name, _ in parts)
            raise _wrong(given, f"a dict with {listed or 'nothing'}, {t}")
        old = [None] * len(parts) if before is None else before
        return [part(given[n], o) for (n, part), o in zip(parts, old, strict=True)]

    return struct


def _header(t: Header, errors: Sequence[str]) -> FromPython:
    fields, invalid = _struct(t, errors), maker(t)

    def header(given: Any, before: Value) -> HeaderValue:
        return invalid() if given is None else HeaderValue(True, fields(given, None))

    return header


def _union(t: Union, errors: Sequence[str]) -> FromPython:
    parts = [(f.name, labelled(f.name, f.type, errors)) for f in t.fields]
    names = {f.name for f in t.fields}

    def union(given: Any, before: Value) -> list[Value]:
        if not isinstance(given, Mapping) or len(given) > 1 or not set(given) <= names:
            raise _wrong(given, f"a dict with one of {', '.join(sorted(names))}, or none, {t}")
        return [part(given.get(name), None) for name, part in parts]

    return union


def _wrong(given: Any, wanted: str) -> ValueError:
    return ValueError(f"{shown(given)} is not {wanted}")


def shown(given: Any) -> str:
    """Return a wrong value as messages show it."""
    text = repr(given)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
