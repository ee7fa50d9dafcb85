"""Expressions of the intermediate representation as BMv2's.

BMv2 computes with numbers of any size, so results are cut to their width: unsigned ones by a mask,
signed ones by `two_comp_mod`. Fields are declared unsigned, and a signed one is converted when it
is read. Booleans and numbers are two kinds of expression there, with `d2b` and `b2d` between them;
in a field a boolean is one bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    Place,
    StackAt,
    Storage,
    StructAt,
    UnionAt,
    scalar_width,
)
from gradplane.switch.bmv2_names import COMPARISONS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Stack, Type, Union
from gradplane.switch.ir.walk import operands, with_operands
from gradplane.switch.source import Span, refuse

NOWHERE = Span("<program>", 0, 0, 0)
_LARGEST_SHIFT = 1 << 16  # BMv2 would build a number of as many bits


def op(name: str, left: Json | None, right: Any, **more: Any) -> Json:
    """Return an expression of an operator; `left` is None for a unary one."""
    return {"type": "expression", "value": {"op": name, "left": left, "right": right} | more}


def number(value: int) -> Json:
    """Return a constant."""
    return {"type": "hexstr", "value": hex(value)}


def truth(value: bool) -> Json:
    """Return a boolean constant."""
    return {"type": "bool", "value": value}


def masked(value: Json, width: int) -> Json:
    """Return the low `width` bits of a number, unsigned."""
    return op("&", value, number((1 << width) - 1))


def both(left: Json, right: Json) -> Json:
    """Return the conjunction of two booleans."""
    return op("and", left, right)


class Expressions:
    """Translates expressions; `locals` are the action's parameters, by position."""

    def __init__(
        self, storage: Storage, locals_: dict[ir.Var, int] | None = None, span: Span = NOWHERE
    ) -> None:
        self.storage, self.span = storage, span
        self._locals = locals_ or {}

    def replace(self, parameter: ir.Var, copy: ir.Var) -> None:
        """Let a parameter of the action be a variable from now on."""
        del self._locals[parameter]
        self.storage.share([parameter], self.storage.place(copy))

    # -- values ---------------------------------------------------------------------------------

    def value(self, e: ir.Expr) -> Json:
        """Return a scalar: a number of its type's range, or for Bool a boolean."""
        found: Json = _VALUES[type(e)](self, e)
        return found

    def _zero(self, e: ir.Zero) -> Json:
        return truth(False) if isinstance(e.type, Bool) else number(0)

    def _var(self, e: ir.Var) -> Json:
        if e in self._locals:
            return _typed({"type": "local", "value": self._locals[e]}, e.type)
        return self._stored(e)

    def _stored(self, e: ir.LValue) -> Json:
        beyond = truth(False) if isinstance(e.type, Bool) else number(0)
        if (chosen := run_time_index(e)) is not None:
            return self._chosen(e, chosen, beyond, self.value)
        return _where(self.guard(e), lambda: _typed(self.field(e), e.type), beyond)

    def _chosen(
        self, e: ir.Expr, chosen: ir.ElementOf, beyond: Json, value: Callable[[ir.Expr], Json]
    ) -> Json:
        """Return a value that goes through an array's element by a run-time index."""
        for at in range(_size(chosen)):
            cond, then = self.chosen_at(chosen, at), value(at_index(e, chosen, at))
            if beyond["type"] == "bool" or isinstance(e.type, Bool):
                beyond = op("or", both(cond, then), beyond)
            else:
                beyond = op("?", then, beyond, cond=cond)
        return beyond

    def chosen_at(self, chosen: ir.ElementOf, at: int) -> Json:
        """Return the condition under which a run-time index is `at`."""
        return op("==", self.value(chosen.index), number(at))

    def _last_index(self, e: ir.LastIndex) -> Json:
        return masked(op("last_stack_index", None, self.stack(e.base)), scalar_width(e.type))

    def _slice(self, e: ir.SliceOf) -> Json:
        inner = self.value(e.base)
        shifted = op(">>", inner, number(e.lo)) if e.lo else inner
        return masked(shifted, e.hi - e.lo + 1)

    def _refused(self, e: ir.Expr) -> Json:
        raise refuse(self.span, f"BMv2 has no expression {type(e).__name__}")

    def number(self, e: ir.Expr) -> Json:
        """Return a scalar as a number, a boolean as 0 or 1."""
        value = self.value(e)
        if not isinstance(e.type, Bool):
            return value
        if value["type"] == "bool":
            return number(int(value["value"]))
        return op("b2d", None, value)

    def parameter(self, e: ir.Expr) -> Json:
        """Return a scalar as a primitive's parameter: a number."""
        if isinstance(e, ir.Var) and e in self._locals:
            t = e.type
            if not (isinstance(t, Bits) and t.signed):
                return {"type": "runtime_data", "value": self._locals[e]}
        found = self.number(e)
        if found["type"] in ("field", "hexstr"):
            return found
        return {"type": "expression", "value": found}

    def condition(self, e: ir.Expr) -> Json:
        """Return a boolean as a number, as jumps take it."""
        return {"type": "expression", "value": self.number(e)}

    # -- places ---------------------------------------------------------------------------------

    def place(self, e: ir.Expr) -> Place | None:
        """Return the place that an expression names; None if it depends on the packet."""
        match e:
            case ir.Var():
                return None if e in self._locals else self.storage.place(e)
            case ir.FieldOf():
                base = self.place(e.base)
                if isinstance(base, StructAt | HeaderAt | UnionAt):
                    return base.member(e.index)
            case ir.ElementOf(index=ir.Const(value=index)):
                stack = self.place(e.base)
                if isinstance(stack, StackAt) and isinstance(index, int):
                    return stack.element(index) if index < stack.type.size else None
                if isinstance(stack, StructAt) and isinstance(index, int):
                    return stack.member(index) if index < len(stack.members) else None
        return None

    def field(self, e: ir.LValue) -> Json:
        """Return a scalar place as it is referred to, without conversion."""
        place = self.place(e)
        if isinstance(place, FieldAt):
            return {"type": "field", "value": place.reference}
        if isinstance(e, ir.FieldOf | ir.ElementOf):
            last = e.base if isinstance(e, ir.FieldOf) else None
            if isinstance(last, ir.LastOf) and isinstance(last.type, Header):
                stack = self.place(last.base)
                assert isinstance(stack, StackAt) and isinstance(e, ir.FieldOf), e
                return {"type": "stack_field", "value": [stack.name, e.name]}
            offset, header = _offset(e)
            return op("access_field", self.header(header), offset)
        raise refuse(self.span, "BMv2 cannot refer to this value")

    def header(self, e: ir.Expr) -> Json:
        """Return a header (or union) as an expression."""
        place = self.place(e)
        if isinstance(place, HeaderAt):
            return {"type": "header", "value": place.name}
        if isinstance(place, UnionAt):
            return {"type": "header_union", "value": place.name}
        if isinstance(e, ir.ElementOf):
            stack = self.stack(e.base)
            if isinstance(e.type, Union):
                return op("dereference_union_stack", stack, self.value(e.index))
            return op("dereference_header_stack", stack, self.value(e.index))
        if isinstance(e, ir.LastOf):
            assert isinstance(e.base.type, Stack)
            stack = self.stack(e.base)
            return op("dereference_header_stack", stack, op("last_stack_index", None, stack))
        if isinstance(e, ir.FieldOf) and isinstance(e.base.type, Union):
            # BMv2 1.15.5 builds its operator access_union_header as access_field, and crashes.
            text = "BMv2 has no run-time index, and no last, in a stack of header unions"
            raise refuse(self.span, text)
        raise refuse(self.span, "BMv2 cannot refer to this header")

    def guard(self, e: ir.Expr) -> Json | None:
        """Return the condition under which the indices in an expression are inside, those by which
        an array is read at run time aside."""
        found = None
        while isinstance(e, ir.FieldOf | ir.ElementOf | ir.SliceOf):
            if isinstance(e, ir.ElementOf):
                size = _size(e)
                if not isinstance(e.index, ir.Const):
                    inside = op("<", self.value(e.index), number(size))
                    found = inside if found is None else both(inside, found)
                elif int(e.index.value) >= size:
                    found = truth(False)
            e = e.base
        return found

    # -- operators ------------------------------------------------------------------------------

    def _valid(self, e: ir.IsValid) -> Json:
        base = e.base
        place = self.place(base)
        if isinstance(place, HeaderAt):
            valid = {"type": "field", "value": [place.name, "$valid$"]}
            return op("d2b", None, valid)
        if isinstance(place, UnionAt) or isinstance(base.type, Union):
            return op("valid_union", None, self.header(base))
        if (chosen := run_time_index(base)) is not None:
            valid_at = lambda at: self._valid(ir.IsValid(e.type, at))  # noqa: E731
            return self._chosen(base, chosen, truth(False), valid_at)
        found = lambda: op("valid", None, self.header(base))  # noqa: E731
        return _where(self.guard(base), found, truth(False))

    def stack(self, base: ir.Expr) -> Json:
        """Return a stack as an expression."""
        place = self.place(base)
        assert isinstance(place, StackAt), base
        kind = "header_union_stack" if isinstance(place.type.element, Union) else "header_stack"
        return {"type": kind, "value": place.name}

    def _unary(self, e: ir.Unary) -> Json:
        operand = self.value(e.operand)
        if e.op == "!":
            return op("not", None, operand)
        return _cut(op(e.op, None, operand), e.type)

    def _binary(self, e: ir.Binary) -> Json:
        if e.op in ("&&", "||"):
            return op({"&&": "and", "||": "or"}[e.op], self.value(e.left), self.value(e.right))
        left, right = self.value(e.left), self.value(e.right)
        if e.op in COMPARISONS:
            return op(e.op, left, right)
        match e.op:
            case "+" | "-" | "*":
                return _cut(op(e.op, left, right), e.type)
            case "&" | "|" | "^":
                return op(e.op, left, right)
            case "|+|" | "|-|":
                assert isinstance(e.type, Bits)
                cast = "sat_cast" if e.type.signed else "usat_cast"
                return op(cast, op(e.op[1], left, right), number(e.type.width))
            case "++":
                low = scalar_width(e.right.type)
                if _signed(e.right.type):
                    right = masked(right, low)
                return _cut(op("|", op("<<", left, number(low)), right), e.type, _signed(e.type))
            case "/" | "%":
                quotient = op(e.op, left, right)
                if isinstance(e.right, ir.Const):
                    return quotient if e.right.value else number(0)
                return op("?", number(0), quotient, cond=op("==", right, number(0)))
            case "<<" | ">>":
                return self._shift(e, left, right)
        raise AssertionError(e.op)

    def _shift(self, e: ir.Binary, left: Json, right: Json) -> Json:
        width = scalar_width(e.type)
        shifted = op(e.op, left, right)
        if e.op == "<<":
            shifted = _cut(shifted, e.type)
        if isinstance(e.right, ir.Const):
            safe = int(e.right.value) < _LARGEST_SHIFT
        else:
            safe = 1 << scalar_width(e.right.type) <= _LARGEST_SHIFT
        if safe:
            return shifted
        beyond = number(0)
        if e.op == ">>" and _signed(e.type):
            beyond = op(">>", left, number(width))
        return op("?", shifted, beyond, cond=op("<", right, number(width)))

    def _mux(self, e: ir.Mux) -> Json:
        cond, then, other = self.value(e.cond), self.value(e.then), self.value(e.other)
        if isinstance(e.type, Bool):
            return op("or", both(cond, then), both(op("not", None, cond), other))
        return op("?", then, other, cond=cond)

    def _cast(self, e: ir.Cast) -> Json:
        inner, source, target = self.value(e.operand), e.operand.type, e.type
        if isinstance(target, Bool):
            return inner if isinstance(source, Bool) else op("d2b", None, inner)
        if isinstance(source, Bool):
            return self.number(e.operand)
        assert isinstance(source, Bits) and isinstance(target, Bits), e
        if target.signed:
            fits = source.width <= target.width if source.signed else source.width < target.width
        else:
            fits = source.width <= target.width and not source.signed
        return inner if fits else _cut(inner, target)


def _where(guard: Json | None, value: Callable[[], Json], other: Json) -> Json:
    """Return a value under a guard, and another one elsewhere. Of BMv2's operators only `?` leaves
    an operand out."""
    if guard is None:
        return value()
    return other if guard == truth(False) else op("?", value(), other, cond=guard)


def run_time_index(e: ir.Expr) -> ir.ElementOf | None:
    """Return the first element of an array, not of a stack, by a run-time index on the way to a
    place."""
    found = None
    while isinstance(e, ir.FieldOf | ir.ElementOf | ir.SliceOf):
        if isinstance(e, ir.ElementOf) and not isinstance(e.base.type, Stack):
            found = found if isinstance(e.index, ir.Const) else e
        e = e.base
    return found


def at_index(e: ir.Expr, chosen: ir.ElementOf, at: int) -> ir.Expr:
    """Return a place with a constant instead of the run-time index of one element."""
    if e is chosen:
        return ir.ElementOf(e.type, chosen.base, ir.Const(chosen.index.type, at))
    base, *others = operands(e)
    return with_operands(e, [at_index(base, chosen, at), *others])


def _size(e: ir.ElementOf) -> int:
    assert isinstance(e.base.type, Array), e.base.type
    return e.base.type.size


def _offset(e: ir.FieldOf | ir.ElementOf) -> tuple[int, ir.LValue]:
    """Return a field's number among the flat fields of its header, and that header."""
    offset = 0
    inner: ir.LValue = e
    while isinstance(inner, ir.FieldOf | ir.ElementOf) and not isinstance(inner.type, Header):
        index, t = inner.index, inner.base.type
        if isinstance(index, ir.Const):
            offset += int(index.value) * _flat_count(inner.type)
        elif isinstance(index, int) and isinstance(t, Fields):
            offset += sum(_flat_count(f.type) for f in t.fields[:index])
        inner = inner.base
    return offset, inner


def _flat_count(t: Type) -> int:
    if isinstance(t, Array):
        return t.size * _flat_count(t.element)
    return sum(_flat_count(f.type) for f in t.fields) if isinstance(t, Fields) else 1


def _constant(e: ir.Const) -> Json:
    if isinstance(e.value, bool):
        return truth(e.value)
    assert isinstance(e.value, int), e.value
    return number(e.value)


def _signed(t: Type) -> bool:
    return isinstance(t, Bits) and t.signed


def _cut(value: Json, t: Type, needed: bool = True) -> Json:
    """Bring a number into the range of its type."""
    if not needed:
        return value
    if _signed(t):
        return op("two_comp_mod", value, number(scalar_width(t)))
    return masked(value, scalar_width(t))


def _typed(value: Json, t: Type) -> Json:
    """Convert a field's raw number to a value of its type."""
    if isinstance(t, Bool):
        return op("d2b", None, value)
    return _cut(value, t, _signed(t))


_VALUES: dict[type[ir.Expr], Callable[..., Json]] = by_class(
    ir.Expr,
    {
        ir.Const: lambda code, e: _constant(e),
        ir.Zero: Expressions._zero,
        ir.Var: Expressions._var,
        ir.SliceOf: Expressions._slice,
        ir.LValue: Expressions._stored,
        ir.IsValid: Expressions._valid,
        ir.LastIndex: Expressions._last_index,
        ir.Unary: Expressions._unary,
        ir.Binary: Expressions._binary,
        ir.Mux: Expressions._mux,
        ir.Cast: Expressions._cast,
        ir.Make: Expressions._refused,
    },
)
