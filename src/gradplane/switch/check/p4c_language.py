"""Constructs of every architecture that this compiler takes and p4c's front end refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.ast_walk import walk
from gradplane.switch.ir.types import (
    Bits,
    Bool,
    Error,
    Fields,
    Integer,
    NewType,
    SerEnum,
    Struct,
    Type,
)
from gradplane.switch.syntax import ast

Found = tuple[ast.Node, str, str]  # place, message, hint


def refused(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find it among the nodes of a declaration, parents first."""
    for node in nodes:
        match node:
            case ast.Ternary():
                yield from _choice(node)
            case ast.Slice(base=base) if isinstance(base.type, Integer) and base.const is None:
                yield node, "p4c takes bits of a bit<> only, not of an int", "cast it first"
            case ast.Binary():
                yield from _binary(node)
            case ast.Assign(op="/=" | "%="):
                yield from _divisor(node, node.op[0], node.value)
            case ast.SwitchStmt():
                yield from _switch(node)
            case ast.NamedTypeRef():
                yield from _in_itself(node)
            case ast.BaseTypeRef(width=width) if width is not None:
                yield from _width(width)
            case ast.Call():
                yield from _generic_argument(node)
            case ast.Select():
                yield from _select(node)
            case ast.TableDecl():
                yield from _table(node)


def _choice(e: ast.Ternary) -> Iterator[Found]:
    branches = (e.then, e.other)
    if e.chained:
        text = "p4c reads a ? b : c ? d : e as (a ? b : c) ? d : e"
        yield e.other, text, "put the last part in parentheses"
    if e.cond.const is None and all(isinstance(b.type, Integer) for b in branches):
        yield e, "p4c needs a width for a branch of this ?:", "write it with a width: 8w1"
    if all(isinstance(b, ast.ListExpr | ast.StructExpr) for b in branches) and (
        type(e.then) is not type(e.other) or any(map(_has_dots, branches))
    ):
        text = "p4c cannot choose between lists of different forms"
        yield e, text, "write the type before them: (S) {...}"


def _has_dots(literal: ast.Expr) -> bool:
    if isinstance(literal, ast.ListExpr):
        return any(isinstance(e, ast.Dots) for e in literal.elements)
    return isinstance(literal, ast.StructExpr) and literal.dots


def _switch(statement: ast.SwitchStmt) -> Iterator[Found]:
    subject = statement.subject
    if isinstance(subject.type, Bool | Error):
        yield subject, f"p4c cannot switch on {subject.type}", "use if"
    elif isinstance(subject.type, SerEnum):
        for case in statement.cases:
            yield from _number_for_enum(case.label, subject.type)


def _number_for_enum(value: ast.Expr, t: Type) -> Iterator[Found]:
    """A number where a member of a serializable enum is matched."""
    if isinstance(t, SerEnum) and isinstance(value.type, Bits | Integer):
        yield value, f"p4c does not compare {t} with a number here", f"cast it: ({t}) ..."


def _binary(e: ast.Binary) -> Iterator[Found]:
    if e.op in ("/", "%") and e.const is None:
        yield from _divisor(e, e.op, e.right)
    if e.op in ("==", "!="):
        literals = [side for side in (e.left, e.right) if isinstance(side, ast.ListExpr)]
        generic = [t for t in (e.left.type, e.right.type) if isinstance(t, Fields) and t.args]
        if literals and generic:
            text = "p4c does not compare a generic struct with a list"
            yield literals[0], text, f"write its type: ({generic[0]}) {{...}}"


def _divisor(place: ast.Node, op: str, divisor: ast.Expr) -> Iterator[Found]:
    value = divisor.const
    if not isinstance(value, int) or value & (value - 1):
        yield place, f"p4c takes powers of two only at the right of {op}", ""


def _generic_argument(call: ast.Call) -> Iterator[Found]:
    """A call of a generic function among the arguments of a function."""
    if _function(call) is None:
        return
    for inner in walk(call.args):
        decl = _function(inner)
        if decl is not None and decl.type_params:
            text = f"p4c loses the types of {decl.name} in the arguments of another function"
            yield inner, text, "assign its result to a variable first"


def _function(node: ast.Node) -> ast.FunctionDecl | None:
    """Return the P4 function that a node calls."""
    info = node.info if isinstance(node, ast.Call) else None
    decl = info.decl if isinstance(info, CallInfo) and info.kind == "function" else None
    return decl if isinstance(decl, ast.FunctionDecl) else None


def _in_itself(ref: ast.NamedTypeRef) -> Iterator[Found]:
    """A generic type inside its own arguments."""
    inner = [n for n in walk(ref.args) if isinstance(n, ast.NamedTypeRef)]
    if any(n.name == ref.name for n in inner):
        yield ref, f"p4c takes no {ref.name} among the type arguments of {ref.name}", ""


def _width(width: ast.Expr) -> Iterator[Found]:
    for part in walk(width):
        inside = isinstance(part, ast.Member) and isinstance(part.base.type, Struct)
        if inside or isinstance(part, ast.Index):
            text = "p4c knows no field of a constant struct or tuple in a width"
            yield width, text, "declare a constant for it"
            return


def _select(select: ast.Select) -> Iterator[Found]:
    for e in select.exprs:
        if isinstance(e.type, Struct | NewType | Error):
            yield e, f"p4c cannot select on {_words(e.type)}", "select on its parts, or cast it"
    if select.one_list:
        yield select, "p4c cannot select on one list", "leave out its braces"


def _words(t: Type) -> str:
    return f"struct {t}" if isinstance(t, Struct) else str(t)


def _table(table: ast.TableDecl) -> Iterator[Found]:
    for entry in table.entries:
        if len(table.key) > 1 and isinstance(entry.keyset, ast.DefaultKey):
            text = f"p4c needs a keyset of {len(table.key)} values here"
            yield entry.keyset, text, "write (" + ", ".join("_" * len(table.key)) + ")"
        yield from _left_out(entry.action)
        yield from _numbers_for_enums(table, entry.keyset)
    if table.default_action is not None:
        yield from _left_out(table.default_action)


def _numbers_for_enums(table: ast.TableDecl, keyset: ast.Expr) -> Iterator[Found]:
    several = isinstance(keyset, ast.TupleKey | ast.ListExpr) and len(table.key) != 1
    values = getattr(keyset, "elements", [keyset]) if several else [keyset]
    for key, value in zip(table.key, values, strict=False):
        if isinstance(key.expr.type, SerEnum):
            yield from _number_for_enum(value, key.expr.type)


def _left_out(ref: ast.ActionRef) -> Iterator[Found]:
    """An action without the arguments that the table's list of actions gives it."""
    if ref.info is None:
        return
    bound = [p.name for p in ref.info.decl.params if p.direction]
    if bound and len(ref.args or []) < len(ref.info.decl.params):
        yield ref, f"p4c wants the argument for {bound[0]} repeated here", ""
