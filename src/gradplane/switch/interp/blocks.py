"""Parsers and controls as runnable blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.switch.interp.interpreter_values import Env, Load
from gradplane.switch.interp.packet import Reject
from gradplane.switch.interp.statements import Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits

ACCEPT, REJECT = -1, -2
STATE_LIMIT = 100_000  # states visited in one run; then error ParserTimeout

Test = Callable[[Env, Any], bool]


class Block:
    """A compiled parser or control: `slots` of its parameters in order, and `run`.

    run(frame) expects the packet and the arguments in their slots. A parser's run returns an error
    code (0: none), a control's nothing.
    """

    def __init__(self, name: str, slots: list[int], run: Callable[[Env], Any]) -> None:
        self.name = name
        self.slots = slots
        self.run = run


def control_block(control: ir.Control, statements: Statements) -> Block:
    """Compile a control."""
    slots = [statements.frame.slot(p.var) for p in control.params]
    zero, body = statements.frame.zeroing(control.locals), statements.body(control.body).run

    def run(env: Env) -> None:
        zero(env)
        body(env)

    return Block(control.name, slots, run)


def parser_block(parser: ir.Parser, statements: Statements) -> Block:
    """Compile a parser."""
    slots = [statements.frame.slot(p.var) for p in parser.params]
    zero, setup = statements.frame.zeroing(parser.locals), statements.body(parser.setup).run
    numbers = {name: i for i, name in enumerate(parser.states)}
    numbers |= {"accept": ACCEPT, "reject": REJECT}
    states = [_state(state, numbers, statements) for state in parser.states.values()]
    start, timeout = numbers["start"], statements.error("ParserTimeout")

    def run(env: Env) -> int:
        try:
            zero(env)
            setup(env)
            state = start
            for _ in range(STATE_LIMIT):
                state = states[state](env)
                if state < 0:
                    return 0
        except Reject as reject:
            return reject.code
        return timeout

    return Block(parser.name, slots, run)


def _state(state: ir.State, numbers: dict[str, int], statements: Statements) -> Load:
    body = statements.state_body(state).run
    choose = statements.selected(state, _select(state, numbers, statements))

    def run(env: Env) -> Any:
        body(env)
        return choose(env)

    if not state.on_reject:
        return run
    copy_out = statements.body(state.on_reject).run

    def run_and_copy_out(env: Env) -> Any:
        try:
            following = run(env)
        except Reject:
            copy_out(env)
            raise
        if following == REJECT:
            copy_out(env)
        return following

    return run_and_copy_out


def _select(state: ir.State, numbers: dict[str, int], statements: Statements) -> Load:
    """Return the function that gives the next state's number."""
    if not state.select:
        target = numbers[state.cases[0].next]
        return lambda env: target
    key, no_match = statements.key_tuple(state.select), statements.error("NoMatch")
    constant = _constant_cases(state, numbers)
    if constant is not None:
        chosen, default = constant

        def by_value(env: Env) -> int:
            target = chosen.get(key(env), default)
            if target is None:
                raise Reject(no_match)
            return target

        return by_value
    tests = [(_case(case, statements), numbers[case.next]) for case in state.cases]

    def in_order(env: Env) -> int:
        values = key(env)
        for test, target in tests:
            if test(env, values):
                return target
        raise Reject(no_match)

    return in_order


def _constant_cases(
    state: ir.State, numbers: dict[str, int]
) -> tuple[dict[tuple[int, ...], int], int | None] | None:
    """Return next states by key and the default if all cases are constants, perhaps `_` last."""
    chosen: dict[tuple[int, ...], int] = {}
    for case in state.cases:
        if all(isinstance(m, ir.MatchAny) for m in case.matches):
            return chosen, numbers[case.next]
        values = tuple(_constant(m) for m in case.matches)
        if None in values:
            return None
        chosen.setdefault(tuple(int(v or 0) for v in values), numbers[case.next])
    return chosen, None


def _constant(match: ir.Match) -> int | None:
    if isinstance(match, ir.MatchValue) and isinstance(match.value, ir.Const):
        value = match.value.value
        if not isinstance(value, str) and value >= 0:
            return int(value)
    return None


def _case(case: ir.SelectCase, statements: Statements) -> Test:
    """Return the function that says whether a case's keyset holds the key."""
    if len(case.matches) == 1 and isinstance(case.matches[0], ir.MatchAny):
        return lambda env, key: True
    if len(case.matches) == 1 and isinstance(case.matches[0], ir.MatchSet):
        value_set = statements.state.value_sets[case.matches[0].set.name]
        current = statements.state.current_pipe
        return lambda env, key: value_set.contains(key, current.parser)
    tests = [_component(match, statements) for match in case.matches]
    return lambda env, key: all(test(env, k) for test, k in zip(tests, key, strict=True))


def _component(match: ir.Match, statements: Statements) -> Test:
    match match:
        case ir.MatchValue(value=value):
            (expected,) = _unsigned(statements, [value])
            return lambda env, key: key == expected(env)
        case ir.MatchMask(value=value, mask=mask):
            expected, bits = _unsigned(statements, [value, mask])
            return lambda env, key: key & bits(env) == expected(env) & bits(env)
        case ir.MatchRange(low=low, high=high):
            return _in_range(low, high, statements)
        case ir.MatchSet(set=value_set):
            found = statements.state.value_sets[value_set.name]
            current = statements.state.current_pipe
            return lambda env, key: found.contains((key,), current.parser)
    return lambda env, key: True


def _in_range(low: ir.Expr, high: ir.Expr, statements: Statements) -> Test:
    """Return the function that says whether a key is in a range. Keys are unsigned; int<W> is
    compared with its sign bit flipped."""
    least, greatest = _unsigned(statements, [low, high])
    flip = 1 << low.type.width >> 1 if isinstance(low.type, Bits) and low.type.signed else 0
    return lambda env, key: least(env) ^ flip <= key ^ flip <= greatest(env) ^ flip


def _unsigned(statements: Statements, exprs: Sequence[ir.Expr]) -> list[Load]:
    return [statements.unsigned(e) for e in exprs]
