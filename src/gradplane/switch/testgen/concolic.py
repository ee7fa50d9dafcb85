"""The interpreter's statements and expressions, which also follow terms and record the path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.switch.interp.expressions import Expressions, Store
from gradplane.switch.interp.interpreter_values import Env, Frame, Load, Run, is_composite
from gradplane.switch.interp.packet import HeaderCodec, Reject
from gradplane.switch.interp.statements import Code, Externs, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import BINARY, UNARY, caster, wrap
from gradplane.switch.ir.types import Bits, Bool, Type, bit_width
from gradplane.switch.ir.walk import path, reads, within, writes
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.state import State
from gradplane.switch.source import Span
from gradplane.switch.testgen.recorder import INDEX, Goal, Recorder
from gradplane.switch.testgen.symbols import (
    SYMBOLIC,
    SYMBOLIC_UNARY,
    Symbol,
    Term,
    as_bits,
    cast,
    is_symbolic,
    pieces,
    symbolic,
    symbols,
    term,
    with_slice,
)

import z3  # isort: skip


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

        return fixed

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


class Effects:
    """What bodies that only assign numbers to variables and fields write."""

    def __init__(self, statements: ConcolicStatements, bodies: Sequence[Sequence[ir.Stmt]]) -> None:
        self._places: dict[Any, tuple[Type, Load, Store]] = {}
        self._bodies: list[list[tuple[Any, Load]]] = []
        for body in bodies:
            written = []
            for stmt in body:
                assert isinstance(stmt, ir.Assign), stmt
                place = path(stmt.target)
                access = (
                    stmt.target.type,
                    statements.load(stmt.target),
                    statements.store(stmt.target),
                )
                self._places[place] = access
                written.append((place, statements.load(stmt.value)))
            self._bodies.append(written)

    @classmethod
    def of(
        cls, statements: ConcolicStatements, bodies: Sequence[Sequence[ir.Stmt]]
    ) -> Effects | None:
        """Return the effects of bodies; None if any does more than assign numbers."""
        simple = all(_is_simple(stmt) for body in bodies for stmt in body)
        return cls(statements, bodies) if simple else None

    def imagined(self, env: Env, number: int) -> dict[Any, Any]:
        """Return what body `number` would leave in all the places, and leave them as they are."""
        before = {place: load(env) for place, (_, load, _) in self._places.items()}
        for place, value in self._bodies[number]:
            self._places[place][2](env, value(env))
        after = {place: load(env) for place, (_, load, _) in self._places.items()}
        for place, (_, _, store) in self._places.items():
            store(env, before[place])
        return after

    def merge(self, env: Env, others: Sequence[tuple[Term, dict[Any, Any]]]) -> None:
        """Give the places terms for the other cases, each with its condition, too."""
        for place, (kind, load, store) in self._places.items():
            value = load(env)
            if all(written[place] is value for _, written in others):
                continue
            merged = term(kind, value)
            for condition, written in others:
                merged = z3.If(condition, term(kind, written[place]), merged)
            store(env, Symbol(value, merged))


def _is_simple(stmt: ir.Stmt) -> bool:
    if not isinstance(stmt, ir.Assign) or not isinstance(stmt.target.type, Bits | Bool):
        return False
    stack = ir.ElementOf | ir.NextOf | ir.LastOf
    plain = not any(isinstance(e, stack) for e in [*within(stmt.value), *within(stmt.target)])
    return plain and path(stmt.target) is not None


class ConcolicStatements(Statements):
    """Records in `recorder`. `on_path`: the statements are the packet path's, not the program's."""

    def __init__(
        self, frame: Frame, state: State, errors: dict[str, int], externs: Externs,
        recorder: Recorder, on_path: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(frame, state, errors, externs)
        self.recorder, self.on_path = recorder, on_path
        self.expressions: ConcolicExpressions = ConcolicExpressions(frame, errors, recorder)
        self.load, self.store = self.expressions.load, self.expressions.store
        self.error = self.expressions.error
        self.assigned: list[ir.Assign] = []  # statements that are no part of the program

    def beside(self, externs: Externs) -> Statements:
        errors = self.expressions.errors
        made = ConcolicStatements(self.frame, self.state, errors, externs, self.recorder, True)
        made.assigned = self.assigned
        return made

    def compile(self, stmt: ir.Stmt) -> Code:
        made = _CONCOLIC[type(stmt)](self, stmt)
        code = made if isinstance(made, Code) else Code(made)
        if self.on_path:
            if isinstance(stmt, ir.Assign) and _is_simple(stmt):
                self.assigned.append(stmt)
            return code
        goal: Goal = ("line", stmt.span, "")
        run, cover = code.run, self.recorder.cover

        def covered(env: Env) -> Any:
            cover(goal)
            return run(env)

        return Code(covered, code.jumps)

    def _as_it_is(self, s: ir.Stmt) -> Code:
        return super().compile(s)

    def unsigned(self, e: ir.Expr) -> Load:
        load = self.load(e)
        if not (isinstance(e.type, Bits) and e.type.signed):
            return load
        mask = (1 << e.type.width) - 1

        def unsigned(env: Env) -> Any:
            value = load(env)
            return Symbol(value & mask, value.term) if isinstance(value, Symbol) else value & mask

        return unsigned

    # -- branches ---------------------------------------------------------------------------------

    def _if(self, s: ir.If) -> Code:
        if (merged := self._merged_if(s)) is not None:
            return Code(merged)
        arms = [(s.span, self.load(s.cond), self.body(s.then))]
        other = s.other
        while len(other) == 1 and isinstance(other[0], ir.If):
            one = other[0]
            arms.append((one.span, self.load(one.cond), self.body(one.then)))
            other = one.other
        last = self.body(other)
        tests = [(at, cond, body.run) for at, cond, body in arms]

        def run(env: Env) -> Any:
            for at, cond, body in tests:
                value = cond(env)
                self._branched(at, value)
                if value:
                    return body(env)
            return last.run(env)

        return Code(run, last.jumps or any(body.jumps for _, _, body in arms))

    def _branched(self, at: Span, value: Any, merged: bool = False) -> None:
        self.recorder.cover(("line", at, ""))
        goals: list[Goal] = [("branch", at, "true"), ("branch", at, "false")]
        condition = value.term if isinstance(value, Symbol) else None
        self.recorder.decide(goals[not value], goals[bool(value)], value, condition, merged)

    def _merged_if(self, s: ir.If) -> Run | None:
        """Return the closure of an if whose bodies only assign numbers: what they write then has a
        term for both cases, and the path does not depend on which it was. None for others."""
        effects = Effects.of(self, [s.then, s.other])
        if effects is None:
            return None
        cond, bodies = self.load(s.cond), [self.body(s.then).run, self.body(s.other).run]

        def run(env: Env) -> None:
            value = cond(env)
            self._branched(s.span, value, merged=True)
            taken = int(not value)
            if not isinstance(value, Symbol):
                bodies[taken](env)
                return
            imagined = effects.imagined(env, 1 - taken)
            bodies[taken](env)
            condition = value.term if taken else z3.Not(value.term)
            effects.merge(env, [(condition, imagined)])

        return run

    def _switch(self, s: ir.SwitchStmt) -> Code:
        code, subject = super()._switch(s), self.load(s.subject)
        cases = [(case_goal(s.span, values), values) for values, _ in s.cases]
        default = case_goal(s.span, [])
        kind = s.subject.type

        def run(env: Env) -> Any:
            value = subject(env)
            goal = next((goal for goal, values in cases if int(value) in values), default)
            self.recorder.cover(goal)
            if isinstance(value, Symbol):
                terms = [
                    z3.Or(*(value.term == _unwrapped(kind, v) for v in values))
                    for _, values in cases
                ]
                goals = [*(goal for goal, _ in cases), default]
                self.recorder.choose(goals, terms, goal)
            return code.run(env)

        return Code(run, code.jumps)

    def selected(self, state: ir.State, choose: Load) -> Load:
        keys = [self.unsigned(e) for e in state.select]
        kinds = [e.type for e in state.select]
        goals = [select_goal(state, case) for case in state.cases]
        tests = [self._case(case, kinds) for case in state.cases]
        sets = {i: self._member(case) for i, case in enumerate(state.cases)}

        def run(env: Env) -> Any:
            values = tuple(key(env) for key in keys)
            terms, taken = [], None
            for i, test in enumerate(tests):
                found = sets[i]
                if found is not None:
                    found(values)
                holds, condition = test(env, values)
                terms.append(condition)
                if holds and taken is None:
                    taken = goals[i]
                    if not isinstance(condition, z3.ExprRef):
                        break
            if taken is not None:
                self.recorder.cover(taken)
            reached = goals[: len(terms)]
            self.recorder.choose([*reached, None], terms, taken)
            return choose(env)

        return run if state.select else choose

    def _member(self, case: ir.SelectCase) -> Callable[[tuple[Any, ...]], None] | None:
        sets = [m for m in case.matches if isinstance(m, ir.MatchSet)]
        if len(case.matches) != 1 or not sets:
            return None
        value_set = self.state.value_sets[sets[0].set.name]
        return lambda values: self.recorder.in_set(value_set, values, case.span)

    def _case(
        self, case: ir.SelectCase, kinds: list[Type]
    ) -> Callable[[Env, tuple[Any, ...]], tuple[bool, Any]]:
        """Return what says whether a case holds, and its condition: a term, or a bool."""
        if len(case.matches) == 1 and isinstance(case.matches[0], ir.MatchAny):
            return lambda env, values: (True, True)
        if len(case.matches) == 1 and isinstance(case.matches[0], ir.MatchSet):
            value_set = self.state.value_sets[case.matches[0].set.name]

            def in_set(env: Env, values: tuple[Any, ...]) -> tuple[bool, Any]:
                return (holds := value_set.contains([int(v) for v in values])), holds

            return in_set
        parts = [self._match(m, t) for m, t in zip(case.matches, kinds, strict=True)]

        def test(env: Env, values: tuple[Any, ...]) -> tuple[bool, Any]:
            found = [part(env, value) for part, value in zip(parts, values, strict=True)]
            if any(condition is False for _, condition in found):
                return False, False
            terms = [condition for _, condition in found if condition is not True]
            return all(holds for holds, _ in found), z3.And(*terms) if terms else True

        return test

    def _match(self, match: ir.Match, kind: Type) -> Callable[[Env, Any], tuple[bool, Any]]:
        operands = [self.unsigned(e) for e in reads(match)]
        signed = isinstance(kind, Bits) and kind.signed

        def test(env: Env, value: Any) -> tuple[bool, Any]:
            numbers = [operand(env) for operand in operands]
            holds = _holds(match, value, numbers, kind)
            if not is_symbolic(value, *numbers):
                return holds, holds
            terms = [as_bits(kind, v) for v in (value, *numbers)]
            return holds, _match_term(match, terms, signed)

        return test

    def _verify(self, s: ir.Verify) -> Run:
        code, cond = super().compile(s), self.load(s.cond)

        def run(env: Env) -> None:
            self._branched(s.span, cond(env))
            code.run(env)

        return run

    # -- the packet -------------------------------------------------------------------------------

    def _extract(self, s: ir.Extract) -> Run:
        code, header = super().compile(s), self.load(s.target)
        kind: Any = s.target.type
        codec, size = HeaderCodec(kind), None if s.size is None else self.load(s.size)

        def run(env: Env) -> None:
            packet, at = env[0], env[0].position
            try:
                target = header(env)
            except Reject:
                target = None
            if size is not None:
                varying = size(env)
                self.recorder.sized(varying, codec.limit, s.span)
            else:
                varying = 0
            if target is not None:
                self.recorder.needs(packet.data, at + codec.fixed + int(varying), s.span)
            code.run(env)
            bits = self.recorder.bits.get(packet.data)
            if bits is not None:
                target.fields = symbolic(kind, target, bits, at).fields

        return run

    def _lookahead(self, s: ir.Lookahead) -> Run:
        code, load, store = super().compile(s), self.load(s.target), self.store(s.target)
        kind, width = s.target.type, bit_width(s.target.type) or 0

        def run(env: Env) -> None:
            packet = env[0]
            self.recorder.needs(packet.data, packet.position + width, s.span)
            code.run(env)
            bits = self.recorder.bits.get(packet.data)
            if bits is not None:
                store(env, symbolic(kind, load(env), bits, packet.position))

        return run

    def _advance(self, s: ir.Advance) -> Run:
        code, bits = super().compile(s), self.load(s.bits)

        def run(env: Env) -> None:
            size = bits(env)
            self.recorder.fix(s.bits.type, size, soft=0)
            self.recorder.needs(env[0].data, env[0].position + int(size), s.span)
            code.run(env)

        return run

    def _packet_length(self, s: ir.PacketLength) -> Run:
        code, load, store = super().compile(s), self.load(s.target), self.store(s.target)

        def run(env: Env) -> None:
            code.run(env)
            store(env, self._length(env[0].data, load(env)))

        return run

    def _length(self, data: bytes, value: int) -> int:
        known = self.recorder.packet
        if known is None or known[0] is not data:
            return value
        return Symbol(value, z3.ZeroExt(16, known[1]))

    def _emit(self, s: ir.Emit) -> Run:
        code, value, kind = super().compile(s), self.load(s.value), s.value.type

        def run(env: Env) -> None:
            code.run(env)
            self.recorder.emitted(env[0], list(pieces(kind, value(env))))

        return run

    # -- tables and externs -----------------------------------------------------------------------

    def applied(self, s: ir.ApplyTable, table: MatchTable, key: Load) -> Code:
        kinds = [k.expr.type for k in s.table.keys if k.match_kind != "selector"]
        actions = [choice.action for choice in s.table.actions]
        simple = [i for i, a in enumerate(actions) if all(_is_simple(stmt) for stmt in a.body)]
        slots = [self.action(actions[i])[:2] for i in simple]  # first: their variables are in a row
        effects = Effects(self, [actions[i].body for i in simple])
        results = [(p, self.load(p), self.store(p)) for p in (s.hit, s.action_run) if p is not None]
        others: list[Any] = []

        def looked_up(env: Env) -> Any:
            values = key(env)
            others.clear()
            merging = self.recorder.look_up(table, values, kinds, simple)
            for condition, hit, data in merging:
                at = simple.index(data.index)
                start, end = slots[at]
                env[start:end] = data.args
                others.append((condition, hit, data, effects.imagined(env, at)))
            return values

        code = super().applied(s, table, looked_up)

        def run(env: Env) -> Any:
            signal = code.run(env)
            if others:
                effects.merge(env, [(condition, written) for condition, _, _, written in others])
                for place, load, store in results:
                    value = load(env)
                    merged = term(place.type, value)
                    for condition, hit, data, _ in others:
                        other = hit if place is s.hit else data.index
                        merged = z3.If(condition, term(place.type, other), merged)
                    store(env, Symbol(value, merged))
            return signal

        return Code(run, code.jumps)

    def _call(self, s: ir.CallExtern) -> Run:
        if self.on_path:
            return _PATH.get(s.name, ConcolicStatements._plain_call)(self, s)
        if s.instance is not None and s.instance.kind == "register":
            return self._register(s)
        if s.name.startswith("verify_checksum"):
            return self._checked(s)
        inputs = [(a.type, self.load(a)) for d, a in zip(s.directions, s.args, strict=True)
                  if d in ("", "in") and not isinstance(a, ir.Const)]  # fmt: skip
        code = super()._call(s)
        if not list(writes(s)) or not inputs:
            return code

        def run(env: Env) -> Any:
            for kind, load in inputs:
                for t, value in symbols(kind, load(env)):
                    self.recorder.fix(t, value)
            return code(env)

        return run

    def _plain_call(self, s: ir.CallExtern) -> Run:
        return super()._call(s)

    def _checked(self, s: ir.CallExtern) -> Run:
        """Make a branch of the comparison of a checksum, with the rest of the packet as it is; what
        is noted of the result has a term."""
        data, expected = self.load(s.args[1]), s.args[2]
        goals: list[Goal] = [("checksum", s.span, "right"), ("checksum", s.span, "wrong")]
        compared: list[tuple[bool, Term]] = []

        def compare(env: Env, value: Symbol, computed: int) -> None:
            for t, one in symbols(s.args[1].type, data(env)):
                self.recorder.fix(t, one)
            same, equal = int(value) == computed, as_bits(expected.type, value) == computed
            self.recorder.decide(goals[not same], goals[same], same, equal, merged=True)
            compared.append((same, equal))

        self.expressions.compared[expected] = compare
        self.assigned.clear()
        code = super()._call(s)
        effects = Effects(self, [self.assigned, []])

        def run(env: Env) -> None:
            compared.clear()
            noted = [effects.imagined(env, number) for number in (0, 1)]
            code(env)
            for same, equal in compared:
                effects.merge(env, [(z3.Not(equal) if same else equal, noted[not same])])

        return run

    def _register(self, s: ir.CallExtern) -> Run:
        """Let what a register gives have the term of what was written there."""
        assert s.instance is not None
        code, name, cells = super()._call(s), s.instance.name, self.recorder
        inputs = [a for d, a in zip(s.directions, s.args, strict=True) if d != "out"]
        given, kind = [self.load(a) for a in inputs], inputs[0].type
        places = [(self.load(p), self.store(p)) for p in writes(s)]

        def run(env: Env) -> Any:
            at, *written = [load(env) for load in given]
            cells.fix(kind, at, soft=INDEX)
            cell = (name, int(at))
            result = code(env)
            if written:
                cells.run.remembers = True
                cells.cells.pop(cell, None)
                if isinstance(written[0], Symbol):
                    cells.cells[cell] = written[0]
            known = cells.cells.get(cell)
            for load, store in places:
                if known is not None and int(known) == load(env):
                    store(env, known)
            return result

        return run

    # -- primitives of the path -------------------------------------------------------------------

    def _size(self, s: ir.CallExtern) -> Run:
        code, data, target = super()._call(s), self.load(s.args[0]), s.result
        assert target is not None
        store, load = self.store(target), self.load(target)

        def run(env: Env) -> None:
            code(env)
            store(env, self._length(data(env)[0], load(env)))

        return run

    def _deparse(self, s: ir.CallExtern) -> Run:
        code, target = super()._call(s), s.result
        assert target is not None
        load = self.load(target)

        def run(env: Env) -> None:
            code(env)
            self.recorder.deparsed(env[0], load(env)[0])

        return run

    def _asks_group(self, s: ir.CallExtern) -> Run:
        code, number = super()._call(s), self.load(s.args[0])

        def run(env: Env) -> None:
            self.recorder.group(int(number(env)))
            code(env)

        return run

    def _asks_session(self, s: ir.CallExtern) -> Run:
        code, number = super()._call(s), self.load(s.args[0])

        def run(env: Env) -> None:
            self.recorder.session(int(number(env)))
            code(env)

        return run


_PATH: dict[str, Callable[[ConcolicStatements, ir.CallExtern], Run]] = {
    "size": ConcolicStatements._size,
    "deparse": ConcolicStatements._deparse,
    "members": ConcolicStatements._asks_group,
    "has_members": ConcolicStatements._asks_group,
    "session": ConcolicStatements._asks_session,
    "has_session": ConcolicStatements._asks_session,
}

_CONCOLIC: dict[type[ir.Stmt], Callable[[ConcolicStatements, Any], Code | Run]] = by_class(
    ir.Stmt,
    {
        (
            ir.Assign, ir.SetValid, ir.Push, ir.Pop, ir.Block, ir.Leave, ir.Loop, ir.Exit,
            ir.ApplyTable, ir.CallUserExtern,
        ): ConcolicStatements._as_it_is,
        ir.If: ConcolicStatements._if,
        ir.SwitchStmt: ConcolicStatements._switch,
        ir.CallExtern: ConcolicStatements._call,
        ir.Extract: ConcolicStatements._extract,
        ir.Lookahead: ConcolicStatements._lookahead,
        ir.Advance: ConcolicStatements._advance,
        ir.PacketLength: ConcolicStatements._packet_length,
        ir.Verify: ConcolicStatements._verify,
        ir.Emit: ConcolicStatements._emit,
    },
)  # fmt: skip


# -- goals and matches ----------------------------------------------------------------------------


def case_goal(place: Span, values: list[int]) -> Goal:
    """Return the goal of a case of a switch; no values: the default."""
    return "case", place, ", ".join(map(str, values)) or "default"


def select_goal(state: ir.State, case: ir.SelectCase) -> Goal:
    """Return the goal of a case of a select."""
    return "case", case.span, f"to {case.next}"


def _unwrapped(kind: Type, value: int) -> int:
    return value & ((1 << kind.width) - 1) if isinstance(kind, Bits) else value


def _holds(match: ir.Match, value: Any, numbers: list[Any], kind: Type) -> bool:
    key, given = int(value), [int(n) for n in numbers]
    match match:
        case ir.MatchValue():
            return key == given[0]
        case ir.MatchMask():
            return key & given[1] == given[0] & given[1]
        case ir.MatchRange():
            flip = 1 << kind.width >> 1 if isinstance(kind, Bits) and kind.signed else 0
            return given[0] ^ flip <= key ^ flip <= given[1] ^ flip
    return True


def _match_term(match: ir.Match, terms: list[Term], signed: bool) -> Any:
    value, *given = terms
    match match:
        case ir.MatchValue():
            return value == given[0]
        case ir.MatchMask():
            return value & given[1] == given[0] & given[1]
        case ir.MatchRange() if signed:
            return z3.And(given[0] <= value, value <= given[1])
        case ir.MatchRange():
            return z3.And(z3.ULE(given[0], value), z3.ULE(value, given[1]))
    return True
