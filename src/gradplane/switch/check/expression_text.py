"""Expressions as text for messages, and comparison of expressions as written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from gradplane.switch.syntax import ast

Value = int | bool | str


def describe(e: ast.Expr) -> str:
    """Return an expression as text for a message."""
    match e:
        case ast.Name(name=name, dot=dot):
            return ("." if dot else "") + name
        case ast.Member(base=base, name=name):
            return f"{describe(base)}.{name}"
        case ast.Index(base=base, index=index):
            return f"{describe(base)}[{describe(index)}]"
        case ast.Slice(base=base, hi=ast.Expr() as hi, lo=lo):
            return f"{describe(base)}[{describe(hi)}:{describe(lo)}]"
        case ast.IntLit(value=value):
            return str(value)
        case ast.Call(callee=callee, args=[]):
            return f"{describe(callee)}()"
        case ast.TypeExpr(ref=ref):
            return str(ref.type)
    return "this expression"


def written_alike(a: object, b: object) -> bool:
    """Return whether two pieces of the syntax tree are equal apart from their spans."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(written_alike, a, b))
    if not isinstance(a, ast.Node):
        return a == b
    compared = (f.name for f in fields(a) if f.init and f.name not in ("span", "name_span"))
    return type(a) is type(b) and all(written_alike(getattr(a, n), getattr(b, n)) for n in compared)


def article(noun: str) -> str:
    """Return the noun with `a` or `an`."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def muted(annotations: Sequence[ast.Annotation]) -> frozenset[str]:
    """Return the kinds of warnings that @noWarn silences."""
    given = [literal(e) for a in annotations if a.name == "noWarn" for e in a.exprs or []]
    return frozenset(v for v in given if isinstance(v, str))


def literal(e: ast.Expr) -> Value | None:
    """Return the value of a literal or the text of a name; None for other expressions."""
    match e:
        case ast.IntLit(value=value):
            return value
        case ast.BoolLit(value=flag):
            return flag
        case ast.StringLit(value=text):
            return text
        case ast.Name(name=name):
            return name
        case ast.Unary(op="-", operand=ast.IntLit(value=value)):
            return -value
        case ast.Binary(op="++", left=left, right=right):
            parts = literal(left), literal(right)
            if isinstance(parts[0], str) and isinstance(parts[1], str):
                return parts[0] + parts[1]
    return None
