"""The logical tables of the chip: match tables, actions without a key, and conditions.

The report names them by the lines of the source, if they have no other name.

Ternary tables in SRAM: Alpm and Atcam divide them into partitions.

An index, computed before or found by a small table in TCAM (Alpm), chooses a partition, all of
whose entries are compared at once. An entry has two bits for each ternary bit of the key.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, log2
from pathlib import PurePath

from gradplane.fit.places import Place
from gradplane.fit.values import Operation, Use
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.source import Span

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


MATCH, ACTION, GATEWAY = "match", "action", "gateway"

Arm = tuple[int, int]
"""A branch in the control flow, and which way from it."""


@dataclass(slots=True)
class TableAction:
    """An action: its parameters with their bits, and what it does."""

    name: str
    params: tuple[tuple[ir.Var, int], ...]
    operations: list[Operation]
    span: Span

    @property
    def data(self) -> list[int]:
        """The bits of each parameter that an operation reads."""
        used = {place.var for op in self.operations for place in op.reads}
        return [width for var, width in self.params if var in used]


@dataclass(slots=True, eq=False)
class LogicalTable:
    """A table of the chip: it matches, and its action acts; or it only acts, or only decides.

    arms: the branches that it is in. deciders: tables whose outcome decides whether it runs.
    shares: a gateway that needs no logical table of its own, since a table that it decides about
    has one. decided: it only acts, and a gateway of its own runs it. problem: why the chip cannot
    decide so. partitions: how a ternary table in SRAM is divided. at_end: it comes after all others
    of its control that are in no branch.
    """

    kind: str
    name: str
    span: Span
    gress: str
    order: int
    table: ir.Table | None = None
    key: tuple[Place, ...] = ()
    ranges: tuple[Place, ...] = ()
    rows: int = 1
    actions: list[TableAction] = field(default_factory=list)
    arms: tuple[Arm, ...] = ()
    deciders: tuple[LogicalTable, ...] = ()
    shares: bool = False
    decided: bool = False
    problem: str = ""
    partitions: Partitions | None = None
    at_end: bool = False

    @property
    def operations(self) -> list[Operation]:
        return [operation for action in self.actions for operation in action.operations]

    @property
    def uses(self) -> list[Use]:
        """The uses of externs by its actions."""
        return list(dict.fromkeys(use for op in self.operations for use in op.value.uses))

    @property
    def writes(self) -> list[Place]:
        return [place for op in self.operations for place in op.writes]

    @property
    def reads(self) -> list[Place]:
        """The places that its actions read."""
        return [place for op in self.operations for place in op.reads]

    def excludes(self, other: LogicalTable) -> bool:
        """Return whether no packet comes through both."""
        other_arms = dict(other.arms)
        return any(other_arms.get(branch, arm) != arm for branch, arm in self.arms)


# -- names of lines ---------------------------------------------------------------------------


def line_name(span: Span, file: str) -> str:
    """Return the line of a place; with its file's name, unless that is the program's own file's."""
    name = PurePath(span.file).name
    return f"line {span.line}" + ("" if name == PurePath(file).name else f" of {name}")
