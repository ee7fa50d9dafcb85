"""Warnings about variables that are read before they can have been given a value.

The analysis is simple and conservative: anything an earlier statement may have written, on any
path, counts as written, and so does, within a loop, anything the loop writes later. A variable of a
whole parser or control is only reported if nothing in it ever writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.lvalues import root
from gradplane.switch.ir.types import Header, Stack, Struct, Type, Union
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

_SETTERS = {"setValid", "setInvalid", "push_front", "pop_front"}


def warn_unset(c: Checker, program: ast.Program) -> None:
    """Check every body of a checked program."""
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            _warn_in(c, decl)


def _warn_in(c: Checker, decl: ast.Decl) -> None:
    match decl:
        case ast.FunctionDecl(body=ast.Block(body=body)) | ast.ActionDecl(body=body):
            _Body(c, ()).statements([body] if isinstance(body, ast.Block) else body)
        case ast.ControlDecl(locals=members):
            bodies: list[Sequence[ast.Stmt]] = [[decl.body]]
            bodies += [[m.body] for m in members if isinstance(m, ast.ActionDecl)]
            _block(c, members, bodies)
        case ast.ParserDecl(locals=members, states=states):
            _block(c, members, [s.body for s in states], [s.transition for s in states])


def _block(
    c: Checker,
    members: Sequence[ast.Decl],
    bodies: Sequence[Sequence[ast.Stmt]],
    others: Sequence[object] = (),
) -> None:
    unset = {m for m in members if isinstance(m, ast.VarDecl) and _starts_unset(m)}
    if unset:
        unset -= {name.decl for name in writes([*members, *bodies])}
    for body in bodies:
        _Body(c, unset).statements(body)
    tables = [m for m in members if isinstance(m, ast.TableDecl)]
    _Body(c, unset).reads([*tables, *others])


def _starts_unset(decl: ast.VarDecl) -> bool:
    """Return whether variables of this type start undefined; headers start invalid."""
    return decl.init is None and decl.type is not None and not holds_header(decl.type)


def holds_header(t: Type) -> bool:
    if isinstance(t, Struct):
        return any(holds_header(f.type) for f in t.fields)
    return isinstance(t, Header | Union | Stack)


class _Body:
    """Follows statements in order; `unset` holds the variables that nothing has written yet."""

    def __init__(self, c: Checker, unset: Iterable[ast.VarDecl]) -> None:
        self.c = c
        self.unset: set[ast.Decl] = set(unset)

    def statements(self, statements: Sequence[ast.Stmt | None]) -> None:
        for s in statements:
            self._statement(s)

    def _statement(self, s: ast.Stmt | None) -> None:
        match s:
            case ast.Block(body=body):
                self.statements(body)
            case ast.If(cond=cond, then=then, other=other):
                self.reads(cond)
                self.statements([then, other])
            case ast.SwitchStmt(subject=subject, cases=cases):
                self.reads(subject)
                self.statements([case.body for case in cases])
            case ast.For() | ast.ForIn():
                self._wrote(writes(s))
                self.reads(s)
            case ast.DeclStmt(decl=ast.VarDecl() as decl) if _starts_unset(decl):
                self.unset.add(decl)
            case None:
                return
            case _:
                self.reads(s)
                if self.unset:
                    self._wrote(writes(s))

    def reads(self, tree: object) -> None:
        """Warn of unset variables read in a part of the tree, once for each variable."""
        if not self.unset:
            return
        targets = {id(name) for name in _targets(tree)}
        for node in walk(tree):
            if not isinstance(node, ast.Name) or id(node) in targets:
                continue
            if isinstance(node.decl, ast.VarDecl) and node.decl in self.unset:
                what = f"{node.name} is read before it is given a value"
                self.c.warn(node, "uninitialized_use", what)
                self.unset.discard(node.decl)

    def _wrote(self, names: Iterable[ast.Name]) -> None:
        self.unset -= {name.decl for name in names}


def writes(tree: object) -> Iterator[ast.Name]:
    """Return the names that are assigned, passed as out or inout, or set valid."""
    for node in walk(tree):
        match node:
            case ast.Assign(target=target) | ast.ForIn(var=ast.Expr() as target):
                yield from _root_name(target)
            case ast.Call(info=info) if info is not None:
                for arg, param in zip(info.args, info.signature.params, strict=False):
                    if arg is not None and param.direction in ("out", "inout"):
                        yield from _root_name(arg)
                if info.kind == "builtin" and info.name in _SETTERS:
                    yield from _root_name(info.base)
            case ast.ActionRef(info=info) if info is not None:
                for arg in info.bound:
                    yield from _root_name(arg)


def _targets(tree: object) -> Iterator[ast.Name]:
    """Yield the names that are not read: those written or asked for a size.

    The target of a compound assignment is read.
    """
    compound = [n for n in walk(tree) if isinstance(n, ast.Assign) and n.op != "="]
    read = {id(name) for n in compound for name in _root_name(n.target)}
    yield from (name for name in writes(tree) if id(name) not in read)
    for node in walk(tree):
        if isinstance(node, ast.Call) and node.const is not None and node.info is not None:
            yield from _root_name(node.callee)


def _root_name(e: ast.Expr) -> Iterator[ast.Name]:
    found = root(e)
    if isinstance(found, ast.Name):
        yield found
