"""Values as the interpreter holds them.

bit<W> and int<W>: an int in range. bool: bool. varbit: (length in bits, value), immutable.
struct and union: a list of their fields. header: HeaderValue. stack: StackValue. The scalars are
immutable and shared, the others belong to one place and are copied when assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch.ir.ops import zero
from gradplane.switch.ir.types import Fields, Header, Stack, Type, Union

Value = Any


class HeaderValue:
    __slots__ = ("valid", "fields")

    def __init__(self, valid: bool, fields: list[Value]) -> None:
        self.valid = valid
        self.fields = fields


class StackValue:
    """A stack's items. `next` is the index that extract(stack.next) fills; last is before it."""

    __slots__ = ("items", "next")

    def __init__(self, items: list[Value], next: int = 0) -> None:
        self.items = items
        self.next = next


def is_composite(t: Type) -> bool:
    return isinstance(t, Fields | Stack)


def maker(t: Type) -> Callable[[], Value]:
    """Return the function that makes a type's default value: zeros, invalid headers."""
    if isinstance(t, Header):
        fields = _fields_maker(t)
        return lambda: HeaderValue(False, fields())
    if isinstance(t, Fields):
        return _fields_maker(t)
    if isinstance(t, Stack):
        element, size = maker(t.element), t.size
        return lambda: StackValue([element() for _ in range(size)])
    value = zero(t)
    return lambda: value


def _fields_maker(t: Fields) -> Callable[[], list[Value]]:
    makers = [(i, maker(f.type)) for i, f in enumerate(t.fields) if is_composite(f.type)]
    template = [None if is_composite(f.type) else zero(f.type) for f in t.fields]
    if not makers:
        return template.copy

    def make() -> list[Value]:
        out = template.copy()
        for i, field in makers:
            out[i] = field()
        return out

    return make


def copier(t: Type) -> Callable[[Value], Value]:
    """Return the function that makes a deep copy of a type's values."""
    if isinstance(t, Header):
        fields = _fields_copier(t)
        return lambda v: HeaderValue(v.valid, fields(v.fields))
    if isinstance(t, Fields):
        return _fields_copier(t)
    if isinstance(t, Stack):
        element = copier(t.element)
        return lambda v: StackValue([element(i) for i in v.items], v.next)
    return lambda v: v


def _fields_copier(t: Fields) -> Callable[[list[Value]], list[Value]]:
    copiers = [(i, copier(f.type)) for i, f in enumerate(t.fields) if is_composite(f.type)]
    if not copiers:
        return list

    def copy(fields: list[Value]) -> list[Value]:
        out = fields.copy()
        for i, field in copiers:
            out[i] = field(out[i])
        return out

    return copy


def plain(t: Type, value: Value) -> Value:
    """Convert a value for traces and JSON: numbers, lists, dicts by field; None: invalid header.

    Tuples, which are structs named "tuple<...>", become lists.
    """
    if isinstance(t, Header):
        return _plain_fields(t, value.fields) if value.valid else None
    if isinstance(t, Union):
        named = zip(t.fields, value, strict=True)
        return {f.name: plain(f.type, v) for f, v in named if v.valid}
    if isinstance(t, Fields):
        return _plain_fields(t, value)
    if isinstance(t, Stack):
        return [plain(t.element, item) for item in value.items]
    return value[1] if isinstance(value, tuple) else value


def _plain_fields(t: Fields, values: list[Value]) -> Value:
    if t.name.startswith("tuple<"):
        return [plain(f.type, v) for f, v in zip(t.fields, values, strict=True)]
    return {f.name: plain(f.type, v) for f, v in zip(t.fields, values, strict=True)}
