"""Drawing a graph as SVG: Graphviz places it, the page's style sheet colours it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any

from gradplane.pages.viewer.program_graphs import Graph, Node

_LONGEST_TITLE = 48
_SHAPES = {"end": "plaintext", "state": "box", "table": "box", "condition": "box"}
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
            "shape": _SHAPES[node.kind],
            "class": _quoted(node.kind),
            "id": _quoted(f"{graph.block}-{node.key}"),
            "tooltip": _quoted("\n".join((node.title, *node.lines))),
        }
        if node.kind == "condition":
            values["style"] = "rounded"
        if link := address(node):
            values["URL"] = _quoted(link)
        lines.append(f"{_quoted(node.key)} [{_listed(values)}]")
    for edge in graph.edges:
        values = {"label": _quoted(edge.label)} if edge.label else {}
        lines.append(f"{_quoted(edge.source)} -> {_quoted(edge.target)} [{_listed(values)}]")
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


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
