"""Registers that are logs, stacks and queues: the cell of each access follows from numbers that the
register keeps, `count` and `head`, in registers of their own.

    execute_log   cell[count]; count = count + 1, from the last cell on to the first
    push          cell[count]; count = count + 1            full: overflow
    pop           cell[count - 1]; count = count - 1        empty: underflow
    enqueue       cell[head + count]; count = count + 1     full: overflow
    dequeue       cell[head]; head = head + 1; count = count - 1     empty: underflow
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits

NUMBER = Bits(32)
FIRST = build.number(NUMBER, 0)
OWN_INDEX = ("execute_log", "push", "pop", "enqueue", "dequeue")

Numbers = Mapping[str, ir.Var]


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """The cell that a method accesses in a register of `size` cells, and the numbers afterwards."""

    size: int
    method: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The numbers that the method reads."""
        if self.method == "execute_log":
            return ("log",)
        return ("count", "head") if self.method.endswith("queue") else ("count",)

    @property
    def otherwise(self) -> str:
        """The method that runs where there is no cell to access."""
        return "overflow" if self.method in ("push", "enqueue") else "underflow"

    def possible(self, held: Numbers) -> ir.Expr:
        """Return whether there is a cell to access."""
        if self.method == "execute_log":
            return ir.Const(BOOL, True)
        if self.otherwise == "overflow":
            return build.binary("<", held["count"], build.number(NUMBER, self.size))
        return build.binary(">", held["count"], FIRST)

    def index(self, held: Numbers) -> ir.Expr:
        """Return the index of the cell."""
        match self.method:
            case "execute_log":
                return held["log"]
            case "push":
                return held["count"]
            case "pop":
                return _plus(held["count"], -1)
            case "dequeue":
                return held["head"]
        return self._wrapped(build.binary("+", held["head"], held["count"]))

    def after(self, held: Numbers) -> dict[str, ir.Expr]:
        """Return the numbers that change."""
        match self.method:
            case "execute_log":
                return {"log": self._wrapped(_plus(held["log"], 1))}
            case "push" | "enqueue":
                return {"count": _plus(held["count"], 1)}
            case "pop":
                return {"count": _plus(held["count"], -1)}
        return {
            "count": _plus(held["count"], -1),
            "head": self._wrapped(_plus(held["head"], 1)),
        }

    def _wrapped(self, index: ir.Expr) -> ir.Expr:
        """Return an index below twice the size, as one of the register."""
        size = build.number(NUMBER, self.size)
        beyond = build.binary(">=", index, size)
        return build.mux(beyond, build.binary("-", index, size), index)


def _plus(number: ir.Expr, change: int) -> ir.Expr:
    return build.binary("+", number, build.number(NUMBER, change % (1 << NUMBER.width)))
