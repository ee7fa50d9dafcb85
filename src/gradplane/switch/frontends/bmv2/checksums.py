"""Checksums: those that are verified after the parser, and those that are computed at the end."""

from __future__ import annotations

from gradplane.switch.frontends.bmv2.expressions import Expressions
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import Item, span_of
from gradplane.switch.frontends.bmv2.layout import Scope
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, STRING


def checksum_control(root: Item, verify: bool, scope: Scope, externs: Externs) -> ir.Control:
    """Return the control that verifies checksums, or the one that computes them."""
    wanted = "verify" if verify else "update"
    body = [
        _call(item, wanted, scope, externs)
        for item in root.elements("checksums")
        if item.is_true(wanted, default=True)
    ]
    params = [ir.Param(p.name, "inout", p) for p in scope.params]
    return ir.Control(f"{wanted}_checksums", params, scope.locals, body)


def _call(item: Item, name: str, scope: Scope, externs: Externs) -> ir.Stmt:
    if item["type"].text != "generic":
        raise item["type"].refuse("expected generic")
    algorithm, inputs, payload = externs.calculation(item["calculation"], scope)
    target = scope.field(item["target"])
    given = item.get("if_cond")
    cond = ir.Const(BOOL, True) if given is None else Expressions(scope).truth(given)
    args = [cond, inputs, target, ir.Const(STRING, algorithm)]
    directions = ["in", "in", "in" if name == "verify" else "inout", "in"]
    full = f"{name}_checksum" + ("_with_payload" if payload else "")
    return ir.CallExtern(None, full, args, directions, span=span_of(item))
