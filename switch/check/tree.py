"""Walking the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from gradplane.switch.syntax import ast


def walk(node: object) -> Iterator[ast.Node]:
    """Every node of a tree, parents first."""
    if isinstance(node, list | tuple):
        for item in node:
            yield from walk(item)
    elif isinstance(node, ast.Node) and is_dataclass(node):
        yield node
        for f in fields(node):
            if f.init:  # what the checker set points elsewhere
                yield from walk(getattr(node, f.name))
