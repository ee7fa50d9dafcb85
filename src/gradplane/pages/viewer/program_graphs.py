"""A program as graphs, and the page that has them beside its source.

The graphs are the states of its parsers, the tables and conditions of its controls, and the path of
a packet through its architecture.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from gradplane.pages.kit import render
from gradplane.switch.arch.registry import packet_path, path_lines
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import NUMBER, expression_text, match_text
from gradplane.switch.ir.walk import blocks, nested
from gradplane.switch.machine.weaving import BLOCK_CALLS, block_of
from gradplane.switch.source import Span

Kind = Literal["end", "state", "table", "condition", "block", "step"]


@dataclass(frozen=True, slots=True)
class Node:
    """A box. lines: below its title. span: its place in the source; None for an end.

    tables: control-plane names, of several tables where these are applied one after the other and
    differ in nothing but the number in their names.
    """

    key: str
    kind: Kind
    title: str
    lines: tuple[str, ...] = ()
    span: Span | None = None
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow between the nodes of two keys."""

    source: str
    target: str
    label: str = ""


@dataclass(slots=True)
class Graph:
    """The graph of one parser or control, or of a part of the packet's path; block: its parameter
    in the package, or the part."""

    block: str
    name: str
    kind: Literal["parser", "control", "path"]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def graphs(program: ir.Program) -> list[Graph]:
    """Return a graph for each parser and for each control that applies a table, in their order."""
    found = []
    for block, body in blocks(program.package):
        if isinstance(body, ir.Parser):
            found.append(_parser_graph(block, body))
        elif _applies(body.body):
            found.append(_ControlGraph(block, body).graph)
    return found


def path_graphs(program: ir.Program) -> list[Graph]:
    """Return a graph for each part of the path that a packet takes through the program's
    architecture; none where that is no text."""
    text = packet_path(program)
    if text is None:
        return []
    packages = _packages(program.package, text.controls["ingress"])
    return [
        _PathGraph(part, package, prefix).graph
        for prefix, package in packages
        for part in _parts(text.controls)
    ]


def _packages(package: ir.Package, part: ir.Control) -> list[tuple[str, ir.Package]]:
    """Return the packages whose blocks a path runs, each with its name: the program's own or, where
    that has pipelines, each of these."""
    calls = (s for s in nested(part.body) if isinstance(s, ir.CallExtern))
    first = next(call.args[0] for call in calls if call.name in BLOCK_CALLS)
    if isinstance(first, ir.Const) and str(first.value).split(".")[0] in package.args:
        return [("", package)]
    inner = dict.fromkeys(p for p in package.args.values() if isinstance(p, ir.Package))
    return [(f"{p.name}-" if len(inner) > 1 else "", p) for p in inner]


def _parts(controls: Mapping[str, ir.Control]) -> list[ir.Control]:
    """Return the parts of a path: both entry points, and what they call."""
    names = [name for name in PATH_PARTS if name in controls]
    for name in names:
        for stmt in nested(controls[name].body):
            if isinstance(stmt, ir.CallExtern) and stmt.name == "call":
                called = stmt.args[0]
                if isinstance(called, ir.Const) and called.value not in names:
                    names.append(str(called.value))
    return [controls[name] for name in names]


def _parser_graph(block: str, parser: ir.Parser) -> Graph:
    graph = Graph(block, parser.name, "parser")
    for state in parser.states.values():
        lines = [f"extract {expression_text(s.target)}" for s in _extracts(state.body)]
        if state.select:
            lines.append(f"select {', '.join(map(_text, state.select))}")
        graph.nodes.append(Node(state.name, "state", state.name, tuple(lines), state.span))
        cases: dict[str, list[str]] = {}
        for case in state.cases:
            labels = cases.setdefault(case.next, [])
            if state.select:
                labels.append(_plain(", ".join(map(match_text, case.matches))))
        graph.edges += [Edge(state.name, to, _listed(labels)) for to, labels in cases.items()]
    ends = dict.fromkeys(e.target for e in graph.edges if e.target not in parser.states)
    graph.nodes += [Node(name, "end", name) for name in ends]
    return graph


def _plain(text: str) -> str:
    """Return a text of the IR's printer without the types of constants, large ones in hex, too."""
    if set(text) <= set("_, "):
        return "default"
    return NUMBER.sub(lambda found: _number(int(found[1])), text)


def _number(value: int) -> str:
    return str(value) if value < 256 else f"{value} ({value:#x})"


def _text(expression: ir.Expr) -> str:
    return _plain(expression_text(expression))


def _extracts(body: Sequence[ir.Stmt]) -> list[ir.Extract]:
    return [stmt for stmt in nested(body) if isinstance(stmt, ir.Extract)]


_MOST_LABELS = 4


def _listed(labels: list[str]) -> str:
    """Join the matches that lead to one state; only the first few, for there may be hundreds."""
    shown = labels[:_MOST_LABELS]
    more = [f"and {len(labels) - len(shown)} more"] if len(labels) > len(shown) else []
    return "\n".join(shown + more)


def _applies(body: Iterable[ir.Stmt]) -> bool:
    return any(isinstance(stmt, ir.ApplyTable) for stmt in nested(body))


Exits = list[tuple[str, str]]
"""Where control leaves: keys of nodes, each with the label of the edge that goes on from there."""


class _ControlGraph:
    """Follows a control's statements; those that neither apply a table nor decide on one are left
    out."""

    kind: Literal["control", "path"] = "control"

    def __init__(self, block: str, control: ir.Control) -> None:
        self.graph = Graph(block, control.name, self.kind)
        self._left: dict[ir.Block, Exits] = {}  # ways out of blocks that Leave jumps to the end of
        self._ended: Exits = []  # by `exit`
        self._applied: ir.ApplyTable | None = None  # the table whose result may be decided on
        self._add(Node("start", "end", "start"))
        ends = self._body(control.body, [("start", "")]) + self._ended
        self._add(Node("end", "end", "end"))
        self._join(ends, "end")

    def _add(self, node: Node) -> None:
        self.graph.nodes.append(node)

    def _join(self, exits: Exits, target: str) -> None:
        for source, label in dict.fromkeys(exits):
            self.graph.edges.append(Edge(source, target, label))

    def _new(self, exits: Exits, node: Node) -> None:
        self._add(node)
        self._join(exits, node.key)

    def _key(self) -> str:
        return f"n{len(self.graph.nodes)}"

    def _body(self, body: Iterable[ir.Stmt], exits: Exits) -> Exits:
        for stmt in body:
            if not exits:
                break
            exits = self._statement(stmt, exits)
        return exits

    def _statement(self, stmt: ir.Stmt, exits: Exits) -> Exits:
        match stmt:
            case ir.ApplyTable():
                return self._table(stmt, exits)
            case ir.If() if self._shown(stmt):
                return self._if(stmt, exits)
            case ir.SwitchStmt() if self._shown(stmt):
                return self._switch(stmt, exits)
            case ir.Block():
                self._left[stmt] = []
                return self._body(stmt.body, exits) + self._left.pop(stmt)
            case ir.Loop():
                return self._body(stmt.body, exits)
            case ir.Leave():
                self._left[stmt.block] += exits
                return []
            case ir.Exit():
                self._ended += exits
                return []
        return exits

    def _shown(self, stmt: ir.Stmt) -> bool:
        """Return whether a decision is part of the graph: it leads to tables, or out of a block."""
        return any(isinstance(s, ir.ApplyTable | ir.Exit | ir.Leave) for s in nested([stmt]))

    def _table(self, stmt: ir.ApplyTable, exits: Exits) -> Exits:
        table = stmt.table
        keys = [f"{key.name}: {key.match_kind}" for key in table.keys] or ["no key"]
        size = (
            f"{len(table.entries)} const entries" if table.const_entries else f"size {table.size}"
        )
        name = table.name.rpartition(".")[2]
        self._applied = stmt
        node = Node(self._key(), "table", name, (*keys, size), table.span, (table.name,))
        last = self.graph.nodes[-1]
        if self._comes_from_table(exits) and _alike(last, node):
            first = last.title.partition(" ")[0]
            self.graph.nodes[-1] = replace(
                last, title=f"{first} to {name}", tables=(*last.tables, table.name)
            )
            return exits
        self._new(exits, node)
        return [(node.key, "")]

    def _if(self, stmt: ir.If, exits: Exits) -> Exits:
        labels = self._hit_labels(stmt.cond, exits)
        if labels is None:
            key = self._key()
            self._new(exits, Node(key, "condition", _text(stmt.cond), span=stmt.span))
            ways: tuple[Exits, Exits] = [(key, "true")], [(key, "false")]
        else:
            table = exits[0][0]
            ways = [(table, labels[0])], [(table, labels[1])]
        return self._body(stmt.then, ways[0]) + self._body(stmt.other, ways[1])

    def _hit_labels(self, cond: ir.Expr, exits: Exits) -> tuple[str, str] | None:
        """Return the labels of both ways if the condition is the last table's hit, else None."""
        applied = self._applied
        if applied is None or applied.hit is None or not self._comes_from_table(exits):
            return None
        hit = expression_text(applied.hit)
        text = expression_text(cond)
        if text == hit:
            return "hit", "miss"
        return ("miss", "hit") if text in (f"!{hit}", f"!({hit})") else None

    def _comes_from_table(self, exits: Exits) -> bool:
        last = self.graph.nodes[-1]
        return exits == [(last.key, "")] and last.kind == "table"

    def _switch(self, stmt: ir.SwitchStmt, exits: Exits) -> Exits:
        names = self._action_names(stmt.subject, exits)
        if names is None:
            key = self._key()
            self._new(exits, Node(key, "condition", _text(stmt.subject), span=stmt.span))
        else:
            key = exits[0][0]
        out: Exits = []
        for values, body in stmt.cases:
            label = "\n".join(names[v] if names else str(v) for v in values)
            out += self._body(body, [(key, label)])
        return out + self._body(stmt.default, [(key, "otherwise")])

    def _action_names(self, subject: ir.Expr, exits: Exits) -> list[str] | None:
        """Return the actions by position if the subject is the last table's action, else None."""
        applied = self._applied
        if applied is None or applied.action_run is None or not self._comes_from_table(exits):
            return None
        if expression_text(subject) != expression_text(applied.action_run):
            return None
        return [ref.action.name.rpartition(".")[2] for ref in applied.table.actions]


def _alike(a: Node, b: Node) -> bool:
    """Return whether two tables differ in nothing but the number in their names."""
    names = [re.sub(r"\d+", "", node.tables[0]) for node in (a, b)]
    return names[0] == names[1] != b.tables[0] and a.lines == b.lines


PATH_PARTS = ("ingress", "egress")
_STEPS = {
    "send": "send to port {}", "drop": "drop", "again": "process again",
    "depart": "to egress, port {}", "enqueue": "a copy to egress, port {}",
    "members": "multicast group {}", "session": "clone session {}", "call": "{}",
}  # fmt: skip
"""The drawings' texts for primitives: {} stands for the first argument."""


class _PathGraph(_ControlGraph):
    """Follows a part of a path: the blocks that run, and what becomes of the packet."""

    kind = "path"

    def __init__(self, part: ir.Control, package: ir.Package, prefix: str = "") -> None:
        self._package = package
        super().__init__(f"path-{prefix}{part.name}", part)
        self.graph.name = f"the packet's path: {prefix}{part.name}"

    def _statement(self, stmt: ir.Stmt, exits: Exits) -> Exits:
        node = self._step(stmt) if isinstance(stmt, ir.CallExtern) else None
        if node is None:
            return super()._statement(stmt, exits)
        self._new(exits, node)
        return [(node.key, "")]

    def _step(self, call: ir.CallExtern) -> Node | None:
        """Return the box of a call; None if it is not drawn."""
        if call.name not in (*BLOCK_CALLS, *_STEPS):
            return None
        first = call.args[0] if call.args else None
        told = str(first.value) if isinstance(first, ir.Const) else _text(first) if first else ""
        if call.name in BLOCK_CALLS:
            there = told.split(".")[0] in self._package.args
            name = block_of(self._package, told).name if there else told
            return Node(self._key(), "block", name, (told,), call.span)
        lines = (told,) if call.name == "drop" else ()
        return Node(self._key(), "step", _STEPS[call.name].format(told), lines, call.span)

    def _shown(self, stmt: ir.Stmt) -> bool:
        drawn = (*BLOCK_CALLS, *_STEPS)
        calls = (s for s in nested([stmt]) if isinstance(s, ir.CallExtern))
        return super()._shown(stmt) or any(call.name in drawn for call in calls)


# Drawing: Graphviz places the nodes, the page's style sheet colours them.

_LONGEST_TITLE = 48
_SHAPES = {"end": "plaintext"}  # others are boxes
_LARGEST_SECONDS = 60


class DrawingError(Exception):
    """Graphviz is missing, or does not draw the graph; the message says what to do."""


def dot_text(graph: Graph, address: Callable[[Node], str] = lambda node: "") -> str:
    """Return the graph in Graphviz's language. address: what a click on a node opens, "" nothing.

    Nodes have their kind as class and an id of their own, for style sheets and scripts.
    """
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        'graph [rankdir=TB, nodesep=0.3, ranksep=0.4, bgcolor="transparent"]',
        'node [fontname="sans-serif", fontsize=11, margin="0.12,0.06"]',
        'edge [fontname="sans-serif", fontsize=10]',
    ]
    for node in graph.nodes:
        text = _quoted("\n".join((_short(node.title), *map(_short, node.lines))))
        values = {
            "label": text,
            "shape": _SHAPES.get(node.kind, "box"),
            "class": _quoted(node.kind),
            "id": _quoted(f"{graph.block}-{node.key}"),
            "tooltip": _quoted("\n".join((node.title, *node.lines))),
        }
        if node.kind == "condition":
            values["style"] = "rounded"
        if link := address(node):
            values["URL"] = _quoted(link)
        lines.append(f"{_quoted(node.key)} [{_attributes(values)}]")
    for edge in graph.edges:
        values = {"label": _quoted(edge.label)} if edge.label else {}
        lines.append(f"{_quoted(edge.source)} -> {_quoted(edge.target)} [{_attributes(values)}]")
    return "\n".join([*lines, "}"]) + "\n"


def svg(graph: Graph, address: Callable[[Node], str] = lambda node: "") -> str:
    """Return the drawing as an <svg> element. Raises DrawingError."""
    try:
        drawn = subprocess.run(
            ["dot", "-Tsvg"],
            input=dot_text(graph, address),
            capture_output=True,
            text=True,
            timeout=_LARGEST_SECONDS,
        )
    except FileNotFoundError as error:
        text = "the graphs are placed by Graphviz's dot, which is not on PATH: apt-get install"
        raise DrawingError(f"{text} graphviz") from error
    except subprocess.TimeoutExpired as error:
        text = f"dot takes more than {_LARGEST_SECONDS} s for {graph.name}"
        raise DrawingError(f"{text}: use --dot, and another of Graphviz's programs") from error
    if drawn.returncode:
        raise DrawingError(f"dot does not draw {graph.name}: {drawn.stderr.strip()}")
    text = drawn.stdout[drawn.stdout.index("<svg") :]
    return re.sub(r'<polygon fill="(none|transparent)" stroke="(none|transparent)".*?/>', "", text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else text[: _LONGEST_TITLE - 1] + "…"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _attributes(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def page(
    program: ir.Program,
    lines: Mapping[str, Sequence[str]],
    name: str,
    live: str = "",
    stepping: bool = False,
) -> str:
    """Return the page as HTML that needs nothing else.

    lines: those of each source file. name: of the program. live: the address of the switch whose
    tables a server of the page shows (program_server); stepping: a server takes packets from the
    page. Raises DrawingError.
    """
    found = [*graphs(program), *path_graphs(program)]
    lines = {**lines, **path_lines(program)}
    files = _files(found, lines)

    def address(node: Node) -> str:
        if node.span is None or node.span.file not in files:
            return ""
        return f"#f{files.index(node.span.file)}-{node.span.line}"

    return render(
        "program.html",
        {
            "title": name,
            "live": live,
            "stepping": stepping,
            "graphs": [_drawn(graph, Markup(svg(graph, address))) for graph in found],
            "files": [(i, Path(file).name, lines[file]) for i, file in enumerate(files)],
            "tables": [_row(table) for table in program.tables],
        },
    )


def page_files(program: ir.Program, lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the files whose lines a program's page has, in its order."""
    found = [*graphs(program), *path_graphs(program)]
    return _files(found, {**lines, **path_lines(program)})


def _files(found: Sequence[Graph], lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the files that have a node's place, in the order of the nodes."""
    spans = [node.span for graph in found for node in graph.nodes if node.span is not None]
    return [file for file in dict.fromkeys(span.file for span in spans) if file in lines]


def _drawn(graph: Graph, drawing: Markup) -> dict[str, Any]:
    kinds = [node.kind for node in graph.nodes]
    tables = sum(len(node.tables) for node in graph.nodes)
    if graph.kind == "parser":
        size = _count(kinds.count("state"), "state")
    elif graph.kind == "path":
        size = f"{_count(kinds.count('block'), 'block')}, {_count(kinds.count('step'), 'step')}"
    else:
        size = f"{_count(tables, 'table')}, {_count(kinds.count('condition'), 'condition')}"
    return {"graph": graph, "drawing": drawing, "size": size}


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _row(table: ir.Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "keys": ", ".join(f"{key.name} ({key.match_kind})" for key in table.keys),
        "actions": ", ".join(ref.action.name.rpartition(".")[2] for ref in table.actions),
        "size": len(table.entries) if table.const_entries else table.size,
        "const": table.const_entries,
    }
