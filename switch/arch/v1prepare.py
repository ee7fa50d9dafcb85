"""What is settled about a v1model program before it runs, for every engine.

- `mark_to_drop()`, the old form, gets the standard metadata of the block it stands in.
- A checksum's list is taken from where it came (`checksumlists`).
- Calls that name the metadata to preserve get a list of these fields (`fieldlists`).
"""

from __future__ import annotations

from gradplane.switch.arch.checksumlists import trace_lists
from gradplane.switch.arch.fieldlists import number_lists
from gradplane.switch.arch.model import control_of
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, statements

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
    number_lists([control_of(program.package, name) for name in COPYING])


def _give_metadata(block: ir.Parser | ir.Control) -> None:
    for stmt in statements(block):
        if isinstance(stmt, ir.CallExtern) and stmt.name == "mark_to_drop" and not stmt.args:
            stmt.args, stmt.directions = [block.params[2].var], ["inout"]
