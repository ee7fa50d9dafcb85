"""Register cells of struct and tuple types: one number that holds all fields, the first on top.

To the engines and the control plane such a register is one of `bit<W>`. A value is packed for a
write and unpacked after a read.

Registers that are logs, stacks and queues: the cell of each access follows from numbers that the
register keeps, `count` and `head`, in registers of their own.

    execute_log   cell[count]; count = count + 1, from the last cell on to the first
    push          cell[count]; count = count + 1            full: overflow
    pop           cell[count - 1]; count = count - 1        empty: underflow
    enqueue       cell[head + count]; count = count + 1     full: overflow
    dequeue       cell[head]; head = head + 1; count = count - 1     empty: underflow
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradplane.switch.ir import expression_builder, ops
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Struct, Type, bit_width
from gradplane.switch.lower.type_erasure import without_headers


def packed_type(t: Type) -> Type:
    """Return the type of a register's cell in the IR; t is erased."""
    width = bit_width(t) if isinstance(t, Struct) and without_headers(t) == t else None
    return Bits(width) if width else t


def packed(value: ir.Expr) -> ir.Expr:
    """Return the number that holds a struct's fields."""
    fields = [
        expression_builder.cast(Bits(bit_width(leaf.type) or 0), leaf) for leaf in _leaves(value)
    ]
    whole = fields[0]
    for field in fields[1:]:
        whole = expression_builder.binary("++", whole, field)
    return whole


def packed_constant(t: Type, value: ir.Argument) -> ir.Argument:
    """Return a register's initial value, given as a struct's constants, as a number."""
    if not isinstance(t, Struct) or not isinstance(value, Sequence):
        return value
    whole = 0
    for field, part in zip(t.fields, value, strict=True):
        width = bit_width(field.type) or 0
        number = packed_constant(field.type, part)
        assert isinstance(number, int), number
        whole = whole << width | ops.wrap(Bits(width))(int(number))
    return whole


def unpacked(t: Type, bits: ir.Expr) -> ir.Expr:
    """Return the struct whose fields a number holds."""
    width = bit_width(t) or 0
    if not isinstance(t, Struct):
        return expression_builder.cast(t, bits)
    fields: list[ir.Expr] = []
    for field in t.fields:
        low = width - (bit_width(field.type) or 0)
        part = expression_builder.slice_of(bits, width - 1, low) if low < width else bits
        fields.append(unpacked(field.type, part))
        width = low
    return ir.Make(t, fields)


def _leaves(value: ir.Expr) -> Iterator[ir.Expr]:
    if not isinstance(value.type, Struct):
        yield value
        return
    for i in range(len(value.type.fields)):
        leaf = expression_builder.field(value, i)
        if bit_width(leaf.type):
            yield from _leaves(leaf)


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
