"""Warnings about what this compiler takes and p4c refuses, or reads otherwise.

The limits of its back ends for BMv2 are looked for in programs of v1model and PSA only. The
warnings' kind is "p4c".

Tables that p4c cannot put into BMv2's graph of tables are among them. There a table has one node,
with one successor for each of its results (p4lang/p4c, backends/bmv2/common/controlFlowGraph.cpp).
It is looked for in the IR, where sub-controls are part of the control that applies them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from gradplane.switch.check import p4c_bmv2
from gradplane.switch.check.checker_types import BlockType, ExternType
from gradplane.switch.check.context import Context
from gradplane.switch.check.expression_text import muted
from gradplane.switch.check.p4c_bmv2 import MISREAD
from gradplane.switch.check.p4c_rules import REFUSED, Found
from gradplane.switch.check.records import CallInfo, Checked
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.walk import blocks, bodies, nested
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

KIND = "p4c"
# Positions among the arguments of V1Switch.
_CHECKSUMS, _DEPARSER = (1, 4), 5
_PIPELINES = {2: "ingress", 3: "egress"}


def warn_p4c(c: Context, program: ast.Program) -> None:
    """Warn of what p4c refuses, each at its place in a declaration of the program."""
    main = main_package(program)
    package = "" if main is None else main.name
    blocks = [] if main is None else blocks_of(main)
    for decl in program.declarations:
        nodes = _code(c.nodes[decl])
        with c.quiet(decl.annotations):
            _report(c, REFUSED.find(nodes))
            if package in ("V1Switch", "PSA_Switch"):
                _report(c, p4c_bmv2.BOTH.find(nodes))
                _report(c, p4c_bmv2.arrays_that_stay(nodes))
            if package == "V1Switch":
                _report(c, _in_v1model(decl, nodes, blocks))
            elif package == "PSA_Switch":
                _report(c, _in_psa(decl, nodes))


def _code(nodes: Sequence[ast.Node]) -> Sequence[ast.Node]:
    """Return the nodes without those of annotations, which p4c does not compile."""
    notes = [node for node in nodes if isinstance(node, ast.Annotation)]
    inside = {id(node) for note in notes for node in walk(note)}
    return [node for node in nodes if id(node) not in inside] if inside else nodes


def _report(c: Context, found: Iterator[Found]) -> None:
    for node, message, hint in found:
        c.warn(node, KIND, message, hint)


def main_package(program: ast.Program) -> CallInfo | None:
    """Return the package that a program instantiates as `main`; None if it has none."""
    mains = [
        d for d in program.declarations if isinstance(d, ast.Instantiation) and d.name == "main"
    ]
    return mains[-1].info if mains else None


def blocks_of(main: CallInfo) -> list[ast.Decl | None]:
    """Return the declarations of the package's blocks."""
    types = (None if arg is None else arg.type for arg in main.args)
    return [t.decl if isinstance(t, BlockType) else None for t in types]


def _in_v1model(
    decl: ast.Decl, nodes: Sequence[ast.Node], blocks: Sequence[ast.Decl | None]
) -> Iterator[Found]:
    yield from p4c_bmv2.V1MODEL.find(nodes)
    yield from p4c_bmv2.loops_outside_actions(nodes)
    yield from p4c_bmv2.different_externs(nodes)
    yield from MISREAD.find(nodes)
    if isinstance(decl, ast.ParserDecl):
        yield from p4c_bmv2.V1MODEL_PARSERS.find(nodes)
    elif isinstance(decl, ast.ControlDecl) and decl in blocks:
        at = blocks.index(decl)
        if at in _PIPELINES:
            yield from p4c_bmv2.of_the_other_control(nodes, _PIPELINES[at])
        elif at == _DEPARSER:
            yield from p4c_bmv2.other_than_calls(decl.body, "a deparser", "emit")
        elif at in _CHECKSUMS:
            what = "verify and update checksums"
            yield from p4c_bmv2.other_than_calls(decl.body, "a checksum block", what)


def _in_psa(decl: ast.Decl, nodes: Sequence[ast.Node]) -> Iterator[Found]:
    yield from p4c_bmv2.PSA.find(nodes)
    if isinstance(decl, ast.ParserDecl):
        yield from p4c_bmv2.PSA_PARSERS.find(nodes)
    elif isinstance(decl, ast.ControlDecl) and any(map(_is_packet_out, decl.params)):
        yield from p4c_bmv2.conditions(nodes)


def _is_packet_out(param: ast.Param) -> bool:
    return isinstance(param.type, ExternType) and param.type.name == "packet_out"


# -- tables -----------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Node:
    """A node of the graph: a table, a condition, or the code between them. next: by result."""

    table: ir.Table | None = None
    next: dict[object, _Node] = field(default_factory=dict)

    def same(self, other: _Node) -> bool:
        """Return whether the same is done here as there."""
        return self is other or (self.table is not None and self.table is other.table)


def warn_tables(program: ir.Program, reporter: Reporter, checked: Checked) -> None:
    """Warn of the tables whose places in a control p4c refuses."""
    refused = [
        found
        for _, block in blocks(program.package)
        if isinstance(block, ir.Control)
        for found in _refused(block)
    ]
    silent = _silent(checked) if refused else ()
    for table, message in refused:
        if table.span not in silent:
            reporter.warning(table.span, message, "apply it in one place", KIND)


def _silent(checked: Checked) -> set[Span]:
    """Return the places of the tables that a @noWarn is for."""
    return {
        node.span
        for decl in checked.program.declarations
        for node in checked.nodes[decl]
        if isinstance(node, ast.TableDecl)
        and KIND in muted(decl.annotations) | muted(node.annotations)
    }


def tables_applied_often(control: ir.Control) -> bool:
    """Return whether some table has more than one place."""
    applied = [s.table for s in nested(control.body) if isinstance(s, ir.ApplyTable)]
    return len(applied) > len(set(applied))


def _refused(control: ir.Control) -> Iterator[tuple[ir.Table, str]]:
    if not tables_applied_often(control):
        return
    graph = _Graph(_idle_copies(control))
    graph.entry(control.body, graph.end)
    for table, sites in graph.sites.items():
        if len(sites) == 1:
            continue
        if any(_reaches(site, table) for site in sites):
            yield table, f"p4c for BMv2: table {table.name} is applied again after itself"
        elif any(not _alike(sites[0], other) for other in sites[1:]):
            yield table, f"p4c for BMv2: table {table.name} is followed by different things"


def _idle_copies(control: ir.Control) -> set[ir.Stmt]:
    """Return the copies of arguments, to and from a sub-control's variables, without which p4c
    does: it puts the arguments in their place if they are the same at all calls."""
    into: dict[ir.Expr, list[tuple[str, ir.Stmt]]] = defaultdict(list)
    back: dict[ir.Expr, list[tuple[str, ir.Stmt]]] = defaultdict(list)
    for stmt in nested(control.body):
        if isinstance(stmt, ir.Assign):
            if isinstance(stmt.target, ir.Var):
                into[stmt.target].append((expression_text(stmt.value), stmt))
            if isinstance(stmt.value, ir.Var):
                back[stmt.value].append((expression_text(stmt.target), stmt))
    differing = {len(copies) for copies in into.values() if len({text for text, _ in copies}) > 1}
    return {
        stmt
        for var, copies in into.items()
        if len(copies) == len(back[var]) and len({text for text, _ in copies + back[var]}) == 1
        if len(copies) not in differing  # else: perhaps arguments of the same calls
        for _, stmt in copies + back[var]
    }


def _reaches(site: _Node, table: ir.Table) -> bool:
    seen: set[_Node] = set()
    pending = [*site.next.values()]
    while pending:
        node = pending.pop()
        if node.table is table:
            return True
        if node not in seen:
            seen.add(node)
            pending += node.next.values()
    return False


def _alike(one: _Node, other: _Node) -> bool:
    """Return whether the same follows two places of a table."""
    first, second = list(one.next.values()), list(other.next.values())
    return all(any(a.same(b) for b in second) for a in first) and all(
        any(a.same(b) for b in first) for a in second
    )


class _Graph:
    """The graph of a control, made from its end."""

    def __init__(self, idle: Collection[ir.Stmt]) -> None:
        self._idle = idle
        self.end = _Node()
        self.sites: dict[ir.Table, list[_Node]] = defaultdict(list)
        self._ends: dict[ir.Block, _Node] = {}

    def entry(self, stmts: Sequence[ir.Stmt], after: _Node) -> _Node:
        """Return the first node of statements, of which the last goes on to `after`."""
        at, is_code = len(stmts), False
        while at:
            at -= 1
            stmt = stmts[at]
            site = stmts[at - 1] if at else None
            if isinstance(site, ir.ApplyTable) and _asks(stmt, site):
                at -= 1
                after, is_code = self._with_keys(site, self._asked(site, stmt, after)), False
            elif type(stmt) in _NODES:
                after, is_code = self._node(stmt, after), False
            elif isinstance(stmt, ir.Exit):
                after, is_code = _Node(next={None: self.end}), True
            elif not is_code and stmt not in self._idle:  # else: a part of the action that follows
                after, is_code = _Node(next={None: after}), True
        return after

    def _node(self, stmt: ir.Stmt, after: _Node) -> _Node:
        return _NODES[type(stmt)](self, stmt, after)

    def _branches(self, stmt: ir.If | ir.SwitchStmt, after: _Node) -> _Node:
        ways = (True, False) if isinstance(stmt, ir.If) else range(len(stmt.cases) + 1)
        entries = [self.entry(body, after) for body in bodies(stmt)]
        return _Node(next=dict(zip(ways, entries, strict=True)))

    def _block(self, stmt: ir.Block, after: _Node) -> _Node:
        self._ends[stmt] = after
        return self.entry(stmt.body, after)

    def _applied(self, stmt: ir.ApplyTable, after: _Node) -> _Node:
        if stmt.hit is None and stmt.action_run is None:
            return self._with_keys(stmt, self._site(stmt.table, {None: after}))
        results: dict[object, _Node] = {at: _Node(next={None: after}) for at in (1, 0)}
        return self._with_keys(stmt, self._site(stmt.table, results))

    def _asked(self, site: ir.ApplyTable, stmt: ir.Stmt, after: _Node) -> _Node:
        """Return the node of a table whose result the statement behind it asks for."""
        return self._site(site.table, self._node(stmt, after).next)

    def _site(self, table: ir.Table, following: dict[object, _Node]) -> _Node:
        node = _Node(table, following)
        self.sites[table].append(node)
        return node

    def _with_keys(self, site: ir.ApplyTable, node: _Node) -> _Node:
        """Return the node of the code that computes a table's keys, if any, before the table."""
        plain = all(isinstance(k.expr, ir.LValue | ir.IsValid) for k in site.table.keys)
        return node if plain and not site.table.key_setup else _Node(next={None: node})


def _asks(stmt: ir.Stmt, site: ir.ApplyTable) -> bool:
    """Return whether a statement branches on the result of a table."""
    if isinstance(stmt, ir.If):
        cond = stmt.cond.operand if isinstance(stmt.cond, ir.Unary) else stmt.cond
        return site.hit is not None and cond is site.hit
    return (
        isinstance(stmt, ir.SwitchStmt)
        and site.action_run is not None
        and stmt.subject is site.action_run
    )


_NODES: dict[type[ir.Stmt], Callable[..., _Node]] = by_class(
    ir.Stmt,
    {
        (ir.If, ir.SwitchStmt): _Graph._branches,
        ir.Block: _Graph._block,
        ir.Leave: lambda graph, stmt, after: graph._ends[stmt.block],
        ir.Loop: lambda graph, stmt, after: graph.entry(stmt.body, after),
        ir.ApplyTable: _Graph._applied,
    },
    without=(
        ir.Assign, ir.SetValid, ir.Push, ir.Pop, ir.Exit, ir.CallExtern, ir.CallUserExtern,
        ir.Extract, ir.Lookahead, ir.Advance, ir.PacketLength, ir.Verify, ir.Emit,
    ),
)  # fmt: skip
"""The node of a statement that is more than code: a condition, a table, or the way out."""
