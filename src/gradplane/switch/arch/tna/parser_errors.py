"""Errors of parsers as the chip gives them: flags in parser_err."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.ir.walk import expressions, operands, statements

_NO_MATCH, _PARTIAL_HEADER, _COUNTER_RANGE, _TIMEOUT, _NO_CONTAINER = 1, 2, 4, 8, 0x40
_FLAGS = {
    "NoError": 0,
    "PacketTooShort": _PARTIAL_HEADER,
    "HeaderTooShort": _PARTIAL_HEADER,
    "CounterRange": _COUNTER_RANGE,
    "ParserTimeout": _TIMEOUT,
    "StackOutOfBounds": _NO_CONTAINER,
}
_FIELD = "parser_err"


def flags_of(errors: Sequence[str]) -> list[int]:
    """Return the flags of each error code; an error that the chip does not have is no match."""
    return [_FLAGS.get(name, _NO_MATCH) for name in errors]


def reads_errors(pipeline: ir.Package) -> bool:
    """Return whether ingress uses the parser's errors: then packets with errors are not dropped."""
    return any(
        _reads(e) for stmt in statements(pipeline.control("ingress")) for e in expressions(stmt)
    )


def _reads(e: ir.Expr) -> bool:
    if isinstance(e, ir.FieldOf):
        return e.name == _FIELD or (not isinstance(e.base, ir.Var) and _reads(e.base))
    if isinstance(e.type, Fields) and e.type.index(_FIELD) is not None:
        return True
    return any(map(_reads, operands(e)))
