"""A parser as BMv2's: states with operations and a transition on a key of fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from gradplane.switch.backends.bmv2.actions import ExternCalls, Primitives, source_info
from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    StackAt,
    Storage,
    StructAt,
    scalar_width,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Union, Varbit
from gradplane.switch.source import Span, refuse

MAX_CASES = 4096  # of one select, after ranges became masks
NO_MATCH = "$no_match"


class ParserStates:
    """Translates one parser. errors: their names, by code."""

    def __init__(
        self, parser: ir.Parser, storage: Storage, externs: ExternCalls, errors: Sequence[str]
    ) -> None:
        self._parser, self._storage, self._externs = parser, storage, externs
        self._errors = errors

    def json(self) -> Json:
        """Return the parser. Raises CompileError for what BMv2 does not have."""
        states = [self._state(at, state) for at, state in enumerate(self._parser.states.values())]
        first = "start"
        if self._parser.setup:
            first = "$setup"
            states.append(
                {
                    "name": first,
                    "id": len(states),
                    "parser_ops": self._operations(self._parser.setup),
                    "transition_key": [],
                    "transitions": [_transition("default", "start")],
                }
            )
        if any(_may_fail(state) for state in self._parser.states.values()):
            states.append(self._no_match(len(states)))
        return {"name": "parser", "id": 0, "init_state": first, "parse_states": states}

    def _no_match(self, at: int) -> Json:
        """Return the state of selects without a match, which are no error in BMv2 by themselves."""
        error = {"type": "hexstr", "value": hex(self._errors.index("NoMatch"))}
        return {
            "name": NO_MATCH,
            "id": at,
            "parser_ops": [_op("verify", {"type": "bool", "value": False}, error)],
            "transition_key": [],
            "transitions": [_transition("default", "reject")],
        }

    def _state(self, at: int, state: ir.State) -> Json:
        operations = self._operations(state.body)
        key = [self._key(e, operations, state.span) for e in state.select]
        if not state.select:
            transitions = [_transition("default", state.cases[0].next)]
        else:
            transitions = list(self._transitions(state))
            if _may_fail(state):
                transitions.append(_transition("default", NO_MATCH))
        return {
            "name": state.name,
            "id": at,
            "parser_ops": operations,
            "transition_key": key,
            "transitions": transitions,
        } | source_info(state.span)

    # -- transitions ----------------------------------------------------------------------------

    def _key(self, e: ir.Expr, operations: list[Json], span: Span) -> Json:
        code = Primitives(self._storage, self._externs)
        code.code.span = span
        place = code.code.place(e)
        if isinstance(place, FieldAt):
            return {"type": "field", "value": place.reference}
        if isinstance(e, ir.FieldOf) and isinstance(e.base, ir.LastOf):
            found = code.code.field(e)
            if found["type"] == "stack_field":
                return found
        kept = self._storage.temporary(e.type, "select")
        operations += self._set(kept, code, e)
        return {"type": "field", "value": kept.reference}

    def _transitions(self, state: ir.State) -> Iterator[Json]:
        widths = [scalar_width(e.type) for e in state.select]
        for case in state.cases:
            first = case.matches[0]
            if isinstance(first, ir.MatchSet):
                yield _transition("parse_vset", case.next, first.set.name)
            elif all(isinstance(match, ir.MatchAny) for match in case.matches):
                yield _transition("default", case.next)
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

    # -- operations -----------------------------------------------------------------------------

    def _operations(self, stmts: Sequence[ir.Stmt]) -> list[Json]:
        found: list[Json] = []
        for stmt in stmts:
            found += [entry | source_info(stmt.span) for entry in self._operation(stmt)]
        return found

    def _operation(self, s: ir.Stmt) -> list[Json]:
        code = Primitives(self._storage, self._externs)
        code.code.span = s.span
        match s:
            case ir.Extract():
                return [self._extract(s, code)]
            case ir.Lookahead():
                return list(self._lookahead(s, code))
            case ir.Advance():
                return [_op("advance", code.code.parameter(s.bits))]
            case ir.Verify():
                error = code.code.value(s.error)
                return [_op("verify", code.code.value(s.cond), error)]
            case ir.Assign(target=target, value=value):
                place = code.code.place(target)
                if isinstance(place, FieldAt) and not isinstance(place.type, Varbit):
                    return self._set(place, code, value)
        code.statement(s)
        primitives = code.finished()
        if any(entry["op"].startswith("_jump") for entry in primitives):
            raise refuse(s.span, "BMv2's parsers have no such conditional statement")
        return [_op("primitive", entry) for entry in primitives]

    def _set(self, place: FieldAt, code: Primitives, value: ir.Expr) -> list[Json]:
        return [_op("set", {"type": "field", "value": place.reference}, code.code.parameter(value))]

    def _extract(self, s: ir.Extract, code: Primitives) -> Json:
        target = s.target
        header: Json
        place = code.code.place(target)
        if isinstance(target, ir.NextOf):
            stack = code.code.place(target.base)
            assert isinstance(stack, StackAt), target
            header = {"type": "stack", "value": stack.name}
        elif isinstance(place, HeaderAt):
            header = {"type": "regular", "value": place.name}
        elif isinstance(target, ir.FieldOf) and isinstance(target.base, ir.NextOf):
            stack = code.code.place(target.base.base)
            assert isinstance(stack, StackAt) and isinstance(target.base.type, Union), target
            header = {"type": "union_stack", "value": [stack.name, target.name]}
        else:
            raise refuse(s.span, "BMv2 cannot extract a header by a run-time index")
        if s.size is None:
            return _op("extract", header)
        size = code.code.parameter(s.size)
        if size["type"] != "expression":
            size = {"type": "expression", "value": size}
        return _op("extract_VL", header, size)

    def _lookahead(self, s: ir.Lookahead, code: Primitives) -> Iterator[Json]:
        place, sets, offset = code.code.place(s.target), list[Json](), 0
        for one in _fields(place):
            if not isinstance(one.type, Bits | Bool):
                raise refuse(s.span, f"BMv2 cannot look ahead at a {one.type}")
            width = scalar_width(one.type)
            ahead = {"type": "lookahead", "value": [offset, width]}
            sets.append(_op("set", {"type": "field", "value": one.reference}, ahead))
            offset += width
        yield from reversed(sets)  # the last one first: nothing is set if the packet is too short
        for header in _instances(place):
            parameter = {"type": "header", "value": header.name}
            yield _op("primitive", {"op": "add_header_fast", "parameters": [parameter]})


def _fields(place: object) -> Iterator[FieldAt]:
    """Yield the fields of a place in packet order."""
    if isinstance(place, FieldAt):
        yield place
    elif isinstance(place, HeaderAt | StructAt):
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
        for index in range(len(place.type.fields)):
            yield from _instances(place.member(index))
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
    return {
        "type": kind,
        "value": value,
        "mask": mask,
        "next_state": None if ends else following,
    }


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
