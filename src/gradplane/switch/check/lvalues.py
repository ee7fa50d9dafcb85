"""L-values: expressions that can be assigned to (specification, section 6.7)."""

from __future__ import annotations

from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.context import Context
from gradplane.switch.ir.types import Fields, Stack, Tuple
from gradplane.switch.syntax import ast


def is_lvalue(e: ast.Expr) -> bool:
    """Return whether a checked expression names storage that may be written here."""
    match e:
        case ast.Name(decl=ast.VarDecl()):
            return True
        case ast.Name(decl=ast.Param(direction=direction)):
            return direction in ("out", "inout")
        case ast.Member(base=base, name=name):
            if isinstance(base.type, Stack):
                return name == "next" and is_lvalue(base)
            return isinstance(base.type, Fields) and is_lvalue(base)
        case ast.Index(base=base):
            return isinstance(base.type, Stack) and is_lvalue(base)
        case ast.Slice(base=base):
            return is_lvalue(base)
    return False


def require_lvalue(c: Context, e: ast.Expr, what: str) -> bool:
    """Report an error if `e` cannot be written."""
    if e.type == ANY or is_lvalue(e):
        return True
    c.error(e, f"{what} must be something that can be assigned to", _reason(e))
    return False


def _reason(e: ast.Expr) -> str:
    if _through_last(e):
        return "stack.last can only be read"
    match root(e):
        case ast.Name(decl=ast.ConstDecl(name=name)):
            return f"{name} is a constant"
        case ast.Name(decl=ast.Param(name=name, direction="in" | "" as direction)):
            how = f"of direction {direction}" if direction else "without direction"
            return f"{name} is a parameter {how}"
    if isinstance(e, ast.Index) and isinstance(e.base.type, Tuple):
        return "the elements of a tuple cannot be changed one by one"
    return ""


def _through_last(e: ast.Expr) -> bool:
    while isinstance(e, ast.Member | ast.Index | ast.Slice):
        if isinstance(e, ast.Member) and e.name == "last" and isinstance(e.base.type, Stack):
            return True
        e = e.base
    return False


def root(e: ast.Expr) -> ast.Expr:
    """Return the expression that members, indexes and slices start from."""
    while isinstance(e, ast.Member | ast.Index | ast.Slice):
        e = e.base
    return e
