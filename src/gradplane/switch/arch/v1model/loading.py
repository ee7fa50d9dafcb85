"""What is settled about a v1model program before it runs, for every engine.

- `mark_to_drop()`, the old form, gets the standard metadata of the block it stands in.
- A checksum's list is taken from where it came (`checksumlists`).
- A checksum in an invalid header is not verified.
- Calls that name the metadata to preserve get a list of these fields (`fieldlists`).
"""

from __future__ import annotations

from gradplane.switch.arch.checksumlists import trace_lists
from gradplane.switch.arch.fieldlists import number_lists
from gradplane.switch.arch.model import control_of
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.aliasing import header_of
from gradplane.switch.ir.statement_walk import blocks, statements
from gradplane.switch.ir.types import BOOL

WITH_METADATA = ("p", "ig", "eg")  # blocks whose third parameter is the standard metadata
WITH_CHECKSUMS = ("vr", "ck")
COPYING = ("ig", "eg")  # blocks that may clone, resubmit, recirculate


def prepare(program: ir.Program) -> None:
    """Completes the program in place; done twice it changes nothing more."""
    for place, block in blocks(program.package):
        if place in WITH_METADATA:
            _give_metadata(block)
        elif place in WITH_CHECKSUMS and isinstance(block, ir.Control):
            trace_lists(block)
            _verify_only_valid(block)
    number_lists([control_of(program.package, name) for name in COPYING])


def _verify_only_valid(block: ir.Control) -> None:
    for stmt in statements(block):
        if isinstance(stmt, ir.CallExtern) and stmt.name.startswith("verify_checksum"):
            condition, header = stmt.args[0], header_of(stmt.args[2])
            if header is not None and not _says_valid(condition, header):
                stmt.args[0] = ir.Binary(BOOL, "&&", ir.IsValid(BOOL, header), condition)


def _says_valid(condition: ir.Expr, header: ir.Expr) -> bool:
    first = condition.left if isinstance(condition, ir.Binary) else None
    return isinstance(first, ir.IsValid) and first.base is header


def _give_metadata(block: ir.Parser | ir.Control) -> None:
    for stmt in statements(block):
        if isinstance(stmt, ir.CallExtern) and stmt.name == "mark_to_drop" and not stmt.args:
            stmt.args, stmt.directions = [block.params[2].var], ["inout"]
