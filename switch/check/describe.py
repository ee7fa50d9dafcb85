"""Expressions as their user wrote them."""

from __future__ import annotations

from gradplane.switch.syntax import ast


def describe(e: ast.Expr) -> str:
    """An expression as its user wrote it, for messages and for names of match keys."""
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
