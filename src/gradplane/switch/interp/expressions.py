"""Expressions and places as closures over the frame.

`load(expr)` gives a function from frame to value, `store(lvalue)` one that writes there. Load does
not copy composite values; `fresh(expr)` gives one that the caller may keep.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from gradplane.switch.interp.interpreter_values import (
    Env,
    Frame,
    HeaderValue,
    Load,
    StackValue,
    Value,
    copier,
    is_composite,
    maker,
)
from gradplane.switch.interp.packet import Reject
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import BINARY, UNARY, caster, wrap
from gradplane.switch.ir.types import Array, Bits, Header, Stack, Union

Store = Callable[[Env, Any], None]


class Expressions:
    """Compiles expressions; `errors`: error codes by name."""

    def __init__(self, frame: Frame, errors: dict[str, int]) -> None:
        self.frame = frame
        self.errors = errors
        self.out_of_bounds = self.error("StackOutOfBounds")

    def error(self, name: str) -> int:
        """Return the code of an error; 0 where the program declares none of that name."""
        return self.errors.get(name, 0)

    def load(self, e: ir.Expr) -> Load:
        """Return the function that evaluates an expression."""
        load: Load = _LOADS[type(e)](self, e)
        return load

    def fresh(self, e: ir.Expr) -> Load:
        """Return the function of load(), for a value that nothing else refers to."""
        load = self.load(e)
        if not is_composite(e.type) or isinstance(e, ir.Make | ir.Zero):
            return load
        copy = copier(e.type)
        return lambda env: copy(load(env))

    def fields(self, e: ir.Expr) -> Callable[[Env], list[Value]]:
        """Return the function that gives the list of a struct's, header's or union's fields."""
        if not isinstance(e.type, Header):
            return self.load(e)
        match e:
            case ir.Var():
                slot = self.frame.slot(e)
                return lambda env: env[slot].fields
            case ir.FieldOf(base=ir.Var() as var, index=index):
                slot = self.frame.slot(var)
                return lambda env: env[slot][index].fields
        header = self.load(e)
        return lambda env: header(env).fields

    # -- places ---------------------------------------------------------------------------------

    def store(self, target: ir.LValue) -> Store:
        """Return the function that writes a value (which it keeps) to a place."""
        match target:
            case ir.Var():
                slot = self.frame.slot(target)

                def store_var(env: Env, value: Value) -> None:
                    env[slot] = value

                return store_var
            case ir.FieldOf():
                return self._store_field(target)
            case ir.SliceOf():
                return self._store_slice(target)
            case ir.ElementOf():
                return self._store_element(target)
        item = self.position(target)

        def store_item(env: Env, value: Value) -> None:
            stack, index = item(env)
            stack.items[index] = value

        return store_item

    def _store_element(self, target: ir.ElementOf) -> Store:
        items, number, size = self.items(target.base), self.load(target.index), _size(target)

        def store_element(env: Env, value: Value) -> None:
            found, index = items(env), number(env)
            if 0 <= index < size:
                found[index] = value

        return store_element

    def _store_field(self, target: ir.FieldOf) -> Store:
        fields, index = self.fields(target.base), target.index
        if isinstance(target.base.type, Union):

            def store_member(env: Env, value: HeaderValue) -> None:
                members = fields(env)
                members[index] = value
                if value.valid:
                    keep_only(members, value)

            return store_member

        def store_field(env: Env, value: Value) -> None:
            fields(env)[index] = value

        return store_field

    def _store_slice(self, target: ir.SliceOf) -> Store:
        assert isinstance(target.base, ir.LValue), target.base
        load, store, into = self.load(target.base), self.store(target.base), wrap(target.base.type)
        lo = target.lo
        mask = ((1 << (target.hi - lo + 1)) - 1) << lo

        def store_slice(env: Env, value: int) -> None:
            store(env, into(load(env) & ~mask | value << lo & mask))

        return store_slice

    def position(self, target: ir.LValue) -> Callable[[Env], tuple[StackValue, int]]:
        """Return the function that gives a stack and the index of next or last; raises Reject as in
        load."""
        assert isinstance(target, ir.NextOf | ir.LastOf), target
        stack = self.load(target.base)
        back, error = int(isinstance(target, ir.LastOf)), self.out_of_bounds

        def find(env: Env) -> tuple[StackValue, int]:
            found = stack(env)
            index = found.next - back
            if not 0 <= index < len(found.items):
                raise Reject(error)
            return found, index

        return find

    def siblings(self, target: ir.LValue) -> Load | None:
        """Return the members of the union that a header belongs to, if it does."""
        if isinstance(target, ir.FieldOf) and isinstance(target.base.type, Union):
            return self.load(target.base)
        return None

    # -- one a node -----------------------------------------------------------------------------

    def _const(self, e: ir.Const) -> Load:
        value = e.value
        return lambda env: value

    def _zero(self, e: ir.Zero) -> Load:
        make = maker(e.type)
        return lambda env: make()

    def _var(self, e: ir.Var) -> Load:
        return itemgetter(self.frame.slot(e))

    def _field(self, e: ir.FieldOf) -> Load:
        index = e.index
        match e.base:
            case ir.Var() as var if not isinstance(var.type, Header):
                slot = self.frame.slot(var)
                return lambda env: env[slot][index]
            case ir.FieldOf(base=ir.Var() as var, index=outer, type=Header()):
                slot = self.frame.slot(var)
                return lambda env: env[slot][outer].fields[index]
        fields = self.fields(e.base)
        return lambda env: fields(env)[index]

    def _element(self, e: ir.ElementOf) -> Load:
        items, make, size = self.items(e.base), maker(e.type), _size(e)
        if isinstance(e.index, ir.Const):
            at = int(e.index.value)
            return (lambda env: items(env)[at]) if 0 <= at < size else (lambda env: make())
        number = self.load(e.index)

        def load(env: Env) -> Value:
            index = number(env)
            return items(env)[index] if 0 <= index < size else make()

        return load

    def items(self, array: ir.Expr) -> Callable[[Env], list[Value]]:
        """Return the function that gives the list of an array's or a stack's elements."""
        load = self.load(array)
        return (lambda env: load(env).items) if isinstance(array.type, Stack) else load

    def _stack_end(self, e: ir.NextOf | ir.LastOf) -> Load:
        position = self.position(e)

        def load(env: Env) -> Value:
            stack, index = position(env)
            return stack.items[index]

        return load

    def _slice(self, e: ir.SliceOf) -> Load:
        base, lo, mask = self.load(e.base), e.lo, (1 << (e.hi - e.lo + 1)) - 1
        return lambda env: base(env) >> lo & mask

    def _last_index(self, e: ir.LastIndex) -> Load:
        stack = self.load(e.base)
        return lambda env: (stack(env).next - 1) & 0xFFFF_FFFF

    def _is_valid(self, e: ir.IsValid) -> Load:
        base = self.load(e.base)
        if isinstance(e.base.type, Union):
            return lambda env: any(member.valid for member in base(env))
        return lambda env: base(env).valid

    def _unary(self, e: ir.Unary) -> Load:
        apply, operand = UNARY[e.op].make(e.type), self.load(e.operand)
        return lambda env: apply(operand(env))

    def _binary(self, e: ir.Binary) -> Load:
        left, right = self.load(e.left), self.load(e.right)
        if e.op == "&&":
            return lambda env: left(env) and right(env)
        if e.op == "||":
            return lambda env: left(env) or right(env)
        apply = BINARY[e.op].make(e.left.type, e.right.type)
        if isinstance(e.right, ir.Const):
            value = e.right.value
            return lambda env: apply(left(env), value)
        return lambda env: apply(left(env), right(env))

    def _mux(self, e: ir.Mux) -> Load:
        cond, then, other = self.load(e.cond), self.load(e.then), self.load(e.other)
        return lambda env: then(env) if cond(env) else other(env)

    def _cast(self, e: ir.Cast) -> Load:
        operand, source, target = self.load(e.operand), e.operand.type, e.type
        if _widens(source, target):
            return operand
        apply = caster(target, source)
        return lambda env: apply(operand(env))

    def _make(self, e: ir.Make) -> Load:
        fields = [self.fresh(f) for f in e.fields]
        if isinstance(e.type, Header):
            return lambda env: HeaderValue(True, [field(env) for field in fields])
        return lambda env: [field(env) for field in fields]


def keep_only(members: list[HeaderValue], valid: HeaderValue) -> None:
    """Invalidate a union's other headers: it has one valid header at most."""
    for member in members:
        if member is not valid:
            member.valid = False


def _size(e: ir.ElementOf) -> int:
    assert isinstance(e.base.type, Array), e.base.type
    return e.base.type.size


def _widens(source: Any, target: Any) -> bool:
    """Return whether a cast leaves the number as it is."""
    both = isinstance(source, Bits) and isinstance(target, Bits)
    return both and source.signed == target.signed and source.width <= target.width


_LOADS: dict[type[ir.Expr], Callable[..., Load]] = by_class(
    ir.Expr,
    {
        ir.Const: Expressions._const,
        ir.Zero: Expressions._zero,
        ir.Var: Expressions._var,
        ir.FieldOf: Expressions._field,
        ir.ElementOf: Expressions._element,
        (ir.NextOf, ir.LastOf): Expressions._stack_end,
        ir.SliceOf: Expressions._slice,
        ir.LastIndex: Expressions._last_index,
        ir.IsValid: Expressions._is_valid,
        ir.Unary: Expressions._unary,
        ir.Binary: Expressions._binary,
        ir.Mux: Expressions._mux,
        ir.Cast: Expressions._cast,
        ir.Make: Expressions._make,
    },
)
