"""Fields of the metadata structs that an architecture sets and reads in a packet's memory."""

from __future__ import annotations

from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.packet_context import Context
from gradplane.switch.jit.value_layout import scalar_width


class StructFields:
    """One struct. A program's declaration may lack fields: `put` skips these, `get` gives 0."""

    def __init__(self, unit: Unit, context: Context, name: str) -> None:
        self.unit = unit
        t = context.types[name]
        assert isinstance(t, Fields), t
        offsets = unit.layouts.of(t).offsets
        self._fields: dict[str, tuple[Type, int]] = {
            f.name: (f.type, context.values[name] + offset)
            for f, offset in zip(t.fields, offsets, strict=True)
        }

    def put(self, f: Function, context: Operand, name: str, value: Operand | int) -> None:
        """Sets a field from an i64."""
        if name in self._fields:
            t, offset = self._fields[name]
            number = str(value)
            if isinstance(value, str):
                number = f.resize(value, 64, scalar_width(t))
            Expressions(self.unit, f, {}).put(t, number, f.add(context, offset))

    def get(self, f: Function, context: Operand, name: str) -> Operand:
        """A field as i64."""
        if name not in self._fields:
            return "0"
        t, offset = self._fields[name]
        value = Expressions(self.unit, f, {}).load(t, f.add(context, offset))
        return f.resize(value, scalar_width(t), 64)
