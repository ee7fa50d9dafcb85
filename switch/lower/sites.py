"""Counting, over the whole syntax tree, how many places apply each parser or control instance."""

from __future__ import annotations

from collections import Counter

from gradplane.switch.check.tree import walk
from gradplane.switch.syntax import ast


def apply_sites(program: ast.Program) -> Counter[ast.Decl]:
    """How many `instance.apply(...)` there are for each Instantiation (or parameter)."""
    count: Counter[ast.Decl] = Counter()
    for node in walk(program.declarations):
        if isinstance(node, ast.Call) and node.info is not None and node.info.kind == "block":
            base = node.info.base
            if isinstance(base, ast.Name) and isinstance(base.decl, ast.Decl):
                count[base.decl] += 1
    return count
