"""An extern call, as the interpreter's implementations of externs see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradplane.switch.interp.expressions import Store
from gradplane.switch.interp.interpreter_values import Env, Load
from gradplane.switch.interp.statements import Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import wrap
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Stack, Type, Union, Varbit
from gradplane.switch.ir.walk import header_of
from gradplane.switch.runtime.hashes import pack_bits
from gradplane.switch.source import refuse

Parts = list[tuple[int, int]]  # (value, width) pairs
Collect = Callable[[Env, Parts], None]


def constant_name(stmt: ir.CallExtern, position: int) -> str:
    """Return an argument that must be a constant: an enum member's name or a string."""
    arg = stmt.args[position]
    if not isinstance(arg, ir.Const) or not isinstance(arg.value, str):
        raise refuse(stmt.span, f"argument {position + 1} of {stmt.name} must be a constant")
    return arg.value


class Call:
    """Arguments of a call by position, as closures."""

    def __init__(self, stmt: ir.CallExtern, statements: Statements) -> None:
        self.stmt = stmt
        self.statements = statements
        self.state = statements.state

    @property
    def instance(self) -> ir.ExternInstance:
        assert self.stmt.instance is not None, self.stmt.name
        return self.stmt.instance

    def arg(self, position: int) -> Load:
        """Return the function that evaluates an argument."""
        return self.statements.load(self.stmt.args[position])

    def bits(self, position: int) -> Load:
        """Return a number's bits as an unsigned number."""
        t, load = self.stmt.args[position].type, self.arg(position)
        if not (isinstance(t, Bits) and t.signed):
            return load
        mask = (1 << t.width) - 1
        return lambda env: load(env) & mask

    def out(self, position: int | None) -> Store:
        """Return the function that assigns a number to an out argument (None: the return value),
        cut to its width."""
        if position is None:
            target = self.stmt.result
            return (lambda env, value: None) if target is None else self._cut(target)
        arg = self.stmt.args[position]
        assert isinstance(arg, ir.LValue), arg
        return self._cut(arg)

    def name(self, position: int) -> str:
        """Return an argument that must be a constant: an enum member's name or a string."""
        return constant_name(self.stmt, position)

    def data(self, position: int) -> Callable[[Env], bytes]:
        """Return the bits of an argument's fields; those of invalid headers are left out."""
        return self.bits_of([self.stmt.args[position]])

    def bits_of(self, exprs: Iterable[ir.Expr]) -> Callable[[Env], bytes]:
        """Return the bits of the fields of expressions, as `data` does."""
        collectors = [collector(e, self.statements) for e in exprs]

        def run(env: Env) -> bytes:
            parts: Parts = []
            for collect in collectors:
                collect(env, parts)
            return pack_bits(parts)

        return run

    def _cut(self, target: ir.LValue) -> Store:
        store, into = self.statements.store(target), wrap(target.type)
        if isinstance(target.type, Bool):
            return lambda env, value: store(env, bool(value))
        return lambda env, value: store(env, into(value))


def collector(e: ir.Expr, statements: Statements) -> Collect:
    """Return the function that appends the bits of an expression's fields."""
    if isinstance(e, ir.Make) and not isinstance(e.type, Header):
        members = [collector(field, statements) for field in e.fields]

        def collect_members(env: Env, parts: Parts) -> None:
            for member in members:
                member(env, parts)

        return collect_members
    load, append = statements.load(e), _appender(e.type)
    header = header_of(e)
    if header is None:
        return lambda env, parts: append(parts, load(env))
    owner = statements.load(header)
    return lambda env, parts: append(parts, load(env)) if owner(env).valid else None


def _appender(t: Type) -> Callable[[Parts, Any], None]:
    match t:
        case Bits(width=width):
            return lambda parts, value: parts.append((value, width))
        case Bool():
            return lambda parts, value: parts.append((int(value), 1))
        case Varbit():
            return lambda parts, value: parts.append((value[1], value[0]))
        case Header():
            fields = _all([f.type for f in t.fields])
            return lambda parts, value: fields(parts, value.fields) if value.valid else None
        case Stack(element=element, size=size):
            items = _all([element] * size)
            return lambda parts, value: items(parts, value.items)
        case Array(element=element, size=size):
            return _all([element] * size)
        case Union() | Fields():
            return _all([f.type for f in t.fields])
    raise AssertionError(t)


def _all(types: list[Type]) -> Callable[[Parts, Any], None]:
    appenders = [_appender(t) for t in types]

    def append(parts: Parts, values: list[Any]) -> None:
        for one, value in zip(appenders, values, strict=True):
            one(parts, value)

    return append
