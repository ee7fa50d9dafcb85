"""Whether two expressions read the same places and compute the same from them."""

from __future__ import annotations

from dataclasses import fields

from gradplane.switch.ir import nodes as ir


def same_value(a: object, b: object) -> bool:
    """Compare two expressions, or parts of them, by their form: a + b is not the same as b + a."""
    if not isinstance(a, ir.Expr) or isinstance(a, ir.Var):
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same_value, a, b))
        return a is b if isinstance(a, ir.Var) else a == b
    return type(a) is type(b) and all(
        same_value(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
    )
