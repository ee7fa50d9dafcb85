"""The passes of a packet: resubmission, and ports that lead back to the ingress parser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import statements
from gradplane.switch.source import Span

RESUBMIT, RECIRCULATE = "resubmission", "recirculation"


@dataclass(frozen=True, slots=True)
class PassAgain:
    """A statement by which a packet passes the ingress pipeline again."""

    kind: str
    span: Span


def passes_again(package: ir.Package, facts: DeviceFacts) -> list[PassAgain]:
    """Return the statements of a pipeline that let a packet pass again, as far as constants say
    so. A chip resubmits a packet once; a packet may recirculate as often as the program wants."""
    found: dict[PassAgain, None] = {}
    for block in package.args.values():
        if isinstance(block, ir.Control):
            found.update(dict.fromkeys(_again(block, facts)))
    return list(found)


def _again(control: ir.Control, facts: DeviceFacts) -> Iterator[PassAgain]:
    for stmt in statements(control):
        match stmt:
            case ir.CallExtern(instance=ir.ExternInstance(type="Resubmit")):
                yield PassAgain(RESUBMIT, stmt.span)
            case ir.Assign(
                target=ir.FieldOf(name="ucast_egress_port"), value=ir.Const(value=int() as port)
            ):
                if _recirculates(port, facts):
                    yield PassAgain(RECIRCULATE, stmt.span)
            case ir.Assign(target=ir.FieldOf(name="ucast_egress_port"), value=value):
                low = _low_bits(value, facts.pipe_bits)
                if low is not None and _recirculates(low, facts):
                    yield PassAgain(RECIRCULATE, stmt.span)


def _recirculates(port: int, facts: DeviceFacts) -> bool:
    local = port % (1 << facts.pipe_bits)
    return local in facts.recirculation and port != facts.cpu_port


def _low_bits(e: ir.Expr, bits: int) -> int | None:
    """Return the number that a concatenation ends with: a port of any pipe."""
    match e:
        case ir.Cast(operand=x):
            return _low_bits(x, bits)
        case ir.Binary(op="++", right=ir.Const(value=int() as port, type=Bits(width=width))) if (
            width >= bits
        ):
            return port
    return None
