"""Register cells of struct, tuple and array types: one number that holds all fields, the first on
top.

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
from dataclasses import dataclass, replace

from gradplane.switch.ir import expression_builder, ops
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Array, Bits, Field, Struct, Type, bit_width
from gradplane.switch.lower.type_erasure import without_headers


def packed_type(t: Type) -> Type:
    """Return the type of a register's cell in the IR; t is erased."""
    shown = shown_cell(t)
    width = bit_width(shown) if isinstance(shown, Struct) else None
    return Bits(width) if width and without_headers(shown) == shown else t


def shown_cell(t: Type) -> Type:
    """Return the type that a cell has for the control plane: a struct for an array, too."""
    match t:
        case Array(element=element, size=size):
            fields = tuple(Field(f"f{i}", shown_cell(element)) for i in range(size))
            return Struct(f"tuple<{t}>", fields)
        case Struct(fields=fields):
            return replace(t, fields=tuple(replace(f, type=shown_cell(f.type)) for f in fields))
    return t


def packed(value: ir.Expr) -> ir.Expr:
    """Return the number that holds a struct's fields or an array's elements."""
    fields = [
        expression_builder.cast(Bits(bit_width(leaf.type) or 0), leaf) for leaf in _leaves(value)
    ]
    whole = fields[0]
    for field in fields[1:]:
        whole = expression_builder.binary("++", whole, field)
    return whole


def packed_constant(t: Type, value: ir.Argument) -> ir.Argument:
    """Return a register's initial value, given as a struct's constants, as a number."""
    if not isinstance(t, Struct | Array) or not isinstance(value, Sequence):
        return value
    whole = 0
    for inner, part in zip(_types(t), value, strict=True):
        width = bit_width(inner) or 0
        number = packed_constant(inner, part)
        assert isinstance(number, int), number
        whole = whole << width | ops.wrap(Bits(width))(int(number))
    return whole


def unpacked(t: Type, bits: ir.Expr) -> ir.Expr:
    """Return the struct or array whose parts a number holds."""
    width = bit_width(t) or 0
    if not isinstance(t, Struct | Array):
        return expression_builder.cast(t, bits)
    fields: list[ir.Expr] = []
    for inner in _types(t):
        low = width - (bit_width(inner) or 0)
        part = expression_builder.slice_of(bits, width - 1, low) if low < width else bits
        fields.append(unpacked(inner, part))
        width = low
    return ir.Make(t, fields)


def assignments(target: ir.Var, bits: ir.Expr) -> Iterator[ir.Stmt]:
    """Yield the assignments that spread a number over the parts of a struct or array."""
    width = bit_width(target.type) or 0
    for leaf in _leaves(target):
        assert isinstance(leaf, ir.LValue), leaf
        low = width - (bit_width(leaf.type) or 0)
        part = expression_builder.slice_of(bits, width - 1, low)
        yield ir.Assign(leaf, expression_builder.cast(leaf.type, part))
        width = low


def _types(t: Struct | Array) -> list[Type]:
    return [t.element] * t.size if isinstance(t, Array) else [f.type for f in t.fields]


def _leaves(value: ir.Expr) -> Iterator[ir.Expr]:
    if not isinstance(value.type, Struct | Array):
        yield value
        return
    for leaf in expression_builder.parts(value):
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
        return {"count": _plus(held["count"], -1), "head": self._wrapped(_plus(held["head"], 1))}

    def _wrapped(self, index: ir.Expr) -> ir.Expr:
        """Return an index below twice the size, as one of the register."""
        size = build.number(NUMBER, self.size)
        beyond = build.binary(">=", index, size)
        return build.mux(beyond, build.binary("-", index, size), index)


def _plus(number: ir.Expr, change: int) -> ir.Expr:
    return build.binary("+", number, build.number(NUMBER, change % (1 << NUMBER.width)))
