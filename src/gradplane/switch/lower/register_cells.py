"""Register cells of struct and tuple types: one number that holds all fields, the first on top.

To the engines and the control plane such a register is one of `bit<W>`. A value is packed for a
write and unpacked after a read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.ir import expression_builder, ops
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Struct, Type, bit_width
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
