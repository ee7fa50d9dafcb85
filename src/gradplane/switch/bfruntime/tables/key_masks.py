"""A table's attribute DynamicKeyMask: masks of its exact keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Key, invalid
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Undo
from gradplane.switch.runtime.arrays import Register


class KeyMasks:
    """The masks of some of a table's key fields: by name, the registers that hold one a pipe."""

    def __init__(self, schema: TableSchema, registers: Mapping[str, Sequence[Register]]) -> None:
        self._schema = schema
        self._registers = registers
        self._fields = {f.id: f for f in schema.keys if f.name in registers}

    def masked(self, key: Key) -> Key:
        """Return a key without the bits that packets are not compared in."""
        found = dict(key)
        for name, registers in self._registers.items():
            match = found[name]
            assert match is not None, name
            found[name] = (match[0] & int(registers[0].read(0)),)
        return found

    def show(self, message: Any) -> None:
        """Fill in a DynKeyMask."""
        for number, field in self._fields.items():
            value = int(self._registers[field.name][0].read(0))
            size = -(-field.type.bits // 8)
            message.fields.add(field_id=number, mask=value.to_bytes(size, "big"))

    def set(self, message: Any) -> Undo:
        """Set the masks from a DynKeyMask; a field without one is compared in full.

        Raises RpcError for fields that have no mask, and for masks that are too wide.
        """
        masks = {name: (1 << self._width(name)) - 1 for name in self._registers}
        for given in message.fields:
            masks.update([self._mask(given)])
        old = {name: int(registers[0].read(0)) for name, registers in self._registers.items()}
        self._write(masks)
        return lambda: self._write(old)

    def _mask(self, given: Any) -> tuple[str, int]:
        field = self._fields.get(given.field_id)
        if field is None:
            known = ", ".join(f"{f.id} ({f.name})" for f in self._fields.values()) or "none"
            what = f"key field {given.field_id} has no mask; those of exact keys: {known}"
            raise invalid(self._schema, what)
        mask = int.from_bytes(given.mask, "big")
        if mask >> field.type.bits:
            what = f"the mask of key field {field.name} has more than {field.type.bits} bits"
            raise invalid(self._schema, what)
        return field.name, mask

    def _width(self, name: str) -> int:
        return next(f.type.bits for f in self._fields.values() if f.name == name)

    def _write(self, masks: Mapping[str, int]) -> None:
        for name, mask in masks.items():
            for register in self._registers[name]:
                register.write(0, mask)
