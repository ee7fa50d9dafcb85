"""Parsers: states with operations and transitions on a key."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.frontends.bmv2.arithmetic import cast
from gradplane.switch.frontends.bmv2.control_plane import ControlPlane
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import Item, span_of
from gradplane.switch.frontends.bmv2.layout import Scope
from gradplane.switch.frontends.bmv2.primitives import PrimitiveReader
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, Header, Stack, Type

_START = "start"


class ParserReader:
    """Translates the parser of a program."""

    def __init__(
        self, root: Item, scope: Scope, externs: Externs, control_plane: ControlPlane
    ) -> None:
        self._root, self._scope = root, scope
        self._code = PrimitiveReader(scope, externs)
        self._control_plane = control_plane
        self._sets = {v["name"].text: v for v in root.elements("parse_vsets")}
        self._made: dict[str, ir.ValueSet] = {}

    def parser(self) -> ir.Parser:
        """Return the parser, of which simple_switch has one."""
        found = self._root.elements("parsers")
        if len(found) != 1:
            raise self._root["parsers"].refuse(f"expected one parser, found {len(found)}")
        (item,) = found
        states = {state["name"].text: state for state in item["parse_states"]}
        names = self._state_names(item, states)
        made = {names[n]: self._state(s, names, names[n]) for n, s in states.items()}
        if not made:
            made[_START] = ir.State(_START, [], [], [ir.SelectCase([], "accept")])
        params = [
            ir.Param(p.name, d, p)
            for p, d in zip(self._scope.params, ("out", "inout", "inout"), strict=True)
        ]
        return ir.Parser(item["name"].text, params, self._scope.locals, [], made, span_of(item))

    def _state_names(self, item: Item, states: dict[str, Item]) -> dict[str, str]:
        """Return the states' names in the IR, where the first one is "start"."""
        first = item.get("init_state")
        if first is None:
            return {name: name for name in states}
        if first.text not in states:
            raise first.refuse(f"there is no state {first.text}")
        names = {n: f"{n}_" if n in ("accept", "reject", _START) else n for n in states}
        return names | {first.text: _START}

    @property
    def value_sets(self) -> list[ir.ValueSet]:
        """The program's value sets, in order."""
        return [self._value_set(item, None) for item in self._sets.values()]

    # -- states ---------------------------------------------------------------------------------

    def _state(self, item: Item, names: dict[str, str], name: str) -> ir.State:
        body = [s for op in item.elements("parser_ops") for s in self._operation(op)]
        keys = [self._key(k, body) for k in item.elements("transition_key")]
        cases = list(self._cases(item, keys, names))
        default = next(
            (c for c in cases if isinstance(c.matches[0], ir.MatchAny) and len(c.matches) == 1),
            None,
        )
        if not keys:
            following = default.next if default else "accept"
            return ir.State(name, body, [], [ir.SelectCase([], following)], span_of(item))
        if default is None:  # in BMv2 a select without a match ends the parser, without an error
            cases.append(ir.SelectCase([ir.MatchAny()], "accept"))
        return ir.State(name, body, keys, cases, span_of(item))

    def _key(self, item: Item, body: list[ir.Stmt]) -> ir.Expr:
        kind, value = item.kind(), item["value"]
        found: ir.Expr
        if kind == "lookahead":
            found = self._looked_ahead(value, body)
        elif kind == "field":
            found = self._scope.field(value)
        elif kind in ("stack_field", "union_stack_field"):
            found = self._code.code.places.last_field(value)
        else:
            raise item.refuse(f"a {kind} is no part of a transition's key")
        if not isinstance(found.type, Bits):
            raise item.refuse(f"a {found.type} cannot be matched")
        return cast(found, Bits(found.type.width))

    def _looked_ahead(self, value: Item, body: list[ir.Stmt]) -> ir.Expr:
        start, width = (v.width for v in value.parts(2))
        if not width:
            raise value.refuse("expected an offset and a width")
        made = self._scope.temporary("lookahead", Bits(start + width))
        body.append(ir.Lookahead(made))
        return made if not start else ir.SliceOf(Bits(width), made, width - 1, 0)

    # -- transitions ----------------------------------------------------------------------------

    def _cases(
        self, item: Item, keys: list[ir.Expr], names: dict[str, str]
    ) -> Iterator[ir.SelectCase]:
        """Yield the cases; the default, wherever it stands, comes last."""
        last: ir.SelectCase | None = None
        for transition in item.elements("transitions"):
            kind = transition.get("type")
            value, following = transition.get("value"), transition.get("next_state")
            to = "accept"
            if following is not None:
                if following.text not in names:
                    raise following.refuse(f"there is no state {following.text}")
                to = names[following.text]
            match "hexstr" if kind is None else kind.text:
                case "default":
                    last = ir.SelectCase([ir.MatchAny()], to)
                case "hexstr" if value is not None and value.value == "default":
                    last = ir.SelectCase([ir.MatchAny()], to)
                case "hexstr":
                    yield ir.SelectCase(list(_matches(transition, keys)), to)
                case "parse_vset":
                    yield ir.SelectCase([self._member(transition, keys)], to)
                case _:
                    raise transition["type"].refuse("expected default, hexstr or parse_vset")
        if last is not None:
            yield last

    def _member(self, transition: Item, keys: list[ir.Expr]) -> ir.Match:
        name = transition["value"]
        if name.text not in self._sets:
            raise name.refuse(f"there is no value set {name.text}")
        mask = transition.get("mask")
        if mask is not None:
            raise mask.refuse("a mask of a value set is not supported")
        found = self._value_set(self._sets[name.text], [k.type for k in keys])
        if [f.expr.type for f in found.fields] != [k.type for k in keys]:
            raise name.refuse(f"value set {name.text} does not fit the key")
        return ir.MatchSet(found)

    def _value_set(self, item: Item, types: list[Type] | None) -> ir.ValueSet:
        name = item["name"].text
        if name not in self._made:
            plane = self._control_plane
            if types is None:
                types = plane.value_set_types(name) or [Bits(item["compressed_bitwidth"].width)]
            size = item.get("max_size")
            self._made[name] = ir.ValueSet(
                name,
                plane.value_set_fields(name, types),
                plane.value_set_size(name) if size is None else size.size,
                plane.annotations("value_sets", name),
                span_of(item),
            )
        return self._made[name]

    # -- operations -----------------------------------------------------------------------------

    def _operation(self, item: Item) -> list[ir.Stmt]:
        found = self._statements(item)
        span = span_of(item)
        for stmt in found:
            if span.line:
                stmt.span = span
        return found

    def _statements(self, item: Item) -> list[ir.Stmt]:
        op, parameters = item["op"].text, item.elements("parameters")
        code = self._code.code
        match op, parameters:
            case "extract", [header]:
                return [ir.Extract(self._header(header))]
            case "extract_VL", [header, size]:
                bits = cast(code.low(size, 32), Bits(32))
                return [ir.Extract(self._header(header), bits)]
            case "set", [target, source]:
                return self._set(target, source)
            case "verify", [cond, error]:
                number = _error(error) or cast(code.low(error, 32), Bits(32))
                return [ir.Verify(code.truth(cond), number)]
            case "advance", [bits]:
                return [ir.Advance(cast(code.low(bits, 32), Bits(32)))]
            case "shift", [count]:
                return [ir.Advance(ir.Const(Bits(32), 8 * count.number))]
            case "primitive", [primitive]:
                return self._code.statements(primitive)
        raise item.refuse(f"operation {op} with {len(parameters)} parameters is not supported")

    def _set(self, target: Item, source: Item) -> list[ir.Stmt]:
        place = self._code.code.places.field(target)
        if source.kind() != "lookahead":
            return [self._code.assigned(place, source)]
        start, width = (v.number for v in source["value"].parts(2))
        if not start and place.type == Bits(width):
            return [ir.Lookahead(place)]
        body: list[ir.Stmt] = []
        found = self._looked_ahead(source["value"], body)
        return [*body, ir.Assign(place, cast(found, place.type))]

    def _header(self, item: Item) -> ir.LValue:
        """Return what an extract fills: a header, or a new one on a stack."""
        kind, value = item.kind(), item["value"]
        if kind == "regular":
            found = self._scope.instance(value)
            if not isinstance(found.type, Header):
                raise value.refuse(f"a {found.type} is no header")
            return found
        names = list(value) if kind == "union_stack" else [value]
        stack = self._scope.instance(names[0])
        if kind not in ("stack", "union_stack") or not isinstance(stack.type, Stack):
            raise item.refuse("expected a header or a stack")
        target: ir.LValue = ir.NextOf(stack.type.element, stack)
        for name in names[1:]:
            t = target.type
            index = t.index(name.text) if isinstance(t, Fields) else None
            if index is None or not isinstance(t, Fields):
                raise name.refuse(f"{t} has no header {name.text}")
            target = ir.FieldOf(t.fields[index].type, target, index, name.text)
        return target


def _error(item: Item) -> ir.Const | None:
    """Return an error that is given as a plain number, as older files do."""
    return ir.Const(Bits(32), item.value) if isinstance(item.value, int) else None


def _matches(transition: Item, keys: list[ir.Expr]) -> Iterator[ir.Match]:
    """Yield a match for each part of the key: value and mask have them padded to whole bytes."""
    value, mask_item = transition["value"].hexadecimal, transition.get("mask")
    mask = None if mask_item is None else mask_item.hexadecimal
    widths = [k.type.width for k in keys if isinstance(k.type, Bits)]
    rest = sum((w + 7) // 8 * 8 for w in widths)
    if value >> rest or value < 0:
        raise transition["value"].refuse(f"the key has {rest // 8} bytes")
    if not widths:
        raise transition.refuse("a transition by value needs a transition_key")
    for width in widths:
        rest -= (width + 7) // 8 * 8
        ones = (1 << width) - 1
        t = Bits(width)
        part, kept = (value >> rest) & ones, ones if mask is None else (mask >> rest) & ones
        if not kept:
            yield ir.MatchAny()
        elif kept == ones:
            yield ir.MatchValue(ir.Const(t, part))
        else:
            yield ir.MatchMask(ir.Const(t, part & kept), ir.Const(t, kept))
