"""The interpreter's expressions, which also follow terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch.interp.expressions import Expressions, Store
from gradplane.switch.interp.interpreter_values import Env, Frame, Load, is_composite
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import BINARY, UNARY, caster, wrap
from gradplane.switch.ir.types import Array, Bits, Bool
from gradplane.switch.testgen.recorder import Recorder
from gradplane.switch.testgen.symbols import (
    SYMBOLIC,
    SYMBOLIC_UNARY,
    Symbol,
    as_bits,
    cast,
    is_symbolic,
    term,
    with_slice,
)

import z3  # isort: skip

_FEW = 16  # elements of an array that a run-time index chooses among


class Compared(Symbol):
    """A value that an extern compares with what it has computed: the result becomes a branch."""

    compare: Callable[[int], None]

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, int), other
        self.compare(other)
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Symbol.__hash__


class ConcolicExpressions(Expressions):
    """Gives symbols where an operand is one."""

    def __init__(self, frame: Frame, errors: dict[str, int], recorder: Recorder) -> None:
        super().__init__(frame, errors)
        self.recorder = recorder
        self.compared: dict[ir.Expr, Callable[[Env, Symbol, int], None]] = {}

    def load(self, e: ir.Expr) -> Load:
        make = _LOADS[type(e)]
        load: Load = super().load(e) if make is None else make(self, e)
        return self._comparing(load, self.compared[e]) if e in self.compared else load

    def _comparing(self, load: Load, compare: Callable[[Env, Symbol, int], None]) -> Load:
        def compared(env: Env) -> Any:
            value = load(env)
            if not isinstance(value, Symbol):
                return value
            made = Compared(value, value.term)
            made.compare = lambda other: compare(env, value, other)
            return made

        return compared

    def _binary(self, e: ir.Binary) -> Load:
        left, right = self.load(e.left), self.load(e.right)
        a_type, b_type = e.left.type, e.right.type
        apply, meaning = BINARY[e.op].make(a_type, b_type), SYMBOLIC[e.op]
        settles = {"&&": False, "||": True}.get(e.op)

        def load(env: Env) -> Any:
            a = left(env)
            if settles is not None and not isinstance(a, Symbol) and a == settles:
                return a
            b = right(env)
            value = apply(a, b)
            if not is_symbolic(a, b):
                return value
            if settles is not None and not isinstance(b, Symbol):
                return a if b != settles else b
            return Symbol(value, meaning(a_type, b_type, term(a_type, a), term(b_type, b)))

        return load

    def _unary(self, e: ir.Unary) -> Load:
        apply, operand, meaning = (
            UNARY[e.op].make(e.type),
            self.load(e.operand),
            SYMBOLIC_UNARY[e.op],
        )

        def load(env: Env) -> Any:
            value = operand(env)
            result = apply(value)
            return Symbol(result, meaning(value.term)) if isinstance(value, Symbol) else result

        return load

    def _cast(self, e: ir.Cast) -> Load:
        operand, source, target = self.load(e.operand), e.operand.type, e.type
        apply = caster(target, source)

        def load(env: Env) -> Any:
            value = operand(env)
            result = apply(value)
            if not isinstance(value, Symbol):
                return result
            return Symbol(result, cast(target, source, value.term))

        return load

    def _mux(self, e: ir.Mux) -> Load:
        cond, then, other = self.load(e.cond), self.load(e.then), self.load(e.other)
        kind, whole = e.type, is_composite(e.type) or not isinstance(e.type, Bits | Bool)

        def load(env: Env) -> Any:
            chosen = cond(env)
            if not isinstance(chosen, Symbol) or whole:
                self.recorder.fix(e.cond.type, chosen)
                return (then if chosen else other)(env)
            yes, no = then(env), other(env)
            made = z3.If(chosen.term, term(kind, yes), term(kind, no))
            return Symbol(yes if chosen else no, made)

        return load

    def _slice(self, e: ir.SliceOf) -> Load:
        base, hi, lo, mask = self.load(e.base), e.hi, e.lo, (1 << (e.hi - e.lo + 1)) - 1

        def load(env: Env) -> Any:
            value = base(env)
            result = value >> lo & mask
            if not isinstance(value, Symbol):
                return result
            return Symbol(result, z3.Extract(hi, lo, value.term))

        return load

    def _element(self, e: ir.ElementOf) -> Load:
        load = super()._element(e)
        if isinstance(e.index, ir.Const):
            return load
        index, kind = self.load(e.index), e.index.type

        def fixed(env: Env) -> Any:
            self.recorder.fix(kind, index(env), soft=0)
            return load(env)

        assert isinstance(e.base.type, Array) and isinstance(kind, Bits), e
        size = min(e.base.type.size, 1 << kind.width)
        few = isinstance(e.type, Bits | Bool) and size <= _FEW
        return self._chosen(e, load, size) if few else fixed

    def _chosen(self, e: ir.ElementOf, load: Load, size: int) -> Load:
        """Return an element of a few numbers, whichever the index is."""
        index, items, kind = self.load(e.index), self.items(e.base), e.type

        def load_any(env: Env) -> Any:
            at, value = index(env), load(env)
            if not isinstance(at, Symbol):
                return value
            made = term(kind, 0)
            for i, item in enumerate(items(env)[:size]):
                made = z3.If(at.term == i, term(kind, item), made)
            return Symbol(value, made)

        return load_any

    def _store_slice(self, target: ir.SliceOf) -> Store:
        assert isinstance(target.base, ir.LValue), target.base
        load, store, kind = self.load(target.base), self.store(target.base), target.base.type
        into, hi, lo, part = wrap(kind), target.hi, target.lo, target.type
        mask = ((1 << (hi - lo + 1)) - 1) << lo

        def store_slice(env: Env, value: int) -> None:
            before = load(env)
            result = into(before & ~mask | value << lo & mask)
            if is_symbolic(before, value):
                made = with_slice(term(kind, before), hi, lo, as_bits(part, value))
                result = Symbol(result, made)
            store(env, result)

        return store_slice


_LOADS: dict[type[ir.Expr], Callable[[ConcolicExpressions, Any], Load] | None] = by_class(
    ir.Expr,
    {
        (
            ir.Const, ir.Zero, ir.Var, ir.FieldOf, ir.NextOf, ir.LastOf, ir.LastIndex, ir.IsValid,
            ir.Make,
        ): None,
        ir.ElementOf: ConcolicExpressions._element,
        ir.SliceOf: ConcolicExpressions._slice,
        ir.Unary: ConcolicExpressions._unary,
        ir.Binary: ConcolicExpressions._binary,
        ir.Mux: ConcolicExpressions._mux,
        ir.Cast: ConcolicExpressions._cast,
    },
)  # fmt: skip
