"""Values on their way to Python code that implements an extern, and back: nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue, plain
from gradplane.switch.interp.user_extern_values import from_python, to_python
from gradplane.switch.ir.types import (
    ERROR,
    Bits,
    Bool,
    Enum,
    Field,
    Header,
    List,
    Stack,
    Struct,
    Tuple,
    Type,
    Union,
    Varbit,
)
from gradplane.switch.jit.user_extern_calls import reader, writer
from gradplane.switch.jit.value_layout import Layouts

ERRORS = ("NoError", "Odd")
COLOR = Enum("Color", ("RED", "GREEN"))

bits = st.builds(Bits, st.integers(1, 200), st.booleans())
scalars = bits | st.just(Bool())
fields = scalars | st.builds(Varbit, st.integers(1, 150))


def named(kind: type, parts: Any) -> Any:
    lists = st.lists(parts, min_size=1, max_size=4)
    return lists.map(lambda ts: kind("t", tuple(Field(f"f{i}", t) for i, t in enumerate(ts))))


headers = named(Header, fields)
stacked = headers | named(Union, headers)
composites = stacked | st.builds(Stack, stacked, st.integers(1, 3))
types = st.recursive(fields | composites, lambda inner: named(Struct, inner), max_leaves=6)


@st.composite
def typed_values(draw: Any) -> tuple[Type, Any]:
    t = draw(types)
    return t, draw(values_of(t))


def values_of(t: Type) -> Any:
    match t:
        case Bits(width=width, signed=signed):
            low = -(1 << width - 1) if signed else 0
            return st.integers(low, low + (1 << width) - 1)
        case Bool():
            return st.booleans()
        case Varbit(width=width):
            return st.integers(0, width).flatmap(
                lambda n: st.tuples(st.just(n), st.integers(0, (1 << n) - 1))
            )
        case Header(fields=fs):
            given = st.tuples(*(values_of(f.type) for f in fs)).map(list)
            return st.builds(HeaderValue, st.just(True), given)
        case Union(fields=fs):
            return st.integers(0, len(fs) - 1).flatmap(lambda i: union_of(fs, i))
        case Struct(fields=fs):
            return st.tuples(*(values_of(f.type) for f in fs)).map(list)
        case Stack(element=element, size=size):
            items = st.lists(values_of(element), min_size=size, max_size=size)
            return st.builds(StackValue, items, st.integers(0, size))
    raise AssertionError(t)


def union_of(fs: tuple[Field, ...], valid: int) -> Any:
    members = [values_of(f.type) for f in fs]

    def only(values: tuple[HeaderValue, ...]) -> list[HeaderValue]:
        return [HeaderValue(i == valid, v.fields) for i, v in enumerate(values)]

    return st.tuples(*members).map(only)


def exact(t: Type, value: Any) -> Any:
    """Return everything about a value as something that can be compared."""
    if isinstance(t, Stack):
        return value.next, [exact(t.element, item) for item in value.items]
    if isinstance(t, Struct):
        return [exact(f.type, v) for f, v in zip(t.fields, value, strict=True)]
    return value if isinstance(t, Varbit) else plain(t, value)


@given(typed_values())
def test_through_native_memory(case: tuple[Type, Any]) -> None:
    t, value = case
    layouts = Layouts()
    memory = bytearray(layouts.of(t).size + 8)
    writer(layouts, t, 8)(memory, value)
    assert exact(t, reader(layouts, t, 8)(bytes(memory))) == exact(t, value)


@given(typed_values())
def test_through_python(case: tuple[Type, Any]) -> None:
    t, value = case
    back = from_python(t, ERRORS)(to_python(t, ERRORS)(value), value)
    assert exact(t, back) == exact(t, value)


@pytest.mark.parametrize(
    ("t", "value", "seen"),
    [
        (Bits(8), 200, 200),
        (Bits(8, True), -3, -3),
        (COLOR, 1, "GREEN"),
        (ERROR, 1, "Odd"),
        (Varbit(16), (9, 300), (9, 300)),
        (Tuple((COLOR, Bool())), [0, True], ("RED", True)),
        (List(Bits(8)), (1, 2), [1, 2]),
        (Struct("s", (Field("c", COLOR),)), [1], {"c": "GREEN"}),
        (Header("h", (Field("a", Bits(8)),)), HeaderValue(False, [0]), None),
        (Header("h", (Field("a", Bits(8)),)), HeaderValue(True, [7]), {"a": 7}),
    ],
)
def test_what_python_sees(t: Type, value: Any, seen: Any) -> None:
    assert to_python(t, ERRORS)(value) == seen
    if not isinstance(t, List):
        assert exact(t, from_python(t, ERRORS)(seen, value)) == exact(t, value)
