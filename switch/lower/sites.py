"""Counting, over the whole syntax tree, how many places apply each parser or control instance."""

from __future__ import annotations

from collections import Counter
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


def apply_sites(program: ast.Program) -> Counter[ast.Decl]:
    """How many `instance.apply(...)` there are for each Instantiation (or parameter)."""
    count: Counter[ast.Decl] = Counter()
    for node in walk(program.declarations):
        if isinstance(node, ast.Call) and node.info is not None and node.info.kind == "block":
            base = node.info.base
            if isinstance(base, ast.Name) and isinstance(base.decl, ast.Decl):
                count[base.decl] += 1
    return count
