"""Ternary tables in SRAM: Alpm and Atcam divide them into partitions.

An index, computed before or found by a small table in TCAM (Alpm), chooses a partition, all of
whose entries are compared at once. An entry has two bits for each ternary bit of the key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width

_PARTITIONS, _SUBTREES = 1024, 2  # of an Alpm, where the program says nothing


@dataclass(frozen=True, slots=True)
class Partitions:
    """The division of a table: how many partitions, and the entries of the table that finds one
    (0: the key has the index)."""

    count: int
    finding: int

    @property
    def index_bits(self) -> int:
        return max(1, ceil(log2(self.count)))


def partitions_of(table: ir.Table) -> Partitions | None:
    """Return the division that the source asks for, None if it asks for none."""
    algorithm = table.algorithm
    if algorithm is None:
        return None
    count = algorithm.number("partitions", _PARTITIONS)
    if algorithm.type != "Alpm":
        return Partitions(count, 0)
    return Partitions(count, count * algorithm.number("subtrees", _SUBTREES))


def finder(table: ir.Table, partitions: Partitions) -> ir.Table:
    """Return the table that finds the partition: one of the same key, in TCAM."""
    name = f"{table.name} (partitions)"
    return replace(
        table, name=name, actions=[], entries=[], size=partitions.finding, algorithm=None,
        implementation=None, counter=None, meter=None, register=None, filter=None,
    )  # fmt: skip


def index_variable(table: ir.Table, partitions: Partitions) -> ir.Var:
    """Return a variable for the number of a partition."""
    return ir.Var(Bits(partitions.index_bits), f"partition of {table.name}", -1)


def entry_key_bits(table: ir.Table) -> int:
    """Return the bits of an entry's key, without the partition's number."""
    widths = [(bit_width(k.expr.type) or 0, k.match_kind) for k in table.keys]
    return sum(width * (1 if kind == "exact" else 2) for width, kind in widths)
