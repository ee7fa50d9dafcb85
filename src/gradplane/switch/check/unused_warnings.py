"""Warnings about declarations that are never used and `out` parameters that are never set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradplane.switch.check.checker_types import BlockType, TypeName
from gradplane.switch.check.type_resolution import leaves
from gradplane.switch.check.uninitialized_warnings import holds_header, writes
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

_BLOCKS = (ast.ParserDecl, ast.ControlDecl)
_CODE = (ast.FunctionDecl, ast.ActionDecl, *_BLOCKS)


def warn_unused(c: Checker, program: ast.Program) -> None:
    """Check the main file only: declarations in included files may be used by others."""
    used = _used(c.all_nodes())
    complete = any(d.name == "main" for d in program.declarations)
    for decl in program.declarations:
        if decl.span.file != program.span.file or not isinstance(decl, _CODE):
            continue
        with c.quiet(decl.annotations):
            if complete and decl not in used:
                _say(c, decl)
            _unset_outs(c, decl)
            for member in _locals(c, decl):
                if member not in used:
                    with c.quiet(member.annotations):
                        _say(c, member)
            if isinstance(decl, ast.ControlDecl):
                for action in decl.locals:
                    if isinstance(action, ast.ActionDecl):
                        _unset_outs(c, action)


def _say(c: Checker, decl: ast.Decl) -> None:
    place, what = decl.name_span or decl.span, f"{_NAMES[type(decl)]} {decl.name}"
    done = "applied" if isinstance(decl, ast.TableDecl) else "used"
    c.warn_at(place, "unused", f"{what} is never {done}")


_NAMES: dict[type[ast.Decl], str] = {
    ast.ActionDecl: "action",
    ast.ControlDecl: "control",
    ast.FunctionDecl: "function",
    ast.Instantiation: "instance",
    ast.ParserDecl: "parser",
    ast.TableDecl: "table",
    ast.ValueSetDecl: "value set",
    ast.VarDecl: "variable",
}


def _locals(c: Checker, decl: ast.Decl) -> Sequence[ast.Decl]:
    """Return its declarations of the kinds in _NAMES, at any depth."""
    nodes = [n for n in c.nodes[decl] if isinstance(n, ast.ForIn) or type(n) in _NAMES]
    found = [n for n in nodes if isinstance(n, ast.Decl)]
    loops = {id(n.var) for n in nodes if isinstance(n, ast.ForIn)}
    return [n for n in found if n is not decl and id(n) not in loops and not _method(n)]


def _method(decl: ast.Decl) -> bool:
    """Return whether it implements an abstract method, which the architecture may call."""
    return isinstance(decl, ast.FunctionDecl)


def _used(nodes: Iterable[ast.Node]) -> set[ast.Decl]:
    used: set[ast.Decl] = set()
    for node in nodes:
        if type(node) is ast.ActionRef:  # first, since large tables have many
            if node.info is not None:
                used.add(node.info.decl)
            continue
        match node:
            case ast.Name(decl=ast.Decl() as decl):
                used.add(decl)
            case ast.TypeExpr() | ast.Instantiation():
                denoted = node.type.denoted if isinstance(node.type, TypeName) else node.type
                if isinstance(denoted, BlockType) and denoted.decl is not None:
                    used.add(denoted.decl)
        if isinstance(node, ast.Call) and node.info is not None and node.info.decl is not None:
            used.add(node.info.decl)
    return used


def _unset_outs(c: Checker, decl: ast.Decl) -> None:
    params: list[ast.Param] = getattr(decl, "params", [])
    outs = [p for p in params if p.direction == "out" and p.type is not None]
    if not outs or getattr(decl, "body", True) is None:
        return
    written = {name.decl for name in writes(decl)}
    for p in outs:
        assert p.type is not None
        if p not in written and not holds_header(p.type) and leaves(p.type):
            with c.quiet([*decl.annotations, *p.annotations]):
                what = f"{p.name} is an out parameter and is never given a value"
                c.warn(p, "uninitialized_out_param", what)
