"""A count in memory: two words, packets and bytes."""

from __future__ import annotations

from gradplane.switch.jit.llvm_text import Function, Operand


def count(f: Function, cells: Operand, size: Operand) -> None:
    """Count a packet of so many bytes."""
    for at, amount in ((cells, "1"), (f.add(cells, 8), size)):
        f.store("i64", f.binary("add", "i64", f.load("i64", at, 8), amount), at, 8)
