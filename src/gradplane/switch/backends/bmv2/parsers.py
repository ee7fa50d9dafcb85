"""A parser as BMv2's: states with operations and a transition on a key of fields.

BMv2's states have no conditions inside. A state with some becomes several: each jump between its
operations is a transition, on the condition as the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from gradplane.switch.backends.bmv2.actions import ExternCalls, PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.expressions import op
from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    StackAt,
    Storage,
    StructAt,
    scalar_width,
)
from gradplane.switch.bmv2_names import JUMPS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import Bits, Bool, Stack, Union, bit_width
from gradplane.switch.ir.walk import overlap
from gradplane.switch.source import refuse

MAX_CASES = 4096  # of one select, after ranges became masks
NO_MATCH = "$no_match"
OPERATION = "$operation"  # the name of a parser's operation among primitives


class ParserStates:
    """Translates one parser. errors: their names, by code."""

    def __init__(
        self, parser: ir.Parser, storage: Storage, externs: ExternCalls, errors: Sequence[str]
    ) -> None:
        self._parser, self._errors = parser, errors
        self.storage, self.externs = storage, externs

    def json(self) -> Json:
        """Return the parser. Raises CompileError for what BMv2 does not have."""
        states = [
            found for state in self._parser.states.values() for found in self._states_of(state)
        ]
        first = "start"
        if self._parser.setup:
            first = "$setup"
            states += self._split(first, self._parser.setup, [_transition("default", "start")])
        if any(_may_fail(state) for state in self._parser.states.values()):
            states.append(self._no_match())
        for at, found in enumerate(states):
            found["id"] = at
        return {"name": "parser", "id": 0, "init_state": first, "parse_states": states}

    def _no_match(self) -> Json:
        """Return the state of selects without a match, which are no error in BMv2 by themselves."""
        error = {"type": "hexstr", "value": hex(self._errors.index("NoMatch"))}
        operations = [_op("verify", {"type": "bool", "value": False}, error)]
        return _state(NO_MATCH, operations, [_transition("default", "reject")])

    def _states_of(self, state: ir.State) -> list[Json]:
        if not state.select:
            transitions = [_transition("default", state.cases[0].next)]
        else:
            transitions = list(self._transitions(state))
            if _may_fail(state):
                transitions.append(_transition("default", NO_MATCH))
        found = self._split(state.name, state.body, transitions, state.select)
        found[0] |= source_info(state.span)
        return found

    def _split(
        self,
        name: str,
        stmts: Sequence[ir.Stmt],
        transitions: list[Json],
        select: Sequence[ir.Expr] = (),
    ) -> list[Json]:
        """Return the states of a list of statements: one, if there are no jumps in it."""
        code = _Code(self)
        code.body(stmts)
        primitives = code.finished()
        end = len(primitives)
        starts = {0}
        for at, entry in enumerate(primitives):
            if entry["op"] in JUMPS:
                starts |= {at + 1, _target(entry)}
        ordered = sorted(starts)
        names = {at: name if at == 0 else f"{name}${at}" for at in ordered}
        states = [
            self._part(names, start, following, primitives)
            for start, following in pairwise(ordered)
        ]
        last = self._operations(primitives[ordered[-1] : end])
        key = [self._key(e, last, stmts) for e in select]
        return [*states, _state(names[ordered[-1]], last, transitions, key)]

    def _part(
        self, names: dict[int, str], start: int, following: int, primitives: list[Json]
    ) -> Json:
        """Return the state of the operations from one start of a jump to the next."""
        *before, last = primitives[start:following]
        after = [_transition("default", names[following])]
        if last["op"] not in JUMPS:
            return _state(names[start], self._operations([*before, last]), after)
        target, operations = names[_target(last)], self._operations(before)
        if last["op"] == "_jump":
            return _state(names[start], operations, [_transition("default", target)])
        taken = self.storage.temporary(Bits(1), "condition")
        place = {"type": "field", "value": taken.reference}
        operations.append(_op("set", place, last["parameters"][0]))
        return _state(
            names[start], operations, [_transition("hexstr", target, "0x00"), *after], [place]
        )

    def _operations(self, primitives: Sequence[Json]) -> list[Json]:
        """Return primitives as a parser's operations; some are operations already."""
        return [
            entry["parameters"][0] if entry["op"] == OPERATION else _op("primitive", entry)
            for entry in primitives
        ]

    # -- transitions ----------------------------------------------------------------------------

    def _key(self, e: ir.Expr, operations: list[Json], stmts: Sequence[ir.Stmt]) -> Json:
        """Return a part of a transition's key, which is computed first if it is no field."""
        code = PrimitiveWriter(self.storage, self.externs)
        code.code.span = stmts[-1].span if stmts else self._parser.span
        stack = _last_of(e)
        if stack is not None and not any(_extends(s, stack) for s in stmts):
            operations += self.not_empty(stack)
        place = code.code.place(e)
        if isinstance(place, FieldAt):
            return {"type": "field", "value": place.reference}
        if isinstance(e, ir.FieldOf) and isinstance(e.base, ir.FieldOf):
            union = e.base.base
            if isinstance(union, ir.LastOf) and isinstance(union.type, Union):
                names = [code.code.stack(union.base)["value"], e.base.name, e.name]
                return {"type": "union_stack_field", "value": names}
        if isinstance(e, ir.FieldOf) and isinstance(e.base, ir.LastOf):
            found = code.code.field(e)
            if found["type"] == "stack_field":
                return found
        kept = self.storage.temporary(e.type, "select")
        key = {"type": "field", "value": kept.reference}
        operations.append(_op("set", key, code.code.parameter(e)))
        return key

    def not_empty(self, stack: ir.LValue) -> list[Json]:
        """Return the check that a stack has a last element: without one, BMv2 crashes. It has none
        for stacks of unions."""
        if isinstance(stack.type, Stack) and isinstance(stack.type.element, Union):
            return []
        code = PrimitiveWriter(self.storage, self.externs).code
        count = op("size_stack", None, code.stack(stack))
        error = {"type": "hexstr", "value": hex(self.error("StackOutOfBounds"))}
        return [_op("verify", op(">", count, {"type": "hexstr", "value": "0x0"}), error)]

    def error(self, name: str) -> int:
        """Return the code of an error."""
        return self._errors.index(name)

    def _transitions(self, state: ir.State) -> Iterator[Json]:
        widths = [scalar_width(e.type) for e in state.select]
        for case in state.cases:
            first = case.matches[0]
            if len(case.matches) > 1 and any(isinstance(m, ir.MatchSet) for m in case.matches):
                raise refuse(case.span, "BMv2 needs a value set for the select's whole key")
            if isinstance(first, ir.MatchSet):
                yield _transition("parse_vset", case.next, first.set.name)
            elif all(isinstance(match, ir.MatchAny) for match in case.matches):
                yield _transition("default", case.next)
                return  # BMv2 takes the last default, and any other case before it
            else:
                choices = [_masks(m, w, case) for m, w in zip(case.matches, widths, strict=True)]
                every = list(product(*choices))
                if len(every) > MAX_CASES:
                    raise refuse(case.span, f"the case's ranges need {len(every)} masks in BMv2")
                for pairs in every:
                    value = _bytes([value for value, _ in pairs], widths)
                    mask = _bytes([mask for _, mask in pairs], widths)
                    exact = _bytes([(1 << w) - 1 for w in widths], widths)
                    yield _transition("hexstr", case.next, value, None if mask == exact else mask)


class _Code(PrimitiveWriter):
    """PrimitiveWriter and, as primitives of a name of their own, a parser's operations."""

    def __init__(self, states: ParserStates) -> None:
        super().__init__(states.storage, states.externs)
        self._states = states

    def statement(self, s: ir.Stmt) -> None:
        """Append a statement. Raises CompileError for what BMv2 does not have."""
        self.code.span = s.span
        _STATEMENTS[type(s)](self, s)

    def _as_in_actions(self, s: ir.Stmt) -> None:
        super().statement(s)

    def _extracted(self, s: ir.Extract) -> None:
        if isinstance(s.target, ir.ElementOf) and self.code.place(s.target) is None:
            self.statement(_by_index(s, s.target))
        else:
            self.operation(s, self._extract(s))

    def _looked_ahead(self, s: ir.Lookahead) -> None:
        sets = list(self._lookahead(s))
        for entry in sets:
            self.operation(s, entry)
        if not sets:
            self._as_in_actions(s)

    def _verify(self, s: ir.Verify) -> None:
        error = self.code.value(s.error)
        self.operation(s, _op("verify", self.code.value(s.cond), error))

    def _assigned(self, s: ir.Assign) -> None:
        stack = _last_of(s.value)
        if stack is not None:
            for check in self._states.not_empty(stack):
                self.operation(s, check)
        place = self.code.place(s.target)
        scalar = isinstance(place, FieldAt) and isinstance(place.type, Bits | Bool)
        if scalar and self.code.guard(s.value) is None:
            value = self.code.parameter(s.value)
            self.operation(s, _op("set", self.code.field(s.target), value))
        else:
            self._as_in_actions(s)

    def operation(self, s: ir.Stmt, entry: Json) -> None:
        """Append a parser's operation."""
        self.add(OPERATION, entry | source_info(s.span))

    def _extract(self, s: ir.Extract) -> Json:
        target = s.target
        header: Json
        place = self.code.place(target)
        if isinstance(target, ir.NextOf):
            stack = self.code.place(target.base)
            assert isinstance(stack, StackAt), target
            header = {"type": "stack", "value": stack.name}
        elif isinstance(place, HeaderAt):
            header = {"type": "regular", "value": place.name}
        elif isinstance(target, ir.FieldOf) and isinstance(target.base, ir.NextOf):
            stack = self.code.place(target.base.base)
            assert isinstance(stack, StackAt) and isinstance(target.base.type, Union), target
            header = {"type": "union_stack", "value": [stack.name, target.name]}
        else:
            raise refuse(s.span, "BMv2 cannot extract a header by a run-time index")
        if s.size is None:
            return _op("extract", header)
        size = self.code.parameter(s.size)
        if size["type"] != "expression":
            size = {"type": "expression", "value": size}
        return _op("extract_VL", header, size)

    def _lookahead(self, s: ir.Lookahead) -> Iterator[Json]:
        """Yield the sets of fields. BMv2 counts the length of a part without the place where the
        part begins: what has several is looked at as a whole first, so that nothing is set if the
        packet is too short."""
        place, sets, offset = self.code.place(s.target), list[Json](), 0
        for one in _fields(place):
            if not isinstance(one.type, Bits | Bool):
                raise refuse(s.span, f"BMv2 cannot look ahead at a {one.type}")
            width = scalar_width(one.type)
            sets.append(_ahead(one, offset, width))
            offset += width
        if len(sets) > 1:
            whole = self._states.storage.temporary(Bits(offset), "lookahead")
            yield _ahead(whole, 0, offset)
        yield from sets
        for header in _instances(place):
            parameter = {"type": "header", "value": header.name}
            yield _op("primitive", {"op": "add_header_fast", "parameters": [parameter]})


_STATEMENTS: dict[type[ir.Stmt], Callable[..., None]] = by_class(
    ir.Stmt,
    {
        ir.Extract: _Code._extracted,
        ir.Lookahead: _Code._looked_ahead,
        ir.Advance: lambda code, s: code.operation(s, _op("advance", code.code.parameter(s.bits))),
        ir.Verify: _Code._verify,
        ir.Assign: _Code._assigned,
        (
            ir.SetValid, ir.Push, ir.Pop, ir.If, ir.SwitchStmt, ir.Block, ir.Leave, ir.Loop,
            ir.Exit, ir.ApplyTable, ir.CallExtern, ir.CallUserExtern, ir.PacketLength, ir.Emit,
        ): _Code._as_in_actions,
    },
)  # fmt: skip


def _ahead(field: FieldAt, offset: int, width: int) -> Json:
    """Return the operation that sets a field from a part of what is ahead."""
    value = {"type": "lookahead", "value": [offset, width]}
    return _op("set", {"type": "field", "value": field.reference}, value)


def _by_index(s: ir.Extract, target: ir.ElementOf) -> ir.Stmt:
    """Return an extract by a run-time index as a switch on the index.

    Outside the stack the bytes are skipped: there is no header to fill.
    """
    stack, width = target.base.type, bit_width(target.type)
    assert isinstance(stack, Stack), target
    if width is None:
        raise refuse(s.span, "BMv2 cannot extract a varbit field by a run-time index")
    cases: list[tuple[list[int], list[ir.Stmt]]] = []
    for at in range(stack.size):
        element = ir.ElementOf(target.type, target.base, ir.Const(target.index.type, at))
        cases.append(([at], [ir.Extract(element, span=s.span)]))
    outside = ir.Advance(ir.Const(Bits(32), width), span=s.span)
    return ir.SwitchStmt(target.index, cases, [outside], span=s.span)


def _last_of(e: ir.Expr) -> ir.LValue | None:
    """Return the stack of which an expression reads the last element."""
    while isinstance(e, ir.FieldOf | ir.SliceOf | ir.Cast):
        e = e.operand if isinstance(e, ir.Cast) else e.base
    return e.base if isinstance(e, ir.LastOf) else None


def _extends(s: ir.Stmt, stack: ir.LValue) -> bool:
    """Return whether a statement extracts to the next element of a stack."""
    if not isinstance(s, ir.Extract):
        return False
    target: ir.Expr = s.target
    while isinstance(target, ir.FieldOf):
        target = target.base
    return isinstance(target, ir.NextOf) and overlap(target.base, stack)


def _state(
    name: str, operations: list[Json], transitions: list[Json], key: list[Json] | None = None
) -> Json:
    return {
        "name": name,
        "id": 0,
        "parser_ops": operations,
        "transition_key": key or [],
        "transitions": transitions,
    }


def _target(jump: Json) -> int:
    return int(jump["parameters"][-1]["value"], 16)


def _fields(place: object) -> Iterator[FieldAt]:
    """Yield the fields of a place in packet order."""
    if isinstance(place, FieldAt):
        yield place
    elif isinstance(place, StructAt):
        for member in place.members:
            yield from _fields(member)
    elif isinstance(place, HeaderAt):
        for index in range(len(place.type.fields)):
            yield from _fields(place.member(index))
    elif isinstance(place, StackAt):
        for index in range(place.type.size):
            yield from _fields(place.element(index))


def _instances(place: object) -> Iterator[HeaderAt]:
    """Yield the headers of a place."""
    if isinstance(place, HeaderAt):
        yield place
    elif isinstance(place, StructAt):
        for member in place.members:
            yield from _instances(member)
    elif isinstance(place, StackAt):
        for index in range(place.type.size):
            yield from _instances(place.element(index))


def _op(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def _may_fail(state: ir.State) -> bool:
    """Return whether a state has a select without a default."""
    return bool(state.select) and not any(
        all(isinstance(match, ir.MatchAny) for match in case.matches) for case in state.cases
    )


def _transition(
    kind: str, following: str, value: str | None = None, mask: str | None = None
) -> Json:
    ends = following in ("accept", "reject")
    return {"type": kind, "value": value, "mask": mask, "next_state": None if ends else following}


def _bytes(values: Sequence[int], widths: Sequence[int]) -> str:
    """Return the values one after another as hexadecimal text, each padded to whole bytes."""
    texts = (f"{v:0{2 * ((w + 7) // 8)}x}" for v, w in zip(values, widths, strict=True))
    return "0x" + "".join(texts)


def _masks(match: ir.Match, width: int, case: ir.SelectCase) -> list[tuple[int, int]]:
    """Return a component of a keyset as pairs of value and mask."""
    ones = (1 << width) - 1

    def number(e: ir.Expr) -> int:
        if not isinstance(e, ir.Const):
            raise refuse(case.span, "BMv2 needs constants in a select's cases")
        return int(e.value) & ones

    match match:
        case ir.MatchAny():
            return [(0, 0)]
        case ir.MatchValue():
            return [(number(match.value), ones)]
        case ir.MatchMask():
            mask = number(match.mask)
            return [(number(match.value) & mask, mask)]
        case ir.MatchRange():
            low, high = number(match.low), number(match.high)
            if low > high:  # a signed range through 0
                return [*_prefixes(low, ones, width), *_prefixes(0, high, width)]
            return list(_prefixes(low, high, width))
    raise AssertionError(match)


def _prefixes(low: int, high: int, width: int) -> Iterator[tuple[int, int]]:
    """Return the fewest prefixes that together are the range from low to high."""
    ones = (1 << width) - 1
    while low <= high:
        size = low & -low if low else 1 << width
        while size > high - low + 1:
            size >>= 1
        yield low, ones & ~(size - 1)
        low += size
