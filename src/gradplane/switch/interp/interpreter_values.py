"""Values as the interpreter holds them.

bit<W> and int<W>: an int in range. bool: bool. varbit: (length in bits, value), immutable.
struct, union and array: a list of their parts. header: HeaderValue. stack: StackValue. The scalars
are immutable and shared, the others belong to one place and are copied when assigned.

The frame is one list that holds all variables of a program, each at its slot. Slot 0 is the packet.
A block's variables are next to each other, so that one slice assignment sets them to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import zero
from gradplane.switch.ir.types import (
    Array,
    Enum,
    Error,
    Fields,
    Header,
    SerEnum,
    Stack,
    Type,
    Union,
)

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
    return isinstance(t, Fields | Array)


def maker(t: Type) -> Callable[[], Value]:
    """Return the function that makes a type's default value: zeros, invalid headers."""
    if isinstance(t, Header):
        fields = _parts_maker([f.type for f in t.fields])
        return lambda: HeaderValue(False, fields())
    if isinstance(t, Fields):
        return _parts_maker([f.type for f in t.fields])
    if isinstance(t, Stack):
        element, size = maker(t.element), t.size
        return lambda: StackValue([element() for _ in range(size)])
    if isinstance(t, Array):
        return _parts_maker([t.element] * t.size)
    value = zero(t)
    return lambda: value


def _parts_maker(types: Sequence[Type]) -> Callable[[], list[Value]]:
    makers = [(i, maker(t)) for i, t in enumerate(types) if is_composite(t)]
    template = [None if is_composite(t) else zero(t) for t in types]
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
        fields = _parts_copier([f.type for f in t.fields])
        return lambda v: HeaderValue(v.valid, fields(v.fields))
    if isinstance(t, Fields):
        return _parts_copier([f.type for f in t.fields])
    if isinstance(t, Stack):
        element = copier(t.element)
        return lambda v: StackValue([element(i) for i in v.items], v.next)
    if isinstance(t, Array):
        return _parts_copier([t.element] * t.size)
    return lambda v: v


def _parts_copier(types: Sequence[Type]) -> Callable[[list[Value]], list[Value]]:
    copiers = [(i, copier(t)) for i, t in enumerate(types) if is_composite(t)]
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
    if isinstance(t, Array):
        items = value.items if isinstance(t, Stack) else value
        return [plain(t.element, item) for item in items]
    return value[1] if isinstance(value, tuple) else value


def _plain_fields(t: Fields, values: list[Value]) -> Value:
    if t.name.startswith("tuple<"):
        return [plain(f.type, v) for f, v in zip(t.fields, values, strict=True)]
    both = zip(t.fields, values, strict=True)
    return {f.name: named(f.named, plain(f.type, v)) for f, v in both}


class Named(int):
    """A number with a name: of a member of an enum, of an error, or one that controllers gave."""

    name: str

    @classmethod
    def of(cls, value: int, name: str) -> Named:
        """Return `value` with a name."""
        found = cls(value)
        found.name = name
        return found


def named(t: Type | None, value: Value, errors: Sequence[str] = ()) -> Value:
    """Return a number with its name in an enum or error, where it has one; else the value."""
    if t is None:
        return value
    names: Mapping[int, str] = {}
    match t:
        case Enum(members=members):
            names = dict(enumerate(members))
        case Error():
            names = dict(enumerate(errors))
        case SerEnum(values=values):
            names = {number: name for name, number in values.items()}
    if value not in names:
        return value
    return Named.of(value, names[value])


Env = list[Any]
Load = Callable[[Env], Any]
Run = Callable[[Env], Any]


class Frame:
    """Allots slots to variables on first use."""

    def __init__(self) -> None:
        self._slots: dict[ir.Var, int] = {}
        self._size = 1

    def slot(self, var: ir.Var) -> int:
        if var not in self._slots:
            self._slots[var] = self._size
            self._size += 1
        return self._slots[var]

    def run_of(self, variables: Sequence[ir.Var]) -> tuple[int, int]:
        """Allot neighbouring slots to variables that have none yet; return start and end."""
        start = self._size
        for var in variables:
            assert var not in self._slots, var.name
            self.slot(var)
        return start, self._size

    def new(self) -> Env:
        """Make a frame for the slots allotted so far."""
        return [None] * self._size

    def zeroing(self, variables: list[ir.Var]) -> Run:
        """Return the function that sets variables to their default values."""
        scalars = [v for v in variables if not is_composite(v.type)]
        start, end = self.run_of(scalars)
        zeros = [maker(v.type)() for v in scalars]
        made = [(self.slot(v), maker(v.type)) for v in variables if is_composite(v.type)]

        def run(env: Env) -> None:
            env[start:end] = zeros
            for slot, make in made:
                env[slot] = make()

        return run
