"""Traverse the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from gradplane.switch.syntax import ast

_NO_NODES = {"str", "bool", "int", "int | None", "Span", "Span | None", "list[str]"}


def walk(tree: object) -> Iterator[ast.Node]:
    """Yield every node of a tree, or of a list of trees, parents first.

    Table entries of integers alone are left out: large tables have many of them.
    """
    pending: list[Any] = [tree]
    pop, push, known = pending.pop, pending.append, _CHILDREN
    while pending:
        item = pop()
        kind = type(item)
        if kind is list or kind is tuple:
            pending += item[::-1]
            continue
        if kind is ast.TableEntry and item.plain:
            continue
        names = known.get(kind)
        if names is None:
            if not isinstance(item, ast.Node):
                continue
            names = _children(kind)
        yield item
        for name in names:
            child = getattr(item, name)
            if child is not None:
                push(child)


_CHILDREN: dict[type[ast.Node], tuple[str, ...]] = {}


def _children(kind: type[ast.Node]) -> tuple[str, ...]:
    """Return the attributes that can hold nodes, last first.

    Fields set by the checker refer to other parts of the tree and are left out.
    """
    names = tuple(f.name for f in fields(kind) if f.init and f.type not in _NO_NODES)[::-1]
    _CHILDREN[kind] = names
    return names
