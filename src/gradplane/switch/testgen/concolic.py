"""The interpreter's statements and expressions, which also follow terms and record the path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.switch.interp.interpreter_values import Env, Frame, Load, Run
from gradplane.switch.interp.packet import HeaderCodec, Reject
from gradplane.switch.interp.statements import Code, Externs, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.printer import plain_text
from gradplane.switch.ir.types import Bits, Header, Type, bit_width
from gradplane.switch.ir.walk import reads, writes
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.state import State
from gradplane.switch.testgen.concolic_expressions import ConcolicExpressions
from gradplane.switch.testgen.matches import (
    case_goal,
    fulfilled,
    match_term,
    select_goal,
    unwrapped,
)
from gradplane.switch.testgen.merging import Effects, is_simple
from gradplane.switch.testgen.recorder import Recorder
from gradplane.switch.testgen.runs import INDEX, Decision, Goal
from gradplane.switch.testgen.symbols import (
    Symbol,
    Term,
    as_bits,
    is_symbolic,
    pieces,
    resized,
    symbolic,
    symbols,
    term,
)

import z3  # isort: skip


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
            if isinstance(stmt, ir.Assign) and is_simple(stmt):
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
        arms = [(s, self.load(s.cond), self.body(s.then))]
        other = s.other
        while len(other) == 1 and isinstance(other[0], ir.If):
            one = other[0]
            arms.append((one, self.load(one.cond), self.body(one.then)))
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

    def _branched(self, s: ir.If | ir.Verify, value: Any, merged: bool = False) -> None:
        at = s.span
        self.recorder.cover(("line", at, ""))
        goals: list[Goal] = [("branch", at, "true"), ("branch", at, "false")]
        condition = value.term if isinstance(value, Symbol) else None
        if self.recorder.fixed and condition is not None and not self.on_path:
            text = f"if {plain_text(s.cond)}: {goals[not value][2]}"
            self.recorder.run.decisions.append(Decision(at, text, int(not value), condition))
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
            single = not isinstance(value, Symbol) or self.recorder.fixed
            self._branched(s, value, merged=not single)
            taken = int(not value)
            if single:
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
                    z3.Or(*(value.term == unwrapped(kind, v) for v in values))
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
            holds = fulfilled(match, value, numbers, kind)
            if not is_symbolic(value, *numbers):
                return holds, holds
            terms = [as_bits(kind, v) for v in (value, *numbers)]
            return holds, match_term(match, terms, signed)

        return test

    def _verify(self, s: ir.Verify) -> Run:
        code, cond = super().compile(s), self.load(s.cond)

        def run(env: Env) -> None:
            self._branched(s, cond(env))
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
        simple = [i for i, a in enumerate(actions) if all(is_simple(stmt) for stmt in a.body)]
        slots = [self.action(actions[i])[:2] for i in simple]  # first: their variables are in a row
        effects = Effects(self, [actions[i].body for i in simple])
        results = [(p, self.load(p), self.store(p)) for p in (s.hit, s.action_run) if p is not None]
        others: list[Any] = []

        def looked_up(env: Env) -> Any:
            values = key(env)
            others.clear()
            merging = self.recorder.look_up(table, values, kinds, simple, s.hit is not None)
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
        if s.name in _SUMMED and _algorithm(s, _SUMMED[s.name][0]) == "csum16":
            return self._summed(s)
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

    def _summed(self, s: ir.CallExtern) -> Run:
        """Give the result of an internet checksum its term."""
        code, cond = super()._call(s), s.args[0]
        fields, (target,) = s.args[_SUMMED[s.name][1]], writes(s)
        kind: Any = target.type
        data, load, store = self.load(fields), self.load(target), self.store(target)
        calls = self.load(cond) if s.name == "update_checksum" else None
        bounds = [(s.args[i].type, self.load(s.args[i])) for i in (2, 4)] if calls is None else []

        def run(env: Env) -> None:
            given, before = data(env), load(env)
            called = True if calls is None else calls(env)
            any_symbol = any(True for _ in symbols(fields.type, given))
            summed = self.recorder.summed(fields.type, given) if any_symbol else None
            if summed is None:
                for t, value in symbols(fields.type, given):
                    self.recorder.fix(t, value)
            elif bounds:
                summed = _scaled(summed, [as_bits(t, bound(env)) for t, bound in bounds])
            code(env)
            if summed is not None:
                made = resized(summed, kind.width, False)
                if isinstance(called, Symbol):
                    made = z3.If(called.term, made, as_bits(kind, before))
                if called or isinstance(called, Symbol):
                    store(env, Symbol(load(env), made))

        return run

    def _plain_call(self, s: ir.CallExtern) -> Run:
        return super()._call(s)

    def _checked(self, s: ir.CallExtern) -> Run:
        """Make a branch of the comparison of a checksum, with the rest of the packet as it is; what
        is noted of the result has a term."""
        data, expected = self.load(s.args[1]), s.args[2]
        goals: list[Goal] = [("checksum", s.span, "right"), ("checksum", s.span, "wrong")]
        compared: list[tuple[bool, Term]] = []

        known = s.name == "verify_checksum" and _algorithm(s, 3) == "csum16"

        def compare(env: Env, value: Symbol, computed: int) -> None:
            given, right = data(env), as_bits(expected.type, value)
            summed = self.recorder.summed(s.args[1].type, given) if known else None
            if summed is None:
                for t, one in symbols(s.args[1].type, given):
                    self.recorder.fix(t, one)
                equal = right == computed
            else:
                equal = right == resized(summed, right.size(), False)
            same = int(value) == computed
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
        assert isinstance(kind, Bits), kind
        register = self.state.registers[name]
        size = register.size
        settable = s.instance.type != ir.HIDDEN_REGISTER and not register.is_bool
        places = [(self.load(p), self.store(p)) for p in writes(s)]

        def run(env: Env) -> Any:
            at, *written = [load(env) for load in given]
            if size >> kind.width == 0:
                cells.indexed(as_bits(kind, at), int(at) < size, size, s.span)
            cells.fix(kind, at, soft=INDEX)
            cell = (name, int(at))
            if settable and int(at) < size:
                cells.content(register, int(at), bool(written))
            result = code(env)
            if written and int(at) < size:
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

    def _behind(self, s: ir.CallExtern) -> Run:
        code, target = super()._call(s), s.result
        header, data, kind = self.load(s.args[0]), self.load(s.args[1]), s.args[0].type
        assert target is not None and isinstance(kind, Header)
        load, types = self.load(target), [f.type for f in kind.fields]

        def run(env: Env) -> None:
            values, rest = header(env).fields, data(env)[0]
            front = [p for t, v in zip(types, values, strict=True) for p in pieces(t, v)]
            code(env)
            self.recorder.put_in_front(front, rest, load(env)[0])

        return run

    def _rejected(self, s: ir.CallExtern) -> Run:
        code, recorder = super()._call(s), self.recorder

        def run(env: Env) -> None:
            recorder.run.rejected.add(len(recorder.run.path) - 1)
            code(env)

        return run

    def _asks(self, s: ir.CallExtern) -> Run:
        code, number = super()._call(s), self.load(s.args[0])
        ask = self.recorder.session if s.name.endswith("session") else self.recorder.group

        def run(env: Env) -> None:
            ask(number(env), s.span)
            code(env)

        return run


# The arguments that are the algorithm, and what a checksum is computed of.
_SUMMED = {"hash": (1, 3), "update_checksum": (3, 1)}


def _algorithm(s: ir.CallExtern, index: int) -> object:
    found = s.args[index]
    return found.value if isinstance(found, ir.Const) else None


def _scaled(found: Term, bounds: Sequence[Term]) -> Term:
    """Return base + found % limit, or the base where the limit is 0."""
    width = max(64, *(bound.size() + 1 for bound in bounds))
    base, limit = (resized(bound, width, False) for bound in bounds)
    rest = z3.URem(resized(found, width, False), limit)
    return z3.simplify(base + z3.If(limit == 0, z3.BitVecVal(0, width), rest))


_PATH: dict[str, Callable[[ConcolicStatements, ir.CallExtern], Run]] = {
    "size": ConcolicStatements._size,
    "deparse": ConcolicStatements._deparse,
    "behind": ConcolicStatements._behind,
    "rejected": ConcolicStatements._rejected,
    **dict.fromkeys(("members", "has_members", "session", "has_session"), ConcolicStatements._asks),
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
