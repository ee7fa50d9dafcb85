"""Statements as closures over the frame.

A closure returns None to go on with the next statement, the Block to leave, or EXIT. `Code` also
says whether a closure can return anything but None, so that sequences need not ask.

Statements of parsers and deparsers on the packet, as closures; `c` compiles their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gradplane.switch.interp.expressions import Expressions, keep_only
from gradplane.switch.interp.interpreter_values import Env, Frame, Load, Run, maker
from gradplane.switch.interp.packet import (
    MOST_EMITTED,
    Abort,
    HeaderCodec,
    Reject,
    decoder,
    encoder,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import Bits, Header, Stack, bit_width
from gradplane.switch.ir.walk import nested
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.state import State
from gradplane.switch.source import NOWHERE, Span

EMITTED_TOO_MUCH = f"more than {MOST_EMITTED} bytes of headers were emitted"


def extract(c: Expressions, s: ir.Extract) -> Run:
    assert isinstance(s.target.type, Header), s.target.type
    codec, too_short = HeaderCodec(s.target.type), c.error("PacketTooShort")
    too_long = c.error("HeaderTooShort")
    header, siblings = c.load(s.target), c.siblings(s.target)
    size = None if s.size is None else _whole_bytes(c, s.size)
    advance = _advance_next(c, s.target)

    def run(env: Env) -> None:
        packet, target = env[0], header(env)
        varying = 0 if size is None else size(env)
        end = packet.position + codec.fixed + varying
        if end > packet.bits:
            raise Reject(too_short)
        if varying > codec.limit:
            raise Reject(too_long)
        target.fields = codec.decode(packet, varying)
        target.valid = True
        packet.position = end
        if siblings is not None:
            keep_only(siblings(env), target)
        if advance is not None:
            advance(env)

    return run


def _whole_bytes(c: Expressions, size: ir.Expr) -> Load:
    """Return the function for a number of bits, which must be whole bytes, as in BMv2."""
    load, invalid = c.load(size), c.error("ParserInvalidArgument")

    def checked(env: Env) -> int:
        bits: int = load(env)
        if bits % 8:
            raise Reject(invalid)
        return bits

    return checked


def _advance_next(c: Expressions, target: ir.LValue) -> Run | None:
    """Advance stack.next after an extract to it, or to a member of a union there."""
    base = target.base if isinstance(target, ir.FieldOf) else target
    if not isinstance(base, ir.NextOf):
        return None
    stack = c.load(base.base)

    def run(env: Env) -> None:
        stack(env).next += 1

    return run


def lookahead(c: Expressions, s: ir.Lookahead) -> Run:
    width, store = bit_width(s.target.type), c.store(s.target)
    decode, too_short = decoder(s.target.type), c.error("PacketTooShort")
    assert width is not None, s.target.type

    def run(env: Env) -> None:
        packet = env[0]
        if packet.position + width > packet.bits:
            raise Reject(too_short)
        store(env, decode(packet))

    return run


def advance(c: Expressions, s: ir.Advance) -> Run:
    bits, too_short = _whole_bytes(c, s.bits), c.error("PacketTooShort")

    def run(env: Env) -> None:
        packet = env[0]
        end = packet.position + bits(env)
        if end > packet.bits:
            raise Reject(too_short)
        packet.position = end

    return run


def packet_length(c: Expressions, s: ir.PacketLength) -> Run:
    store = c.store(s.target)
    return lambda env: store(env, env[0].bits >> 3)


def verify(c: Expressions, s: ir.Verify) -> Run:
    cond, error = c.load(s.cond), c.load(s.error)

    def run(env: Env) -> None:
        if not cond(env):
            raise Reject(error(env))

    return run


def emit(c: Expressions, s: ir.Emit) -> Run:
    value, encode = c.load(s.value), encoder(s.value.type)

    def run(env: Env) -> None:
        packet = env[0]
        encode(packet, value(env))
        if packet.emitted > MOST_EMITTED * 8:
            raise Abort(EMITTED_TOO_MUCH)

    return run


EXIT = object()

Observer = Callable[[Env, Entry | None], None]
TableObserver = Callable[[Env, tuple[int, ...], Entry | None, ActionData], None]


class Code(NamedTuple):
    run: Run
    jumps: bool = False


class Externs(Protocol):
    """The calls and table hooks that an architecture supplies to the statements' compiler."""

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        """Return the closure that executes an extern call."""

    def call_user_extern(self, call: ir.CallUserExtern, statements: Statements) -> Run:
        """Return the function that calls a user-defined extern."""

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        """Return what runs on each lookup, given the entry that hit: direct counters, ..."""

    def selection(self, table: ir.Table, statements: Statements) -> Load:
        """Return the hash over a table's selector keys."""


class OnlyCalls:
    """The rest of `Externs` where code calls an architecture's externs, and has no tables."""

    def call_user_extern(self, call: ir.CallUserExtern, statements: Statements) -> Run:
        raise AssertionError(call.name)

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        raise AssertionError(table)

    def selection(self, table: ir.Table, statements: Statements) -> Load:
        raise AssertionError(table)


LOOKUP = "last lookup"
"""The key in a packet's `direct` of its last lookup in a table whose actions write that table:
table, key and entry."""


class Statements:
    """Compiles statements, and each action once. Subclassed for tracing."""

    traced = False

    def __init__(
        self, frame: Frame, state: State, errors: dict[str, int], externs: Externs
    ) -> None:
        self.frame = frame
        self.state = state
        self.externs = externs
        self.expressions = Expressions(frame, errors)
        self.load = self.expressions.load
        self.store = self.expressions.store
        self.error = self.expressions.error
        self._actions: dict[ir.Action, tuple[int, int, Code]] = {}

    def beside(self, externs: Externs) -> Statements:
        """Return a compiler of statements that are no part of the program, for the same frame."""
        return Statements(self.frame, self.state, self.expressions.errors, externs)

    def compile(self, stmt: ir.Stmt) -> Code:
        """Compile one statement."""
        made = _STATEMENTS[type(stmt)](self, stmt)
        return made if isinstance(made, Code) else Code(made)

    def body(self, stmts: Sequence[ir.Stmt]) -> Code:
        """Compile a sequence of statements."""
        return _sequence([self.compile(stmt) for stmt in stmts])

    def state_body(self, state: ir.State) -> Code:
        """Compile the statements of a parser state."""
        return self.body(state.body)

    def selected(self, state: ir.State, choose: Load) -> Load:
        """Return what chooses the state that follows a parser state."""
        return choose

    def action(self, action: ir.Action) -> tuple[int, int, Code]:
        """Compile an action: the slots of its parameters (start, end) and its body."""
        if action not in self._actions:
            start, end = self.frame.run_of(action.params)
            self._actions[action] = start, end, self.body(action.body)
        return self._actions[action]

    # -- assignments ----------------------------------------------------------------------------

    def _assign(self, s: ir.Assign) -> Run:
        value, index = self.expressions.fresh(s.value), getattr(s.target, "index", 0)
        match s.target:
            case ir.Var():
                slot = self.frame.slot(s.target)

                def assign_var(env: Env) -> None:
                    env[slot] = value(env)

                return assign_var
            case ir.FieldOf(base=ir.FieldOf(base=ir.Var() as var, index=outer, type=Header())):
                slot = self.frame.slot(var)

                def assign_header_field(env: Env) -> None:
                    env[slot][outer].fields[index] = value(env)

                return assign_header_field
        store = self.store(s.target)
        return lambda env: store(env, value(env))

    def _set_valid(self, s: ir.SetValid) -> Run:
        header, siblings, valid = self.load(s.target), self.expressions.siblings(s.target), s.valid
        assert isinstance(s.target.type, Header), s.target.type
        bits_of = HeaderCodec(s.target.type).bits_of
        fresh = maker(s.target.type)

        def run(env: Env) -> None:
            target = header(env)
            if target.valid is not valid:
                if valid:
                    target.fields = fresh().fields
                bits = bits_of(target.fields)
                env[0].grown += bits if valid else -bits
                target.valid = valid
            if valid and siblings is not None:
                keep_only(siblings(env), target)

        return run

    def _push(self, s: ir.Push) -> Run:
        stack, make, size, count = self._stack(s)

        def run(env: Env) -> None:
            target = stack(env)
            target.items = [make() for _ in range(count)] + target.items[: size - count]
            target.next = min(target.next + count, size)

        return run

    def _pop(self, s: ir.Pop) -> Run:
        stack, make, _, count = self._stack(s)

        def run(env: Env) -> None:
            target = stack(env)
            target.items = target.items[count:] + [make() for _ in range(count)]
            target.next = max(target.next - count, 0)

        return run

    def _stack(self, s: ir.Push | ir.Pop) -> tuple[Load, Callable[[], Any], int, int]:
        assert isinstance(s.target.type, Stack), s.target.type
        size = s.target.type.size
        return self.load(s.target), maker(s.target.type.element), size, min(s.count, size)

    # -- control flow ---------------------------------------------------------------------------

    def condition(self, s: ir.If) -> Load:
        return self.load(s.cond)

    def subject(self, s: ir.SwitchStmt) -> Load:
        return self.load(s.subject)

    def _if(self, s: ir.If) -> Code:
        """Compile an if; else-if chains run flat, however long."""
        arms = [(self.condition(s), self.body(s.then))]
        other = s.other
        while len(other) == 1 and isinstance(other[0], ir.If):
            arms.append((self.condition(other[0]), self.body(other[0].then)))
            other = other[0].other
        last = self.body(other)
        jumps = last.jumps or any(body.jumps for _, body in arms)
        choices, otherwise = [(cond, body.run) for cond, body in arms], last.run
        if len(choices) == 1:
            cond, then = choices[0]
            return Code(lambda env: then(env) if cond(env) else otherwise(env), jumps)

        def run(env: Env) -> Any:
            for cond, then in choices:
                if cond(env):
                    return then(env)
            return otherwise(env)

        return Code(run, jumps)

    def _switch(self, s: ir.SwitchStmt) -> Code:
        subject, default = self.subject(s), self.body(s.default)
        bodies = [(values, self.body(body)) for values, body in s.cases]
        chosen = {value: code.run for values, code in bodies for value in values}
        get, otherwise = chosen.get, default.run
        jumps = default.jumps or any(code.jumps for _, code in bodies)
        return Code(lambda env: get(subject(env), otherwise)(env), jumps)

    def _block(self, s: ir.Block) -> Code:
        body = self.body(s.body)
        if not body.jumps:
            return body

        def run(env: Env) -> Any:
            signal = body.run(env)
            return None if signal is s else signal

        return Code(run, True)

    def _leave(self, s: ir.Leave) -> Code:
        block = s.block
        return Code(lambda env: block, True)

    def _loop(self, s: ir.Loop) -> Code:
        body = self.body(s.body).run
        place = loop_place(s)

        def run(env: Env) -> Any:
            for _ in range(ir.LOOP_LIMIT):
                signal = body(env)
                if signal is not None:
                    return signal
            raise Abort(f"{place}: a loop ran more than {ir.LOOP_LIMIT} times")

        return Code(run, True)

    def _exit(self, s: ir.Exit) -> Code:
        return Code(lambda env: EXIT, True)

    # -- tables and externs ---------------------------------------------------------------------

    def _apply(self, s: ir.ApplyTable) -> Code:
        table = self.state.tables[s.table.name]
        setup = self.body(s.table.key_setup)
        key = self.key_tuple([k.expr for k in s.table.keys if k.match_kind != "selector"])
        apply = self.applied(s, table, key)
        return _sequence([setup, apply]) if s.table.key_setup else apply

    def applied(self, s: ir.ApplyTable, table: MatchTable, key: Load) -> Code:
        """Compile a lookup: call the observer, set the results, run the action."""
        bodies = [self.action(a.action) for a in s.table.actions]
        actions = [(start, end, code.run) for start, end, code in bodies]
        lookup, observe = table.lookup, self.observer(s, table)
        choose = self.externs.selection(s.table, self) if table.profile else None

        def run(env: Env) -> Any:
            values = key(env)
            entry = lookup(values)
            data: Any = table.default if entry is None else entry.action
            if choose is not None:
                data = table.resolve(data, choose(env))
            if observe is not None:
                observe(env, values, entry, data)
            start, end, body = actions[data.index]
            if start != end:
                env[start:end] = data.args
            return body(env)

        return Code(run, any(code.jumps for _, _, code in bodies))

    def observer(self, s: ir.ApplyTable, table: MatchTable) -> TableObserver | None:
        """Return what follows a lookup: direct counters and the like, then the results."""
        after = self.externs.observer(table, self)
        kept = s.table.add_on_miss or s.table.timed_by_calls
        hit = None if s.hit is None else self.store(s.hit)
        action_run = None if s.action_run is None else self.store(s.action_run)
        if after is hit is action_run is None and not kept:
            return None

        def observe(env: Env, key: Any, entry: Entry | None, data: ActionData) -> None:
            if kept:
                env[0].direct[LOOKUP] = table, key, entry
            if after is not None:
                after(env, entry)
            if hit is not None:
                hit(env, entry is not None)
            if action_run is not None:
                action_run(env, data.index)

        return observe

    def key_tuple(self, exprs: Sequence[ir.Expr]) -> Load:
        """Return the function that gives values as unsigned numbers, in a tuple."""
        loads = [self.unsigned(e) for e in exprs]
        if len(loads) == 1:
            (only,) = loads
            return lambda env: (only(env),)
        if len(loads) == 2:
            first, second = loads
            return lambda env: (first(env), second(env))
        return lambda env: tuple([load(env) for load in loads])

    def unsigned(self, e: ir.Expr) -> Load:
        load = self.load(e)
        if not (isinstance(e.type, Bits) and e.type.signed):
            return load
        mask = (1 << e.type.width) - 1
        return lambda env: load(env) & mask

    def _call(self, s: ir.CallExtern) -> Run:
        return self.externs.call(s, self)

    def _call_user_extern(self, s: ir.CallUserExtern) -> Run:
        return self.externs.call_user_extern(s, self)


def loop_place(s: ir.Loop) -> Span:
    """Return the place of a loop in the source."""
    return next((n.span for n in nested([s]) if n.span != NOWHERE), NOWHERE)


def _sequence(codes: Sequence[Code]) -> Code:
    """Return one closure that runs several."""
    if len(codes) == 1:
        return codes[0]
    runs = tuple(code.run for code in codes)
    if any(code.jumps for code in codes):
        return Code(_checked_sequence(runs), True)
    if len(runs) == 2:
        first, second = runs

        def both(env: Env) -> None:
            first(env)
            second(env)

        return Code(both)

    def run(env: Env) -> None:
        for step in runs:
            step(env)

    return Code(run)


def _checked_sequence(runs: Sequence[Run]) -> Run:
    def run(env: Env) -> Any:
        for step in runs:
            signal = step(env)
            if signal is not None:
                return signal
        return None

    return run


def _on_packet(compile_it: Callable[[Expressions, Any], Run]) -> Callable[[Statements, Any], Run]:
    return lambda statements, s: compile_it(statements.expressions, s)


_STATEMENTS: dict[type[ir.Stmt], Callable[..., Code | Run]] = by_class(
    ir.Stmt,
    {
        ir.Assign: Statements._assign,
        ir.SetValid: Statements._set_valid,
        ir.Push: Statements._push,
        ir.Pop: Statements._pop,
        ir.If: Statements._if,
        ir.SwitchStmt: Statements._switch,
        ir.Block: Statements._block,
        ir.Leave: Statements._leave,
        ir.Loop: Statements._loop,
        ir.Exit: Statements._exit,
        ir.ApplyTable: Statements._apply,
        ir.CallExtern: Statements._call,
        ir.CallUserExtern: Statements._call_user_extern,
        ir.Extract: _on_packet(extract),
        ir.Lookahead: _on_packet(lookahead),
        ir.Advance: _on_packet(advance),
        ir.PacketLength: _on_packet(packet_length),
        ir.Verify: _on_packet(verify),
        ir.Emit: _on_packet(emit),
    },
)
