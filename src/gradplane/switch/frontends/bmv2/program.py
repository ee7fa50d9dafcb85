"""A v1model program from its sections.

A pipeline is a graph of tables, conditions and calls of actions, which becomes a control. Checksums
are verified after the parser, or computed at the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane._p4runtime import p4i
from gradplane.switch.bmv2_names import HIT, MISS
from gradplane.switch.frontends.bmv2.control_flow import (
    END,
    Choose,
    Goto,
    Irreducible,
    Name,
    Node,
    Select,
    nested_statements,
)
from gradplane.switch.frontends.bmv2.control_plane import HIDDEN, ControlPlane, impossible_widths
from gradplane.switch.frontends.bmv2.expressions import Expressions
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item, span_of
from gradplane.switch.frontends.bmv2.layout import Layout, Scope
from gradplane.switch.frontends.bmv2.parsers import ParserReader
from gradplane.switch.frontends.bmv2.primitives import PrimitiveReader
from gradplane.switch.frontends.bmv2.tables import Tables
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, STRING, Bits
from gradplane.switch.source import Span

VERSION = 2  # of the format; simple_switch takes no other
_PIPELINES = {"ig": "ingress", "eg": "egress"}
_CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


class Reader:
    """Makes the program of a document."""

    def __init__(self, root: Item, p4info: p4i.P4Info | None) -> None:
        self._root = root
        _check_version(root)
        for place in () if p4info is None else impossible_widths(p4info, "P4Info"):
            raise root.refuse(f"{place}: expected a width of 0 to {MAX_WIDTH} bits")
        self._plane = ControlPlane(p4info)
        self._layout = Layout(root)
        self._externs = Externs(root, self._layout, self._plane)

    def program(self) -> ir.Program:
        """Return the program."""
        root, layout = self._root, self._layout
        parser = ParserReader(root, Scope(layout, "p", 3), self._externs, self._plane)
        blocks: dict[str, ir.Parser | ir.Control] = {"p": parser.parser()}
        blocks["vr"] = checksum_control(root, True, Scope(layout, "vr", 2), self._externs)
        pipelines = [self._pipeline(block) for block in _PIPELINES]
        for block, reader in zip(_PIPELINES, pipelines, strict=True):
            blocks[block] = reader.control()
        blocks["ck"] = checksum_control(root, False, Scope(layout, "ck", 2), self._externs)
        blocks["dep"] = self._deparser()
        actions = _by_name(a for r in pipelines for a in r.tables.actions)
        types, enums = self._plane.declared_types()
        return ir.Program(
            ir.Package(
                "V1Switch", {**blocks}, span=Span(root.file, 1, 1, 2), parameters=tuple(blocks)
            ),
            self._errors(),
            [t for r in pipelines for t in r.tables.tables],
            list(actions.values()),
            self._externs.all,
            parser.value_sets,
            types,
            enums,
            self._plane.controller_headers(),
        )

    def _pipeline(self, block: str) -> PipelineReader:
        name = _PIPELINES[block]
        for item in self._root.elements("pipelines"):
            if item["name"].text == name:
                self._externs.add_profiles(item)
                scope = Scope(self._layout, block, 3)
                return PipelineReader(self._root, item, scope, self._externs, self._plane)
        raise self._root["pipelines"].refuse(f"there is no pipeline {name}")

    def _deparser(self) -> ir.Control:
        found = self._root.elements("deparsers")
        if len(found) != 1:
            raise self._root["deparsers"].refuse(f"expected one deparser, found {len(found)}")
        (item,) = found
        scope = Scope(self._layout, "dep", 1)
        code = PrimitiveReader(scope, self._externs)
        body = [s for p in item.elements("primitives") for s in code.statements(p)]
        body += [ir.Emit(scope.instance(name)) for name in item["order"]]
        params = [ir.Param(p.name, "in", p) for p in scope.params]
        return ir.Control(item["name"].text, params, scope.locals, body, span_of(item))

    def _errors(self) -> list[str]:
        """Return the errors' names by code; earlier p4c counted from 1.

        Those of core.p4 that the JSON does not have get the codes that BMv2 gives them.
        """
        found: dict[int, str] = {}
        for item in self._root.elements("errors"):
            name, code = item.parts(2)
            if not 0 <= code.number < 1 << 16:
                raise code.refuse("expected a code of 0 to 65535")
            if code.number in found or name.text in found.values():
                raise item.refuse("another error has this name or this code")
            found[code.number] = name.text
        missing = (name for name in _CORE_ERRORS if name not in [*found.values()])
        found |= dict(enumerate([*missing], start=max(found, default=-1) + 1))
        return [found.get(code, f"error_{code}") for code in range(max(found) + 1)]


def _by_name(actions: Iterable[ir.Action]) -> dict[str, ir.Action]:
    """Return one action of each name; one that controllers see before one that is hidden."""
    found: dict[str, ir.Action] = {}
    for action in actions:
        if action.name not in found or HIDDEN in found[action.name].annotations:
            found[action.name] = action
    return found


def _check_version(root: Item) -> None:
    meta = root.get("__meta__")
    version = None if meta is None else meta.get("version")
    if version is not None:
        major, minor = version.parts(2)
        if major.number != VERSION:
            text = f"format version {major.number}.{minor.number}: {VERSION}.x is supported"
            raise version.refuse(text)


# -- pipelines --------------------------------------------------------------------------------


class PipelineReader:
    """Translates one pipeline; `tables` has its tables and actions."""

    def __init__(
        self, root: Item, item: Item, scope: Scope, externs: Externs, control_plane: ControlPlane
    ) -> None:
        self._item, self._scope = item, scope
        self._control_plane = control_plane
        self.tables = Tables(root, scope, externs, control_plane)
        self._names: set[str] = set()
        for section in ("tables", "conditionals", "action_calls"):
            self._names |= {node["name"].text for node in item.elements(section)}

    def control(self) -> ir.Control:
        """Return the pipeline as a control."""
        nodes: dict[Name, Node] = {}
        for table in self._item.elements("tables"):
            nodes[table["name"].text] = self._table(table)
        for condition in self._item.elements("conditionals"):
            nodes[condition["name"].text] = self._condition(condition)
        for call in self._item.elements("action_calls"):
            body = self.tables.code(call["action_id"])
            nodes[call["name"].text] = Node(body, Goto(self._target(call.get("next_node"))))
        first = self._target(self._item.get("init_table"))
        try:
            body = nested_statements(nodes, first)
        except Irreducible:
            raise self._item.refuse("its nodes form a loop") from None
        params = [ir.Param(p.name, "inout", p) for p in self._scope.params]
        name = self._item["name"].text
        return ir.Control(name, params, self._scope.locals, body, span_of(self._item))

    def _target(self, item: Item | None) -> Name:
        if item is None:
            return END
        if item.text not in self._names:
            raise item.refuse(f"there is no node {item.text} in this pipeline")
        return item.text

    def _condition(self, item: Item) -> Node:
        cond = Expressions(self._scope).truth(item["expression"])
        then, other = (self._target(item.get(key)) for key in ("true_next", "false_next"))
        return Node([], Choose(cond, then, other))

    # -- tables ---------------------------------------------------------------------------------

    def _table(self, item: Item) -> Node:
        inlined = self._inlined(item)
        if inlined is not None:
            return inlined
        table = self.tables.table(item)
        apply = ir.ApplyTable(table, span=table.span)
        following = item.get("next_tables")
        ways = {} if following is None else following.value
        if not isinstance(ways, dict):
            raise item["next_tables"].refuse("expected an object")
        targets = {key: self._way(item, key) for key in ways}
        if HIT in targets or MISS in targets:
            hit, miss = (targets.get(key, END) for key in (HIT, MISS))
            if hit == miss:
                return Node([apply], Goto(hit))
            apply.hit = self._scope.temporary(f"{table.name}.hit", BOOL)
            return Node([apply], Choose(apply.hit, hit, miss))
        if len(set(targets.values())) <= 1:
            return Node([apply], Goto(next(iter(targets.values()), self._next_default(item))))
        run = self._scope.temporary(f"{table.name}.action_run", Bits(32))
        apply.action_run = run
        default = self._next_default(item)
        cases = [
            ([at], targets.get(choice.action.name, default))
            for at, choice in enumerate(table.actions)
        ]
        return Node([apply], Select(run, [c for c in cases if c[1] != default], default))

    def _way(self, item: Item, key: str) -> Name:
        return self._target(item["next_tables"].get(key))

    def _next_default(self, item: Item) -> Name:
        return self._target(item.get("base_default_next"))

    def _inlined(self, item: Item) -> Node | None:
        """Return a table that stands for the call of an action as that action's statements.

        p4c makes such tables, without a key and with one constant action.
        """
        default = item.get("default_entry")
        if default is None or item.elements("key") or not self._control_plane.is_generated(item):
            return None
        if item["type"].text != "simple" or item.is_true("with_counters"):
            return None
        if item.get("direct_meters") is not None or not default.is_true("action_entry_const"):
            return None
        values = [d.hexadecimal for d in default["action_data"]]
        body = self.tables.code(default["action_id"], values)
        name = self.tables.source(default["action_id"])["name"].text
        ways = item.get("next_tables")
        following = None if ways is None else ways.get(MISS) or ways.get(name)
        return Node(body, Goto(self._target(following)))


# -- checksums --------------------------------------------------------------------------------


def checksum_control(root: Item, verify: bool, scope: Scope, externs: Externs) -> ir.Control:
    """Return the control that verifies checksums, or the one that computes them."""
    wanted = "verify" if verify else "update"
    body = [
        _call(item, wanted, scope, externs)
        for item in root.elements("checksums")
        if item.is_true(wanted, default=True)
    ]
    params = [ir.Param(p.name, "inout", p) for p in scope.params]
    return ir.Control(f"{wanted}_checksums", params, scope.locals, body)


def _call(item: Item, name: str, scope: Scope, externs: Externs) -> ir.Stmt:
    if item["type"].text != "generic":
        raise item["type"].refuse("expected generic")
    algorithm, inputs, payload = externs.calculation(item["calculation"], scope)
    target = scope.field(item["target"])
    given = item.get("if_cond")
    cond = ir.Const(BOOL, True) if given is None else Expressions(scope).truth(given)
    args = [cond, inputs, target, ir.Const(STRING, algorithm)]
    directions = ["in", "in", "in" if name == "verify" else "inout", "in"]
    full = f"{name}_checksum" + ("_with_payload" if payload else "")
    return ir.CallExtern(None, full, args, directions, span=span_of(item))
