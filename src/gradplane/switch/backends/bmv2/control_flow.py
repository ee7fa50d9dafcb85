"""A control as a BMv2 pipeline: a graph of tables, conditions and calls of actions.

Statements between tables become an action of their own, with jumps inside; only what decides which
table comes next is a node of the graph. Nodes are made from the end: each is given the name of the
node that follows it. Names that no declaration gives have a $, as P4 has none in names.

Tables in BMv2's JSON: what they match, their actions, default entry and constant entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, product

from gradplane.switch.backends.bmv2.actions import ExternCalls, PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.expressions import Expressions, number, op
from gradplane.switch.backends.bmv2.storage import FieldAt, HeaderAt, Json, Storage, scalar_width
from gradplane.switch.bmv2_names import HIT, LARGEST_PRIORITY, MISS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import BOOL, Bits
from gradplane.switch.ir.walk import nested, writes
from gradplane.switch.runtime.entries import ActionData
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.source import Span, refuse

_KINDS = ("exact", "lpm", "ternary", "range")  # of a table: the last that one of its keys has


def table_size(table: ir.Table) -> int:
    """Return the most entries of a table: those of the source, if any, as BMv2 takes no others."""
    return len(table.entries) or table.size


def table_json(
    table: ir.Table, id: int, keys: list[Json], action_ids: list[int], next_nodes: Json
) -> Json:
    """Return a table, with the entries that the source gives.

    keys: its match fields. action_ids: of its actions, in their order. next_nodes: what follows, by
    the action's name or by hit and miss."""
    kinds = {key["match_type"] for key in keys}
    default = table.actions[table.default.index].action.name
    found: Json = {
        "name": table.name,
        "id": id,
        "key": keys,
        "match_type": next((kind for kind in reversed(_KINDS) if kind in kinds), "exact"),
        "type": "simple",
        "max_size": table_size(table),
        "with_counters": table.counter is not None,
        "support_timeout": table.support_timeout,
        "direct_meters": None if table.meter is None else table.meter.name,
        "action_ids": action_ids,
        "actions": [choice.action.name for choice in table.actions],
        "base_default_next": next_nodes.get(MISS) or next_nodes.get(default),
        "next_tables": next_nodes,
    } | source_info(table.span)
    if table.implementation is not None:
        selector = table.implementation.kind == "action_selector"
        found["type"] = "indirect_ws" if selector else "indirect"
        found["action_profile"] = table.implementation.name
    found["default_entry"] = _default(table, action_ids)
    if table.entries:
        found["entries"] = _entries(table, action_ids)
    return found


def _default(table: ir.Table, numbers: list[int]) -> Json:
    constant = table.const_default and table.implementation is None
    return {
        "action_id": numbers[table.default.index],
        "action_const": constant,
        "action_data": _data(table, table.default.index, table.default.args),
        "action_entry_const": constant,
    }


def _entries(table: ir.Table, numbers: list[int]) -> list[Json]:
    kinds = [(key.match_kind, scalar_width(key.expr.type)) for key in table.keys]
    found = []
    for at, entry in enumerate(MatchTable(table).entries()):
        assert isinstance(entry.action, ActionData), entry
        matches = zip(kinds, entry.matches, strict=True)
        choices = [_matches(kind, width, match) for (kind, width), match in matches]
        rest = {
            "action_entry": {
                "action_id": numbers[entry.action.index],
                "action_data": _data(table, entry.action.index, entry.action.args),
            },
            "priority": LARGEST_PRIORITY - entry.priority if entry.priority else at + 1,
        }
        found += [{"match_key": list(keys)} | rest for keys in product(*choices)]
    return found


def _data(table: ir.Table, index: int, args: Sequence[int | bool]) -> list[str]:
    params = table.actions[index].action.params
    return [
        hex(int(value) & ((1 << scalar_width(p.type)) - 1))
        for value, p in zip(args, params, strict=True)
    ]


def _matches(kind: str, width: int, match: tuple[int, ...] | None) -> list[Json]:
    """Return the matches that stand for one of an entry: two for a range across 0, as BMv2 compares
    without signs."""
    if kind == "range" and match is not None and match[0] > match[1]:
        ones = (1 << width) - 1
        return [_match(kind, width, half) for half in ((match[0], ones), (0, match[1]))]
    return [_match(kind, width, match)]


def _match(kind: str, width: int, match: tuple[int, ...] | None) -> Json:
    """Return a match of an entry; None is "don't care"."""

    def text(value: int) -> str:
        return f"0x{value & ((1 << width) - 1):0{2 * ((width + 7) // 8)}x}"

    ones = (1 << width) - 1
    if kind == "lpm":
        value, length = match or (0, 0)
        return {"match_type": "lpm", "key": text(value), "prefix_length": length}
    if kind == "ternary":
        value, mask = match or (0, 0)
        return {"match_type": "ternary", "key": text(value), "mask": text(mask)}
    if kind == "range":
        low, high = match or (0, ones)
        return {"match_type": "range", "start": text(low), "end": text(high)}
    if kind == "optional":
        value, mask = (match[0], ones) if match else (0, 0)
        return {"match_type": "ternary", "key": text(value), "mask": text(mask)}
    assert match is not None, kind
    return {"match_type": "exact", "key": text(match[0])}


class Actions:
    """The program's actions by number: those of tables, and those that code between tables is."""

    def __init__(self, storage: Storage, externs: ExternCalls) -> None:
        self.storage, self.externs = storage, externs
        self._numbers: dict[ir.Action, int] = {}
        self.json: list[Json] = []

    def of_table(self, action: ir.Action) -> int:
        """Return the number of a table's action."""
        if action not in self._numbers:
            self._numbers[action] = self._reserve()
            code = PrimitiveWriter(self.storage, self.externs, action.params)
            written = _written(action)
            for param in written:
                copy = ir.Var(param.type, param.name, -1)
                code.assign(copy, param)
                code.code.replace(param, copy)
            code.body(action.body)
            data = [{"name": p.name, "bitwidth": scalar_width(p.type)} for p in action.params]
            self._fill(self._numbers[action], action.name, data, code.finished(), action.span)
        return self._numbers[action]

    def of_code(self, name: str, code: PrimitiveWriter) -> int:
        """Return the number of a new action without parameters."""
        at = self._reserve()
        self._fill(at, name, [], code.finished(), None)
        return at

    def code(self) -> PrimitiveWriter:
        """Return an empty list of primitives."""
        return PrimitiveWriter(self.storage, self.externs)

    def _reserve(self) -> int:
        self.json.append({})
        return len(self.json) - 1

    def _fill(
        self, at: int, name: str, data: list[Json], primitives: list[Json], span: Span | None
    ) -> None:
        self.json[at] = {"name": name, "id": at, "runtime_data": data, "primitives": primitives}
        if span is not None:
            self.json[at] |= source_info(span)


def _written(action: ir.Action) -> list[ir.Var]:
    """Return the parameters that the body assigns; BMv2 cannot change action data."""
    targets = {root_variable(place) for stmt in nested(action.body) for place in writes(stmt)}
    return [param for param in action.params if param in targets]


def root_variable(e: ir.Expr) -> ir.Expr:
    """Return the variable that an l-value is part of."""
    while isinstance(e, ir.FieldOf | ir.ElementOf | ir.SliceOf):
        e = e.base
    return e


class Numbers:
    """Numbers of JSON objects that are unique over all pipelines."""

    def __init__(self) -> None:
        self.tables, self.conditions, self.calls = count(), count(), count()
        self.profiles = count()


@dataclass
class _Return:
    """The places that apply a table, and the nodes that follow it at each of them."""

    site: FieldAt
    hit: ir.Var
    action_run: ir.Var
    keys: list[Json]
    sites: list[str | None] = field(default_factory=list)
    wants_hit: bool = False
    wants_action_run: bool = False


class Pipeline:
    """One pipeline, made of a control."""

    def __init__(self, name: str, control: ir.Control, actions: Actions, numbers: Numbers) -> None:
        self._name, self._actions, self._numbers = name, actions, numbers
        self._storage = actions.storage
        self._tables: list[Json] = []
        self._conditions: list[Json] = []
        self._calls: list[Json] = []
        self.profiles: dict[ir.ExternInstance, list[ir.Table]] = {}
        self._ends: dict[ir.Block, str | None] = {}
        self._returns: dict[ir.Table, _Return] = {}
        self._key_fields: dict[ir.Key, FieldAt] = {}
        self._control = control
        applied = (s.table for s in nested(control.body) if isinstance(s, ir.ApplyTable))
        self._sites = Counter(applied)

    def json(self, number: int, extra: PrimitiveWriter | None = None) -> Json:
        """Return the pipeline; `extra` is done at its end."""
        after = None if extra is None else self._call_of(extra, None)
        first = self._graph(self._control.body, after)
        self._shared_tables()
        return {
            "name": self._name,
            "id": number,
            "init_table": first,
            "tables": self._tables,
            "conditionals": self._conditions,
            "action_calls": self._calls,
        } | source_info(self._control.span)

    # -- the graph ------------------------------------------------------------------------------

    def _graph(self, stmts: Sequence[ir.Stmt], after: str | None) -> str | None:
        """Make the nodes of statements, of which the last goes on to `after`; the first's name."""
        end = len(stmts)
        while end:
            start = end
            while start and self._is_code([stmts[start - 1]]):
                start -= 1
            if start < end:
                after = self._call(stmts[start:end], after)
                end = start
            else:
                after = self._node(stmts[end - 1], after)
                end -= 1
        return after

    def _is_code(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Return whether statements have no table and leave no outer block: they fit an action."""
        inside = list(nested(stmts))
        blocks = {s for s in inside if isinstance(s, ir.Block)}
        leaves = (s.block for s in inside if isinstance(s, ir.Leave))
        return not any(isinstance(s, ir.ApplyTable) for s in inside) and all(
            block in blocks for block in leaves
        )

    def _call(self, stmts: Sequence[ir.Stmt], after: str | None) -> str:
        code = self._actions.code()
        code.body(stmts)
        return self._call_of(code, after, stmts[0].span)

    def _call_of(self, code: PrimitiveWriter, after: str | None, span: Span | None = None) -> str:
        at = next(self._numbers.calls)
        what = "act" if span is None or not span.line else f"{self._name}_{span.line}"
        name = f"{what}${at}"
        self._calls.append(
            {
                "name": f"call_{name}",
                "id": at,
                "action_id": self._actions.of_code(name, code),
                "next_node": after,
            }
            | (source_info(span) if span is not None else {})
        )
        return f"call_{name}"

    def _node(self, s: ir.Stmt, after: str | None) -> str | None:
        node: str | None = _NODES[type(s)](self, s, after)
        return node

    def _refused(self, s: ir.Stmt, after: str | None) -> str | None:
        raise refuse(s.span, f"BMv2's pipelines have no {type(s).__name__}")

    def _if(self, s: ir.If, after: str | None) -> str:
        return self._condition(
            Expressions(self._storage, span=s.span).value(s.cond),
            self._graph(s.then, after),
            self._graph(s.other, after),
            s.span,
        )

    def _block(self, s: ir.Block, after: str | None) -> str | None:
        self._ends[s] = after
        return self._graph(s.body, after)

    def _loop(self, s: ir.Loop, after: str | None) -> str:
        """Return the node of a loop with tables, an idle action to which its body goes back."""
        head = self._call_of(self._actions.code(), None, s.span)
        entry = self._calls[-1]
        entry["next_node"] = self._graph(s.body, head)
        return head

    def _condition(self, cond: Json, then: str | None, other: str | None, span: Span) -> str:
        at = next(self._numbers.conditions)
        name = f"node${at}"
        self._conditions.append(
            {"name": name, "id": at, "expression": cond, "true_next": then, "false_next": other}
            | source_info(span)
        )
        return name

    def _switch(self, s: ir.SwitchStmt, after: str | None) -> str | None:
        subject = Expressions(self._storage, span=s.span).value(s.subject)
        following = self._graph(s.default, after)
        for values, body in reversed(s.cases):
            equal = [
                {"type": "expression", "value": {"op": "==", "left": subject, "right": number(v)}}
                for v in values
            ]
            cond = equal[0]
            for more in equal[1:]:
                cond = {"type": "expression", "value": {"op": "or", "left": cond, "right": more}}
            following = self._condition(cond, self._graph(body, after), following, s.span)
        return following

    # -- tables ---------------------------------------------------------------------------------

    def _apply(self, s: ir.ApplyTable, after: str | None) -> str:
        keys, code = self._keys(s.table)
        if self._sites[s.table] == 1 and (s.hit is None or s.action_run is None):
            following = self._next_nodes(s.table, s.hit, s.action_run, after)
            self._tables.append(self._table(s.table, keys, following))
        else:
            after = self._copy_results(s, after)
            self._return_of(s.table, keys).sites.append(after)
            site = len(self._returns[s.table].sites) - 1
            code.set_field(self._returns[s.table].site, number(site))
        first = self._call_of(code, s.table.name, s.span) if code else s.table.name
        if not self._is_code(s.table.key_setup):
            first = self._graph(s.table.key_setup, first) or first
        return first

    def _next_nodes(
        self,
        table: ir.Table,
        hit: ir.LValue | None,
        action_run: ir.LValue | None,
        after: str | None,
    ) -> Json:
        if hit is not None:
            found = self._assignment(hit, True, after)
            return {HIT: found, MISS: self._assignment(hit, False, after)}
        if action_run is None:
            return {choice.action.name: after for choice in table.actions}
        return {
            choice.action.name: self._assignment(action_run, index, after)
            for index, choice in enumerate(table.actions)
        }

    # A table that is applied in several places has one node with one successor: a field records the
    # place beforehand, and a chain of conditions after the table returns to it.

    def _return_of(self, table: ir.Table, keys: list[Json]) -> _Return:
        if table not in self._returns:
            self._returns[table] = _Return(
                self._storage.temporary(Bits(16), f"{table.name}.site"),
                ir.Var(BOOL, f"{table.name}.hit", -1),
                ir.Var(Bits(32), f"{table.name}.action_run", -1),
                keys,
            )
        return self._returns[table]

    def _copy_results(self, s: ir.ApplyTable, after: str | None) -> str | None:
        """Copy the results of a shared table to the variables of one place that applies it."""
        shared = self._return_of(s.table, self._keys(s.table)[0])
        copies: list[ir.Stmt] = []
        if s.hit is not None:
            copies.append(ir.Assign(s.hit, shared.hit))
            shared.wants_hit = True
        if s.action_run is not None:
            copies.append(ir.Assign(s.action_run, shared.action_run))
            shared.wants_action_run = True
        return self._call(copies, after) if copies else after

    def _shared_tables(self) -> None:
        for table, shared in self._returns.items():
            if shared.wants_hit and shared.wants_action_run:
                raise refuse(
                    table.span,
                    f"table {table.name}: BMv2 cannot ask a table for its hit and its action",
                )
            after, place = None, {"type": "field", "value": shared.site.reference}
            for site, target in enumerate(shared.sites):
                here = op("==", place, number(site))
                after = self._condition(here, target, after, table.span) if site else target
            hit = shared.hit if shared.wants_hit else None
            action_run = shared.action_run if shared.wants_action_run else None
            following = self._next_nodes(table, hit, action_run, after)
            self._tables.append(self._table(table, shared.keys, following))

    def _assignment(self, target: ir.LValue, value: int | bool, after: str | None) -> str:
        return self._call([ir.Assign(target, ir.Const(target.type, value))], after)

    def _keys(self, table: ir.Table) -> tuple[list[Json], PrimitiveWriter]:
        """Return the match fields, and the code that computes those that are no header fields."""
        code, keys = self._actions.code(), []
        code.code.span = table.span
        if self._is_code(table.key_setup):
            code.body(table.key_setup)
        for key in table.keys:
            if key.match_kind == "selector":
                continue
            place = code.code.place(key.expr)
            target = place.reference if isinstance(place, FieldAt) else None
            if isinstance(key.expr, ir.IsValid):
                header = code.code.place(key.expr.base)
                target = [header.name, "$valid$"] if isinstance(header, HeaderAt) else None
            if target is None:
                target = self._computed_key(key, code).reference
            kind = "ternary" if key.match_kind == "optional" else key.match_kind
            keys.append({"match_type": kind, "name": key.name, "target": target, "mask": None})
        return keys, code

    def _computed_key(self, key: ir.Key, code: PrimitiveWriter) -> FieldAt:
        """Compute a key in its field, the same one wherever the table is applied."""
        if key not in self._key_fields:
            self._key_fields[key] = self._storage.temporary(key.expr.type, "key")
        code.set_field(self._key_fields[key], code.code.parameter(key.expr))
        return self._key_fields[key]

    def _table(self, table: ir.Table, keys: list[Json], next_nodes: Json) -> Json:
        if table.implementation is not None:
            self.profiles.setdefault(table.implementation, []).append(table)
        actions = [self._actions.of_table(choice.action) for choice in table.actions]
        return table_json(table, next(self._numbers.tables), keys, actions, next_nodes)


_NODES: dict[type[ir.Stmt], Callable[..., str | None]] = by_class(
    ir.Stmt,
    {
        ir.If: Pipeline._if,
        ir.SwitchStmt: Pipeline._switch,
        ir.Block: Pipeline._block,
        ir.Leave: lambda pipeline, s, after: pipeline._ends[s.block],
        ir.Loop: Pipeline._loop,
        ir.ApplyTable: Pipeline._apply,
        (  # code, which actions take or refuse
            ir.Assign, ir.SetValid, ir.Push, ir.Pop, ir.Exit, ir.CallExtern, ir.CallUserExtern,
            ir.Extract, ir.Lookahead, ir.Advance, ir.PacketLength, ir.Verify, ir.Emit,
        ): Pipeline._refused,
    },
)  # fmt: skip
