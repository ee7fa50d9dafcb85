"""The accesses to a register: what they read and set, and those that the chip's compiler refuses,
beyond the rules of the ALU that runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradplane.fit.overruns import Impossible
from gradplane.fit.places import Place, reads
from gradplane.fit.statement_places import written_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Type, bit_width
from gradplane.switch.ir.walk import nested
from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class Access:
    """An access: the index of the cell (None: the register has no index), the variables that it
    sets, its results among them, and the places that it reads beside the cell."""

    index: ir.Expr | None
    sets: frozenset[ir.Var]
    data: tuple[Place, ...]


def access_of(block: ir.Block) -> Access:
    """Return the access that a block is: the read of a cell first, the write of it last."""
    first, last = block.body[0], block.body[-1]
    assert isinstance(first, ir.CallExtern), first
    index = first.args[0] if first.args else None
    sets = frozenset(place.var for stmt in nested(block.body) for place in written_by(stmt))
    read = (
        place
        for stmt in nested(block.body[1:])
        for e in walk.reads(stmt)
        if not (stmt is last and e is index)
        for place in reads(e)
    )
    return Access(index, sets, tuple(place for place in read if place.var not in sets))


def problem(block: ir.Block, action: ir.ExternInstance) -> Impossible | None:
    """Return why the compiler refuses an access (a block with one), None if it does not."""
    register = action.accessed
    if register is not None and not _same_size(register.type_args, action.type_args):
        return Impossible(
            f"{action.name} has cells of {action.type_args[0]}, its register {register.name} of"
            f" {register.type_args[0]}",
            "give both the same type",
        )
    seen: dict[str, list[object]] = {}
    for place, span, condition in _sets(block.body[2:-1], None):
        before = seen.setdefault(place, [])
        if before and (condition is None or None in before or condition in before):
            return Impossible(
                f"{action.name} may set {place} twice in one access, again in line {span.line}",
                "set it once in each way through the body (if, else)",
            )
        before.append(condition)
    return None


def _same_size(register: Sequence[Type], action: Sequence[Type]) -> bool:
    """Return whether an action's cells are the register's, or as many of them as more bits of an
    index choose among."""
    if len(register) < 2 or len(action) < 2:
        return True
    cells, indices = ([bit_width(types[n]) or 0 for types in (register, action)] for n in (0, 1))
    few, many = sorted(cells)
    return few == many or few << abs(indices[0] - indices[1]) == many


def _sets(body: Sequence[ir.Stmt], condition: object) -> Iterator[tuple[str, Span, object]]:
    """Yield what statements set, where, and under which condition. To set to 0 first is no
    operation."""
    for stmt in body:
        match stmt:
            case ir.Assign(target=target, value=value):
                zero = isinstance(value, ir.Zero) or (
                    isinstance(value, ir.Const) and not value.value
                )
                if condition is not None or not zero:
                    yield expression_text(target), stmt.span, condition
            case ir.If(cond=cond, then=then, other=other):
                text = f"{condition} && {expression_text(cond)}"
                yield from _sets(then, text)
                yield from _sets(other, f"!({text})")
            case ir.Block(body=inner):
                yield from _sets(inner, condition)
