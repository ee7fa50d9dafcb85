"""Warnings about headers whose fields are used although they are never made valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradplane.switch.ir.types import Fields, Header, Stack, Struct, Type, Union
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

Member = tuple[str, str]  # (struct or union, field): where a header is, in any such struct


def warn_never_valid(c: Checker, program: ast.Program) -> None:
    """Warn of headers that are used and never made valid.

    A header is made valid by extract, setValid, an assignment or as an out or inout argument, by
    itself or as part of a larger value.
    """
    made = {m for e in _makers(c) for m in _made(e)}
    warned: set[Member] = set()
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            _warn_in(c, decl, made, warned)


def _warn_in(c: Checker, decl: ast.Decl, made: set[Member], warned: set[Member]) -> None:
    for node in c.nodes[decl]:
        if isinstance(node, ast.Member) and isinstance(node.base.type, Header):
            for place in _places(node.base):
                if place not in made | warned and not _is_method(node):
                    warned.add(place)
                    c.warn(
                        node,
                        "invalid_header",
                        f"header {place[1]} is used but never made valid",
                        "it is never extracted, assigned or setValid()",
                    )


def _is_method(e: ast.Member) -> bool:
    return not isinstance(e.base.type, Fields) or e.base.type.index(e.name) is None


def _makers(c: Checker) -> Iterator[ast.Expr]:
    """Yield the l-values that a valid header may be stored in."""
    for node in c.all_nodes():
        match node:
            case ast.Assign(target=target):
                yield target
            case ast.VarDecl(init=ast.Expr() as init):
                yield init
            case ast.Call(info=info) if info is not None:
                if info.kind == "builtin" and info.name == "setValid":
                    yield info.base
                for arg, param in zip(info.args, info.signature.params, strict=False):
                    own = info.kind in ("function", "action", "block")
                    if arg is None or param.direction not in ("out", "inout"):
                        continue
                    if not (own and isinstance(arg.type, Struct)):  # its body is examined itself
                        yield arg


def _made(e: ast.Expr) -> Iterator[Member]:
    if not (isinstance(e, ast.Member) and isinstance(e.base.type, Header)):
        yield from _places(e)
        yield from _inside(e.type)


def _places(e: ast.Expr) -> Iterator[Member]:
    """Yield the struct or union fields on the path of an expression down to a header."""
    while isinstance(e, ast.Member | ast.Index):
        holds = isinstance(e.type, Header | Stack | Union)
        if holds and isinstance(e, ast.Member) and isinstance(e.base.type, Struct | Union):
            yield e.base.type.name, e.name
        e = e.base


def _inside(t: Type | None) -> Iterator[Member]:
    """Yield all headers within a value of this type."""
    match t:
        case Stack(element=element):
            yield from _inside(element)
        case Struct(fields=fields) | Union(fields=fields):
            for f in fields:
                yield t.name, f.name
                yield from _inside(f.type)
