"""Uses of parsers and controls, and declarations of extern functions, in the syntax tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gradplane.switch.syntax import ast


def apply_sites(nodes: Iterable[ast.Node]) -> Counter[ast.Decl]:
    """Count the `instance.apply(...)` of each Instantiation (or parameter)."""
    count: Counter[ast.Decl] = Counter()
    for node in nodes:
        if isinstance(node, ast.Call) and node.info is not None and node.info.kind == "block":
            base = node.info.base
            if isinstance(base, ast.Name) and isinstance(base.decl, ast.Decl):
                count[base.decl] += 1
    return count


def used_blocks(nodes: Iterable[ast.Node]) -> set[ast.Decl]:
    """Return the parsers and controls that are instantiated or applied somewhere."""
    used: set[ast.Decl] = set()
    for node in nodes:
        info = node.info if isinstance(node, ast.Call | ast.Instantiation) else None
        if info is not None and info.kind in ("constructor", "block") and info.decl is not None:
            used.add(info.decl)
    return used


def functions_beside_package(program: ast.Program) -> dict[str, list[ast.Decl]]:
    """Return the extern functions, by name, of the file that declares the package of `main`."""
    instances = [d for d in program.declarations if isinstance(d, ast.Instantiation)]
    files = {d.info.decl.span.file for d in instances if d.name == "main"}
    found: dict[str, list[ast.Decl]] = {}
    for decl in program.declarations:
        if isinstance(decl, ast.FunctionDecl) and decl.span.file in files:
            found.setdefault(decl.name, []).append(decl)
    return found
