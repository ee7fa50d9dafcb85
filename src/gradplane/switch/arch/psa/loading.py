"""What is settled about a PSA program before it runs, for every engine.

A checksum's state lasts one run of a block, so it is a variable of that block, and the first
argument of each call:

    ck.add(in h.x)   ->   ck.add(inout state, in h.x)
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import blocks, statements
from gradplane.switch.ir.types import Bits
from gradplane.switch.source import Diagnostic

STATES = {"Checksum": Bits(64), "InternetChecksum": Bits(16)}


def prepare(program: ir.Program) -> list[Diagnostic]:
    """Completes the program in place; done twice it changes nothing more."""
    states: dict[ir.ExternInstance, ir.Var] = {}
    problems = []
    for _, block in blocks(program.package):
        calls = list(_checksum_calls(block))
        for instance in dict.fromkeys(call.instance for call in calls):
            assert instance is not None
            if instance in states:
                what = f"{instance.type} {instance.name} is used in more than one block"
                hint = "instantiate one in each of them"
                problems.append(Diagnostic(instance.span, what, hint=hint))
                continue
            state = ir.Var(STATES[instance.type], f"{instance.name}.state", -1 - len(states))
            states[instance] = state
            block.locals.append(state)
        for call in calls:
            assert call.instance is not None
            call.args.insert(0, states[call.instance])
            call.directions.insert(0, "inout")
    return problems


def _checksum_calls(block: ir.Parser | ir.Control) -> Iterable[ir.CallExtern]:
    """The calls that have no state yet; only a state is given as inout."""
    for stmt in statements(block):
        if (
            isinstance(stmt, ir.CallExtern)
            and stmt.instance is not None
            and stmt.instance.type in STATES
            and "inout" not in stmt.directions
        ):
            yield stmt
