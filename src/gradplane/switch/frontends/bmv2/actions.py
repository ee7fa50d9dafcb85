"""Actions: lists of primitives, with jumps between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradplane.switch.frontends.bmv2.control_flow import (
    END,
    Choose,
    Goto,
    Irreducible,
    Node,
    nested_statements,
)
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import Item
from gradplane.switch.frontends.bmv2.layout import Scope
from gradplane.switch.frontends.bmv2.primitives import Primitives
from gradplane.switch.ir import nodes as ir

_JUMPS = ("_jump", "_jump_if_zero")


def body_of(
    item: Item, scope: Scope, externs: Externs, parameters: Sequence[ir.Var]
) -> list[ir.Stmt]:
    """Return the statements of an action."""
    code = Primitives(scope, externs, parameters)
    primitives = item.elements("primitives")
    if not any(p["op"].value in _JUMPS for p in primitives):
        return [stmt for p in primitives for stmt in code.statements(p)]
    nodes = _nodes(primitives, code)
    try:
        return nested_statements(nodes, 0)
    except Irreducible:
        text = "it has a loop that is entered in two places"
        raise item["primitives"].refuse(text) from None


def _nodes(primitives: list[Item], code: Primitives) -> dict[object, Node]:
    """Cut the list where a jump starts or ends; each part goes by the number of its start."""
    count = len(primitives)
    target: Callable[[int], object] = lambda at: END if at >= count else at  # noqa: E731
    starts = {0}
    for at, p in enumerate(primitives):
        if p["op"].value in _JUMPS:
            starts |= {at + 1, _offset(p, count)}
    ordered = sorted(s for s in starts if s < count)
    nodes: dict[object, Node] = {}
    for start, end in zip(ordered, [*ordered[1:], count], strict=True):
        body: list[ir.Stmt] = []
        node = Node(body, Goto(target(end)))
        for p in primitives[start:end]:
            match p["op"].value:
                case "_jump":
                    node.after = Goto(target(_offset(p, count)))
                case "_jump_if_zero":
                    cond = code.code.truth(p["parameters"].parts(2)[0])
                    node.after = Choose(cond, target(end), target(_offset(p, count)))
                case _:
                    body += code.statements(p)
        nodes[start] = node
    return nodes


def _offset(p: Item, count: int) -> int:
    """Return where a jump goes; to the end of the list, too."""
    where = p["parameters"].parts(1 if p["op"].value == "_jump" else 2)[-1]
    if where.kind() != "hexstr":
        raise where.refuse("expected a constant")
    at = where["value"].hexadecimal
    if not 0 <= at <= count:
        raise where.refuse(f"there is no primitive {at}; the action has {count}")
    return at
