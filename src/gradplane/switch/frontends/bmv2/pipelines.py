"""Pipelines: graphs of tables, conditions and calls of actions, as controls."""

from __future__ import annotations

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
from gradplane.switch.frontends.bmv2.control_plane import ControlPlane
from gradplane.switch.frontends.bmv2.expressions import Expressions
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import Item, span_of
from gradplane.switch.frontends.bmv2.layout import Scope
from gradplane.switch.frontends.bmv2.tables import Tables
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits

_HIT, _MISS = "__HIT__", "__MISS__"


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
        if _HIT in targets or _MISS in targets:
            hit, miss = (targets.get(key, END) for key in (_HIT, _MISS))
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
        following = None if ways is None else ways.get(_MISS) or ways.get(name)
        return Node(body, Goto(self._target(following)))
