"""Warnings about what this compiler takes and p4c refuses, or reads otherwise.

The limits of its back end for BMv2 (p4lang/p4c, backends/bmv2) are looked for in programs of
v1model only. The warnings' kind is "p4c".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.checker_types import BlockType
from gradplane.switch.check.wire_sizes import size_bits
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

KIND = "p4c"
_PACKAGE = "V1Switch"
_CHECKSUMS, _DEPARSER = (1, 4), 5  # positions among the package's arguments
_SHIFT_BITS = 8  # the widest shift amount; larger constants than 8 bits hold are refused, too

_LOOKED_AT = {ast.Ternary, ast.Binary, ast.For, ast.ForIn, ast.ActionDecl, ast.FunctionDecl,
              ast.SwitchStmt}  # fmt: skip

Found = tuple[ast.Node, str, str]  # place, message, hint


def warn_p4c(c: Checker, program: ast.Program) -> None:
    """Warn of what p4c refuses, each at its place in a declaration of the program."""
    blocks = _blocks(program)
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            nodes = [node for node in c.nodes[decl] if type(node) in _LOOKED_AT]
            _report(c, _chained(nodes))
            if blocks is not None:
                _report(c, _in_declaration(decl, nodes, blocks))


def _report(c: Checker, found: Iterator[Found]) -> None:
    for node, message, hint in found:
        c.warn(node, KIND, message, hint)


def _blocks(program: ast.Program) -> Sequence[ast.Decl | None] | None:
    """Return the declarations of the package's blocks; None if it is no V1Switch."""
    mains = [
        d for d in program.declarations if isinstance(d, ast.Instantiation) and d.name == "main"
    ]
    if not mains or mains[-1].info is None or mains[-1].info.name != _PACKAGE:
        return None
    types = (arg.type for arg in mains[-1].info.args)
    return [t.decl if isinstance(t, BlockType) else None for t in types]


def _chained(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        if type(node) is ast.Ternary and node.chained:
            text = "p4c reads a ? b : c ? d : e as (a ? b : c) ? d : e"
            yield node.other, text, "put the last part in parentheses"


def _in_declaration(
    decl: ast.Decl, nodes: Sequence[ast.Node], blocks: Sequence[ast.Decl | None]
) -> Iterator[Found]:
    yield from _shifts(nodes)
    yield from _loops(nodes)
    match decl:
        case ast.StructDecl(kind="header", type_params=[]):
            yield from _odd_header(decl)
        case ast.ParserDecl():
            yield from _parser(nodes)
        case ast.ControlDecl() if decl in blocks:
            at = blocks.index(decl)
            if at == _DEPARSER:
                yield from _only_calls(decl.body, "a deparser", "emit")
            elif at in _CHECKSUMS:
                yield from _only_calls(decl.body, "a checksum block", "verify and update checksums")
    for node in nodes:
        if isinstance(node, ast.ActionDecl):
            yield from _action(node)


def _shifts(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        if isinstance(node, ast.Binary) and node.op in ("<<", ">>") and node.const is None:
            amount, t = node.right.const, node.right.type
            if isinstance(amount, int):
                if amount >= 1 << _SHIFT_BITS:
                    yield node, f"p4c for BMv2 shifts by less than {1 << _SHIFT_BITS}", ""
            elif isinstance(t, Bits) and t.width > _SHIFT_BITS:
                text = f"p4c for BMv2 takes shift amounts of up to {_SHIFT_BITS} bits, not {t}"
                yield node, text, f"cast it: (bit<{_SHIFT_BITS}>) ..."


def _loops(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Loops in functions are left out: they are in an action where that calls the function."""
    inside = {id(n) for a in nodes if isinstance(a, ast.ActionDecl) for n in walk(a.body)}
    function = any(isinstance(n, ast.FunctionDecl) for n in nodes[:1])
    for node in nodes:
        if isinstance(node, ast.ForIn):
            yield node, "p4c for BMv2 has no for-in loops", "count with a for loop, in an action"
        elif isinstance(node, ast.For) and not function and id(node) not in inside:
            yield node, "p4c for BMv2 has loops in actions only", "put it into an action"


def _action(decl: ast.ActionDecl) -> Iterator[Found]:
    for node in walk(decl.body):
        if isinstance(node, ast.SwitchStmt):
            yield node, "p4c for BMv2 has no switch statements in actions", "use if"
    for param in decl.params:
        if isinstance(param.type, Bool) and not param.direction:
            text = f"p4c for BMv2 takes bit<> and int<> as action data: {param.name} is a bool"
            yield param, text, "use bit<1>"


def _odd_header(decl: ast.StructDecl) -> Iterator[Found]:
    sizes = [None if f.ref.type is None else size_bits(f.ref.type, False) for f in decl.fields]
    bits = sum(size or 0 for size in sizes)
    if None not in sizes and bits & 7:
        text = f"p4c for BMv2 needs headers of whole bytes; this one has {bits} bits"
        yield decl, text, f"add a field of {-bits & 7} bits"


def _parser(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        if isinstance(node, ast.SwitchStmt):
            yield node, "p4c for BMv2 has no switch statements in parsers", "use select"


def _only_calls(stmt: ast.Stmt, where: str, what: str) -> Iterator[Found]:
    for inner in stmt.body if isinstance(stmt, ast.Block) else [stmt]:
        if isinstance(inner, ast.Block):
            yield from _only_calls(inner, where, what)
        elif not isinstance(inner, ast.CallStmt | ast.Empty):
            yield inner, f"p4c for BMv2: {where} can only {what}", ""
