"""Tables: keys, actions, default actions, entries.

Actions are lists of primitives, with jumps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gradplane.switch.bmv2_names import JUMPS, LARGEST_PRIORITY
from gradplane.switch.frontends.bmv2.arithmetic import cast, constant
from gradplane.switch.frontends.bmv2.control_flow import (
    END,
    Choose,
    Goto,
    Irreducible,
    Node,
    nested_statements,
)
from gradplane.switch.frontends.bmv2.control_plane import HIDDEN, ControlPlane
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import Item, span_of
from gradplane.switch.frontends.bmv2.layout import VALID, Scope
from gradplane.switch.frontends.bmv2.primitives import PrimitiveReader
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Annotation, Bits

_INVERTED = 1 << 30  # priorities from here on are 2^31 - 1 minus one that grows with importance
_NO_ACTION = "NoAction"


class Tables:
    """The tables and actions of one pipeline."""

    def __init__(
        self, root: Item, scope: Scope, externs: Externs, control_plane: ControlPlane
    ) -> None:
        self._scope, self._externs, self._control_plane = scope, externs, control_plane
        self._sources = {a["id"].number: a for a in root.elements("actions")}
        self._by_name = {a["name"].text: a["id"].number for a in root.elements("actions")}
        self._actions: dict[int, ir.Action] = {}
        self.tables: list[ir.Table] = []

    @property
    def actions(self) -> list[ir.Action]:
        """The actions of the tables."""
        return [choice.action for table in self.tables for choice in table.actions]

    # -- actions --------------------------------------------------------------------------------

    def source(self, number: Item) -> Item:
        """Return an action's JSON by its id."""
        if number.number not in self._sources:
            raise number.refuse(f"there is no action with id {number.number}")
        return self._sources[number.number]

    def code(self, number: Item, values: list[int] | None = None) -> list[ir.Stmt]:
        """Return a copy of an action's statements, for one place that calls it."""
        source = self.source(number)
        params = self._parameters(source)
        if len(params) != len(values or ()):
            raise number.refuse(f"action {source['name'].text} takes {len(params)} parameters")
        self._scope.locals += params
        given = zip(params, values or (), strict=True)
        assigned: list[ir.Stmt] = [ir.Assign(p, constant(p.type, v)) for p, v in given]
        return [*assigned, *body_of(source, self._scope, self._externs, params)]

    def _parameters(self, source: Item) -> list[ir.Var]:
        name, found = source["name"].text, []
        for entry in source.elements("runtime_data"):
            width = entry["bitwidth"].width
            param = self._scope.layout.variable(entry["name"].text, Bits(width))
            notes, declared = self._control_plane.parameter(name, param.name, width)
            param.annotations, param.type_name = notes, declared
            found.append(param)
        return found

    def _action(self, number: int, before: list[ir.Stmt]) -> ir.Action:
        """Return an action; `before`: what a table does first in its own copy."""
        if number not in self._actions or before:
            source = self._sources[number]
            name, params = source["name"].text, self._parameters(source)
            body = [*before, *body_of(source, self._scope, self._externs, params)]
            notes = self._control_plane.annotations("actions", name)
            made = ir.Action(name, params, body, notes, span_of(source))
            if before:
                return made
            self._actions[number] = made
        return self._actions[number]

    def _choices(self, item: Item) -> list[int]:
        """Return the ids of a table's actions."""
        numbers = item.get("action_ids")
        if numbers is not None:
            for number in numbers:
                self.source(number)
            return [n.number for n in numbers]
        found = []
        for name in item["actions"]:
            if name.text not in self._by_name:
                raise name.refuse(f"there is no action {name.text}")
            found.append(self._by_name[name.text])
        return found

    # -- tables ---------------------------------------------------------------------------------

    def table(self, item: Item) -> ir.Table:
        """Return a table, which is added to the pipeline's."""
        name, plane = item["name"].text, self._control_plane
        numbers = self._choices(item)
        meter_name = item.get("direct_meters")
        meter = None if meter_name is None else self._meter(meter_name)
        before = [] if meter is None else [meter]
        actions = [
            ir.TableAction(
                self._action(n, [self._metered(m) for m in before]),
                plane.reference_annotations(name, self._sources[n]["name"].text),
            )
            for n in numbers
        ]
        implementation = None
        if item["type"].text != "simple":
            implementation = self._externs.profile(item["action_profile"])
        default, is_const = self._default(item, numbers, actions)
        keys = [self._key(name, at, k) for at, k in enumerate(item.elements("key"))]
        entries = list(self._entries(item, keys, numbers))
        const = bool(entries) and plane.has_const_entries(name)
        for entry in entries:
            entry.const = const
        counter = self._externs.direct["counter"].get(name)
        if item.is_true("with_counters") and counter is None:
            raise item["with_counters"].refuse(f"no counter array is bound to table {name}")
        if implementation is not None:
            keys += self._externs.selector_keys(implementation, self._scope)
        notes = plane.annotations("tables", name)
        if not notes and plane.is_generated(item):
            notes = (HIDDEN,)
        made = ir.Table(
            name,
            keys,
            [],
            actions,
            default,
            is_const,
            entries,
            const,
            max(self._size(item), plane.table_size(name), len(entries)),
            implementation,
            counter if item.is_true("with_counters") else None,
            None if meter is None else meter.instance,
            None,
            item.is_true("support_timeout"),
            True,
            notes,
            span_of(item),
        )
        self.tables.append(made)
        return made

    def _size(self, item: Item) -> int:
        found = item.get("max_size")
        return 1024 if found is None else found.size

    def _key(self, table: str, at: int, item: Item) -> ir.Key:
        kind, target = item["match_type"].text, item["target"]
        if kind == "valid":
            expr: ir.Expr = ir.IsValid(BOOL, self._scope.instance(target))
            kind, default = "exact", target.text
        else:
            expr = self._scope.field(target)
            default = ".".join(p.text for p in target.parts(2))
            if target.value[-1] == VALID and isinstance(expr, ir.Cast):
                expr, default = expr.operand, default.replace(VALID, "isValid()")
        if kind not in ("exact", "lpm", "ternary", "range"):
            raise item["match_type"].refuse(f"match kind {kind} is not known")
        mask = item.get("mask")
        if mask is not None:
            if not isinstance(expr.type, Bits):
                raise mask.refuse(f"a {expr.type} has no mask")
            expr = ir.Binary(expr.type, "&", expr, constant(expr.type, mask.hexadecimal))
        if not isinstance(expr.type, Bits) and expr.type != BOOL:
            raise target.refuse(f"a {expr.type} cannot be matched")
        given = item.get("name")
        name = self._control_plane.key_name(table, at, default if given is None else given.text)
        kind, notes, declared = self._control_plane.key(
            table, at, name, kind, expr.type.width if isinstance(expr.type, Bits) else 1
        )
        return ir.Key(name, expr, kind, notes, declared)

    # -- direct meters --------------------------------------------------------------------------

    def _meter(self, name: Item) -> ir.CallExtern:
        found = self._externs.direct["meter"].get(name.text)
        if found is None:
            raise name.refuse(f"there is no direct meter {name.text}")
        target = self._scope.field(self._externs.meter_results[found])
        found.type_args = [target.type]
        return ir.CallExtern(found, "read", [target], ["out"])

    def _metered(self, call: ir.CallExtern) -> ir.CallExtern:
        """Return a call that reads a meter's colour, which BMv2 stores at the table's lookup."""
        return ir.CallExtern(call.instance, call.name, list(call.args), list(call.directions))

    # -- default actions, entries ---------------------------------------------------------------

    def _default(
        self, item: Item, numbers: list[int], actions: list[ir.TableAction]
    ) -> tuple[ir.ActionCall, bool]:
        """Return the default action, and whether it is constant."""
        given = item.get("default_entry")
        if given is not None and given.get("action_id") is not None:
            call = self._call(given, numbers, actions)
            is_const = given.is_true("action_const") and given.is_true("action_entry_const")
            return call, is_const
        for at, choice in enumerate(actions):
            if choice.action.name == _NO_ACTION:
                return ir.ActionCall(at, []), False
        nothing = ir.Action(_NO_ACTION, [], [], (HIDDEN,), span_of(item))
        actions.append(ir.TableAction(nothing, (Annotation("defaultonly"),)))
        return ir.ActionCall(len(actions) - 1, []), False

    def _call(self, item: Item, numbers: list[int], actions: list[ir.TableAction]) -> ir.ActionCall:
        number = item["action_id"]
        source = self.source(number)
        if number.number not in numbers:  # such as a default action that no entry may have
            numbers.append(number.number)
            notes = (Annotation("defaultonly"),)
            actions.append(ir.TableAction(self._action(number.number, []), notes))
        at = numbers.index(number.number)
        params, data = actions[at].action.params, list(item["action_data"])
        if len(params) != len(data):
            text = f"action {source['name'].text} takes {len(params)} parameters"
            raise item["action_data"].refuse(f"{text}, found {len(data)}")
        values = [constant(p.type, d.hexadecimal).value for p, d in zip(params, data, strict=True)]
        return ir.ActionCall(at, [v for v in values if isinstance(v, int)])

    def _entries(self, item: Item, keys: list[ir.Key], numbers: list[int]) -> Iterator[ir.Entry]:
        """Yield the entries, the most important one first."""
        found = []
        for entry in item.elements("entries"):
            parts = list(entry["match_key"])
            if len(parts) != len(keys):
                text = f"the table has {len(keys)} match fields, the entry {len(parts)}"
                raise entry["match_key"].refuse(text)
            matches = [_match(p, k) for p, k in zip(parts, keys, strict=True)]
            priority = entry.get("priority")
            number = 0 if priority is None else priority.number
            call = self._entry_call(entry["action_entry"], numbers)
            found.append((number, ir.Entry(matches, call, None, True, (), span_of(entry))))
        found.sort(key=lambda pair: pair[0])
        for number, made in found:
            if number >= _INVERTED:
                made.priority = LARGEST_PRIORITY - number
            yield made

    def _entry_call(self, item: Item, numbers: list[int]) -> ir.ActionCall:
        number = item["action_id"]
        if number.number not in numbers:
            raise number.refuse("the table does not have this action")
        params = self.source(number).elements("runtime_data")
        data = list(item["action_data"])
        if len(params) != len(data):
            raise item["action_data"].refuse(f"expected {len(params)} values")
        values = [
            d.hexadecimal & ((1 << p["bitwidth"].width) - 1)
            for p, d in zip(params, data, strict=True)
        ]
        return ir.ActionCall(numbers.index(number.number), list(values))


def _match(item: Item, key: ir.Key) -> ir.Match:
    """Return one match of an entry."""
    t = key.expr.type
    width = t.width if isinstance(t, Bits) else 1

    def value(name: str) -> ir.Const:
        if isinstance(item[name].value, bool):
            return ir.Const(BOOL, item[name].value)
        number = item[name].hexadecimal
        return ir.Const(BOOL, bool(number)) if t == BOOL else constant(t, number)

    match item["match_type"].text:
        case "exact" | "valid":
            return ir.MatchValue(value("key"))
        case "lpm":
            length = item["prefix_length"].number
            if not 0 <= length <= width:
                what = f"expected a length of 0 to {width} bits, found {length}"
                raise item["prefix_length"].refuse(what)
            mask = ((1 << width) - 1) ^ ((1 << width) - 1 >> length)
            return _masked(value("key"), mask)
        case "ternary":
            mask = item["mask"].hexadecimal & ((1 << width) - 1)
            if key.match_kind == "optional":
                return ir.MatchValue(value("key")) if mask else ir.MatchAny()
            return _masked(value("key"), mask)
        case "range":
            return ir.MatchRange(value("start"), value("end"))
    raise item["match_type"].refuse("expected exact, lpm, ternary, range or valid")


def _masked(value: ir.Const, mask: int) -> ir.Match:
    if not mask:
        return ir.MatchAny()
    t = value.type
    if not isinstance(t, Bits):
        return ir.MatchValue(value)
    return ir.MatchMask(
        constant(t, int(value.value) & mask), cast(ir.Const(Bits(t.width), mask), t)
    )


# -- actions ----------------------------------------------------------------------------------


def body_of(
    item: Item, scope: Scope, externs: Externs, parameters: Sequence[ir.Var]
) -> list[ir.Stmt]:
    """Return the statements of an action."""
    code = PrimitiveReader(scope, externs, parameters)
    primitives = item.elements("primitives")
    if not any(p["op"].value in JUMPS for p in primitives):
        return [stmt for p in primitives for stmt in code.statements(p)]
    nodes = _nodes(primitives, code)
    try:
        return nested_statements(nodes, 0)
    except Irreducible:
        text = "it has a loop that is entered in two places"
        raise item["primitives"].refuse(text) from None


def _nodes(primitives: list[Item], code: PrimitiveReader) -> dict[object, Node]:
    """Cut the list where a jump starts or ends; each part goes by the number of its start."""
    count = len(primitives)
    target: Callable[[int], object] = lambda at: END if at >= count else at  # noqa: E731
    starts = {0}
    for at, p in enumerate(primitives):
        if p["op"].value in JUMPS:
            starts |= {at + 1, _offset(p, count)}
    ordered = sorted(s for s in starts if s < count)
    nodes: dict[object, Node] = {}
    for start, end in zip(ordered, [*ordered[1:], count], strict=True):
        body: list[ir.Stmt] = []
        node = Node(body, Goto(target(end)))
        for p in primitives[start:end]:
            match p["op"].value:
                case "_jump":
                    node.after = Goto(target(_offset(p, count)))
                case "_jump_if_zero":
                    cond = code.code.truth(p["parameters"].parts(2)[0])
                    node.after = Choose(cond, target(end), target(_offset(p, count)))
                case _:
                    body += code.statements(p)
        nodes[start] = node
    return nodes


def _offset(p: Item, count: int) -> int:
    """Return where a jump goes; to the end of the list, too."""
    where = p["parameters"].parts(1 if p["op"].value == "_jump" else 2)[-1]
    if where.kind() != "hexstr":
        raise where.refuse("expected a constant")
    at = where["value"].hexadecimal
    if not 0 <= at <= count:
        raise where.refuse(f"there is no primitive {at}; the action has {count}")
    return at
