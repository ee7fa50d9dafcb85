"""What is settled about a v1model program before it runs, for every engine.

- `mark_to_drop()`, the old form, gets the standard metadata of the block it stands in.
- A checksum's list that is put into a variable just before the call is taken from where it came, as
  p4c does, so that fields of invalid headers are left out of it:

      list = pair{h.x, h.y}                     list = pair{h.x, h.y}
      update_checksum(in true, in list, ..)  ->  update_checksum(in true, in pair{h.x, h.y}, ..)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeGuard

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, children, statements

WITH_METADATA = ("p", "ig", "eg")  # blocks whose third parameter is the standard metadata
WITH_CHECKSUMS = ("vr", "ck")


def prepare(program: ir.Program) -> None:
    """Completes the program in place; done twice it changes nothing more."""
    for place, block in blocks(program.package):
        if place in WITH_METADATA:
            _give_metadata(block)
        elif place in WITH_CHECKSUMS and isinstance(block, ir.Control):
            _take_lists(block.body)


def _give_metadata(block: ir.Parser | ir.Control) -> None:
    for stmt in statements(block):
        if isinstance(stmt, ir.CallExtern) and stmt.name == "mark_to_drop" and not stmt.args:
            stmt.args, stmt.directions = [block.params[2].var], ["inout"]


def _take_lists(body: list[ir.Stmt]) -> None:
    for stmts in _bodies(body):
        for before, stmt in pairwise(stmts):
            if (
                isinstance(before, ir.Assign)
                and isinstance(before.value, ir.Make)
                and _is_checksum(stmt)
                and stmt.args[1] is before.target
            ):
                stmt.args[1] = before.value


def _bodies(body: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
    pending = [body]
    while pending:
        stmts = pending.pop()
        yield stmts
        for stmt in stmts:
            pending += children(stmt)


def _is_checksum(stmt: ir.Stmt) -> TypeGuard[ir.CallExtern]:
    return isinstance(stmt, ir.CallExtern) and stmt.name.startswith(
        ("verify_checksum", "update_checksum")
    )
