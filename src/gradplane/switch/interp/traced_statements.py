"""Statements that also record trace events: compiled only once a trace is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch.interp import trace_events
from gradplane.switch.interp.interpreter_values import Env, Load, Named, is_composite, named, plain
from gradplane.switch.interp.statements import Code, Statements, TableObserver
from gradplane.switch.interp.user_extern_values import to_python
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.printer import plain_text
from gradplane.switch.ir.types import Error, Fields, String, Type
from gradplane.switch.ir.walk import writes
from gradplane.switch.runtime.entries import ActionData, Entry, GroupRef, MemberRef
from gradplane.switch.runtime.match_table import MatchTable


class TracedStatements(Statements):
    """Appends to the packet's `events`, which must be a list."""

    traced = True

    def compile(self, stmt: ir.Stmt) -> Code:
        return _TRACED[type(stmt)](self, stmt, super().compile(stmt))

    def _plain(self, s: ir.Stmt, code: Code) -> Code:
        return code

    def state_body(self, state: ir.State) -> Code:
        event = trace_events.StateEntered(state.name, span=state.span)
        return _before(super().state_body(state), event)

    def observer(self, s: ir.ApplyTable, table: MatchTable) -> TableObserver:
        after = super().observer(s, table)
        names = [field.name for field in table.fields]
        kinds = [_named(key.expr) for key in s.table.keys if key.match_kind != "selector"]
        errors = list(self.expressions.errors)
        state, name = self.state, table.table.name
        enums = state.program.enums
        given = [
            [
                Error() if p.type_name == ir.ERROR_TYPE else enums.get(p.type_name)
                for p in a.action.params
            ]
            for a in table.table.actions
        ]
        selectors = [
            (plain_text(key.expr), self.load(key.expr))
            for key in s.table.keys
            if key.match_kind == "selector"
        ]

        def translated(param: ir.Var, value: Any) -> Any:
            """Return a value with the name that controllers gave it, where one did."""
            translation = state.translations.get(param.type_name)
            known = None if translation is None else translation.known(value)
            return value if known is None else Named.of(value, f'"{known}"')

        def observe(env: Env, key: tuple[int, ...], entry: Entry | None, data: ActionData) -> None:
            action = table.table.actions[data.index].action
            params = {
                p.name: translated(p, named(kind, value, errors))
                for p, kind, value in zip(action.params, given[data.index], data.args, strict=True)
            }
            keys = [named(kind, value, errors) for kind, value in zip(kinds, key, strict=True)]
            event = trace_events.Applied(
                name,
                dict(zip(names, keys, strict=True)),
                entry is not None,
                None if entry is None else table.describe(entry, trace_events.names_of(keys)),
                action.name,
                params,
                None if entry is None else entry.handle,
                _chosen(table, entry, data, {name: load(env) for name, load in selectors}),
                span=s.span,
            )
            env[0].events.append(event)
            if state.probe is not None:
                state.probe.applied(name, entry)
            if after is not None:
                after(env, key, entry, data)

        return observe

    def condition(self, s: ir.If) -> Load:
        load = super().condition(s)
        if any(isinstance(part, ir.Assign) and part.target is s.cond for part in s.then + s.other):
            return load  # the compiler's own, of an && or || whose right side calls something
        return self._decided(s, "if", s.cond, load)

    def subject(self, s: ir.SwitchStmt) -> Load:
        load = super().subject(s)
        of_table = isinstance(s.subject, ir.Var) and s.subject.name == "action_run"
        return load if of_table else self._decided(s, "switch", s.subject, load)

    def _decided(self, s: ir.Stmt, statement: str, on: ir.Expr, load: Load) -> Load:
        text = plain_text(on)
        asked = text[1:-1] if isinstance(on, ir.Binary | ir.Mux) else text

        def decide(env: Env) -> Any:
            value = load(env)
            event = trace_events.Decided(statement, asked, plain(on.type, value), span=s.span)
            env[0].events.append(event)
            return value

        return decide

    def _assigned(self, s: ir.Assign | ir.Lookahead, code: Code) -> Code:
        if isinstance(s, ir.Assign) and isinstance(s.target, ir.Var):
            return code
        text, read = plain_text(s.target), self._reader(s.target)
        if isinstance(s, ir.Lookahead):  # into a variable of the compiler's
            text, load, kind = "lookahead", self.load(s.target), s.target.type
            read = lambda env: plain(kind, load(env))  # noqa: E731

        def run(env: Env) -> None:
            code.run(env)
            env[0].events.append(trace_events.Assigned(text, read(env), span=s.span))

        return Code(run)

    def _exited(self, s: ir.Exit, code: Code) -> Code:
        return _before(code, trace_events.Exited(span=s.span))

    def _validity(self, s: ir.SetValid, code: Code) -> Code:
        text = plain_text(s.target) + ".isValid()"
        event = trace_events.Assigned(text, s.valid, span=s.span)

        def run(env: Env) -> None:
            code.run(env)
            env[0].events.append(event)

        return Code(run)

    def _extracted(self, s: ir.Extract, code: Code) -> Code:
        text, header, kind = plain_text(s.target), self.load(s.target), s.target.type

        def run(env: Env) -> None:
            packet, target = env[0], header(env)
            start = packet.position
            code.run(env)
            fields = plain(kind, target)
            size = packet.position - start
            packet.events.append(trace_events.Extracted(text, start, size, fields, span=s.span))

        return Code(run)

    def _called(self, s: ir.CallExtern, code: Code) -> Code:
        name = f"{s.instance.name}.{s.name}" if s.instance else s.name
        pairs = list(zip(s.directions, s.args, strict=True))
        before = [self._reader(arg) for direction, arg in pairs if direction != "out"]
        after = [self._reader(place) for place in writes(s)]

        def run(env: Env) -> None:
            args = [read(env) for read in before]
            code.run(env)
            results = [read(env) for read in after]
            env[0].events.append(trace_events.Called(name, args, results, span=s.span))

        return Code(run)

    def _called_user_extern(self, s: ir.CallUserExtern, code: Code) -> Code:
        """Record a call with the values that the implementation has, also if it fails."""
        name = f"{s.instance.name}.{s.name}" if s.instance else s.name
        before = [self._seen(a.value, a.type) for a in s.args if a.direction != "out"]
        after = [self._seen(var, t) for var, t in s.places]

        def run(env: Env) -> None:
            args, results = [read(env) for read in before], []
            try:
                code.run(env)
                results = [read(env) for read in after]
            finally:
                env[0].events.append(trace_events.Called(name, args, results, span=s.span))

        return Code(run)

    def _seen(self, e: ir.Expr | ir.ExternInstance | None, t: Type) -> Load:
        if not isinstance(e, ir.Expr):
            text = "_" if e is None else e.name
            return lambda env: text
        convert = to_python(t, list(self.expressions.errors))
        if isinstance(e, ir.Const):
            value = convert(e.value)
            return lambda env: value
        load = self.load(e)
        return lambda env: convert(load(env))

    def _reader(self, e: ir.Expr) -> Load:
        """Return the function that gives a plain value; for a struct variable, its name."""
        if isinstance(e, ir.Var) and is_composite(e.type):
            name = e.name
            return lambda env: name
        load, kind = self.load(e), e.type
        if isinstance(kind, String):
            return load
        names = _named(e)
        if names is not None:
            errors = list(self.expressions.errors)
            return lambda env: named(names, load(env), errors)
        return lambda env: plain(kind, load(env))


def _named(e: ir.Expr) -> Type | None:
    """Return the enum or error that the values of a field stand for, if they do."""
    if isinstance(e, ir.FieldOf) and isinstance(e.base.type, Fields):
        return e.base.type.fields[e.index].named
    return None


def _chosen(
    table: MatchTable, entry: Entry | None, data: ActionData, keys: dict[str, Any]
) -> str | None:
    """Return which member of its profile a table runs, as text; None if it runs none."""
    profile, target = table.profile, table.default if entry is None else entry.action
    if isinstance(target, MemberRef):
        return f"member {target.id}"
    if profile is None or not isinstance(target, GroupRef):
        return None
    dealt = dict.fromkeys(profile.dealt(target.id))
    same = [member for member in dealt if profile.members[member] is data]
    same = same or [member for member in dealt if table.own(profile.members[member]) == data]
    members = " or ".join(map(str, same))
    return f"group {target.id}" + (
        f", member {members} by {trace_events.fields_text(keys)}" if same else ", which is empty"
    )


def _before(code: Code, event: trace_events.TraceEvent) -> Code:
    def run(env: Env) -> Any:
        env[0].events.append(event)
        return code.run(env)

    return Code(run, code.jumps)


_TRACED: dict[type[ir.Stmt], Callable[..., Code]] = by_class(
    ir.Stmt,
    {
        (ir.Assign, ir.Lookahead): TracedStatements._assigned,
        ir.SetValid: TracedStatements._validity,
        ir.Extract: TracedStatements._extracted,
        ir.Exit: TracedStatements._exited,
        ir.CallExtern: TracedStatements._called,
        ir.CallUserExtern: TracedStatements._called_user_extern,
        (
            ir.Push, ir.Pop, ir.If, ir.SwitchStmt, ir.Block, ir.Leave, ir.Loop, ir.ApplyTable,
            ir.Advance, ir.PacketLength, ir.Verify, ir.Emit,
        ): TracedStatements._plain,
    },
)  # fmt: skip
