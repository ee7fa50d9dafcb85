"""A register's cell as data fields: the number of a struct is its fields, the first one in the
upper bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import invalid
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, bit_width


class CellFields:
    """The data fields of a register's cells, each with a list of values: one a pipe."""

    def __init__(self, schema: TableSchema, register: ir.ExternInstance) -> None:
        self._schema = schema
        self._fields = [f for f in schema.data if f.a_value_a_pipe]
        t = register.type_args[0]
        self._bool = not isinstance(t, Bits | Fields)
        widths = [max(1, f.type.bits) for f in self._fields]
        self._shifts = [sum(widths[i + 1 :]) for i in range(len(widths))]
        self._widths = widths
        whole = bit_width(t) or sum(widths)
        self._total = whole
        self._signed = isinstance(t, Bits) and t.signed

    def changed(self, values: Mapping[str, Any], former: Sequence[int]) -> list[int]:
        """Return the cell's new value in each of the pipes that data are for, from its former ones.

        One value is for all pipes. A field that is not given keeps its value. Raises RpcError.
        """
        if not any(f.name in values for f in self._fields):
            return list(former)
        return [self._value(values, pipe, old) for pipe, old in enumerate(former)]

    def _value(self, values: Mapping[str, Any], pipe: int, former: int) -> int:
        found = former & ((1 << self._total) - 1)
        for f, shift, width in zip(self._fields, self._shifts, self._widths, strict=True):
            given = values.get(f.name)
            if given is None:
                continue
            if len(given) != 1 and pipe >= len(given):
                what = f"data field {f.name}: {len(given)} values, but pipe {pipe} needs one"
                raise invalid(self._schema, what)
            number = int(given[0] if len(given) == 1 else given[pipe])
            mask = ((1 << width) - 1) << shift
            found = found & ~mask | number << shift & mask
        if self._signed and found >> (self._total - 1):
            found -= 1 << self._total
        return found

    def fields(self, cells: Sequence[int]) -> dict[str, list[Any]]:
        """Return the fields of a cell, from its value in each pipe."""
        out: dict[str, list[Any]] = {}
        for f, shift, width in zip(self._fields, self._shifts, self._widths, strict=True):
            numbers = [cell >> shift & (1 << width) - 1 for cell in cells]
            out[f.name] = [bool(n) for n in numbers] if f.type.name == "bool" else numbers
        return out
