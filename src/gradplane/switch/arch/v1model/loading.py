"""Loading a v1model program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from gradplane.switch.arch.load_checks import extern_calls, full_name
from gradplane.switch.arch.v1model.checksum_lists import trace_lists
from gradplane.switch.arch.v1model.field_lists import COPYING, number_lists
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL
from gradplane.switch.ir.walk import blocks, header_of, statements
from gradplane.switch.source import Diagnostic

PLACES = {
    "p": "the parser",
    "vr": "the checksum verification",
    "ig": "the ingress control",
    "eg": "the egress control",
    "ck": "the checksum computation",
    "dep": "the deparser",
}

_WITH_METADATA = ("p", "ig", "eg")  # blocks whose third parameter is the standard metadata
_WITH_CHECKSUMS = ("vr", "ck")
_CLONES = {"ig": "I2E", "eg": "E2E"}

# -- preparation --------------------------------------------------------------------------------


def drop_with_metadata(program: ir.Program) -> Iterable[Diagnostic]:
    """Give `mark_to_drop()`, the old form, the standard metadata of the block it stands in."""
    for place, block in blocks(program.package):
        if place in _WITH_METADATA:
            for stmt in statements(block):
                if _is_call(stmt, "mark_to_drop") and not stmt.args:
                    stmt.args, stmt.directions = [block.params[2].var], ["inout"]
    return ()


def trace_checksum_lists(program: ir.Program) -> Iterable[Diagnostic]:
    """Take the list of a checksum from where it came (`checksum_lists`)."""
    for block in _checksum_blocks(program):
        trace_lists(block)
    return ()


def verify_only_valid(program: ir.Program) -> Iterable[Diagnostic]:
    """Do not verify a checksum in an invalid header."""
    for block in _checksum_blocks(program):
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern) and stmt.name.startswith("verify_checksum"):
                condition, header = stmt.args[0], header_of(stmt.args[2])
                if header is not None and not _says_valid(condition, header):
                    stmt.args[0] = ir.Binary(BOOL, "&&", ir.IsValid(BOOL, header), condition)
    return ()


def number_field_lists(program: ir.Program) -> Iterable[Diagnostic]:
    """Give calls that name the metadata to preserve a list of these fields (`field_lists`)."""
    number_lists([program.package.control(name) for name in COPYING])
    return ()


PREPARE = (drop_with_metadata, trace_checksum_lists, verify_only_valid, number_field_lists)


def _is_call(stmt: ir.Stmt, name: str) -> TypeGuard[ir.CallExtern]:
    return isinstance(stmt, ir.CallExtern) and stmt.name == name


def _checksum_blocks(program: ir.Program) -> Iterable[ir.Control]:
    return (program.package.control(name) for name in _WITH_CHECKSUMS)


def _says_valid(condition: ir.Expr, header: ir.Expr) -> bool:
    first = condition.left if isinstance(condition, ir.Binary) else None
    return isinstance(first, ir.IsValid) and first.base is header


# -- rules --------------------------------------------------------------------------------------


def clone_types(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse clones of a type that is not that of the pipeline they are made in."""
    for place, call in extern_calls(program):
        if call.name.startswith("clone") and place in _CLONES:
            kind = call.args[0]
            if isinstance(kind, ir.Const) and kind.value != _CLONES[place]:
                what = f"in {PLACES[place]} the clone type must be {_CLONES[place]}"
                yield Diagnostic(call.span, f"{full_name(call)}: {what}, not {kind.value}")


RULES = (clone_types,)
