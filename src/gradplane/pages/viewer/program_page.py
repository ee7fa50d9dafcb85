"""The page of a P4 program: its graphs, beside its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gradplane.pages.kit import render
from gradplane.pages.viewer.program_graphs import Graph, Node, graphs, svg
from gradplane.switch.ir import nodes as ir


def page(program: ir.Program, lines: Mapping[str, Sequence[str]], name: str, live: str = "") -> str:
    """Return the page as HTML that needs nothing else.

    lines: those of each source file. name: of the program. live: the address of the switch whose
    tables a server of the page shows (program_server). Raises DrawingError.
    """
    found = graphs(program)
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
            "graphs": [_drawn(graph, Markup(svg(graph, address))) for graph in found],
            "files": [(i, Path(file).name, lines[file]) for i, file in enumerate(files)],
            "tables": [_row(table) for table in program.tables],
        },
    )


def _files(found: Sequence[Graph], lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the files that have a node's place, in the order of the nodes."""
    spans = [node.span for graph in found for node in graph.nodes if node.span is not None]
    return [file for file in dict.fromkeys(span.file for span in spans) if file in lines]


def _drawn(graph: Graph, drawing: Markup) -> dict[str, Any]:
    kinds = [node.kind for node in graph.nodes]
    tables = sum(len(node.tables) for node in graph.nodes)
    if graph.kind == "parser":
        size = _count(kinds.count("state"), "state")
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
