"""The fields that a hash takes, and their order, which may change while the program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.hashed_fields import HashedField, configured_fields
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Scope, SettingsTable, Undo
from gradplane.switch.runtime.dynamic_hashes import SPANS, DynamicHash, Spans

Part = dict[str, Any]


class HashConfigurationTable(SettingsTable):
    """The parts of fields that a hash takes, as the default entry: each with its lowest bit, its
    length, and its place among all parts. Fields that an entry leaves out are not hashed."""

    def __init__(
        self, schema: TableSchema, hash: DynamicHash, fields: Sequence[HashedField]
    ) -> None:
        super().__init__(schema)
        self.hash = hash
        self._fields = configured_fields(fields)
        ends = accumulate(f.width for f in self._fields)
        self._ends = dict(zip((f.name for f in self._fields), ends, strict=True))
        self._total = sum(f.width for f in self._fields)
        self._values: dict[str, list[Part]] = self._all()

    def _all(self) -> dict[str, list[Part]]:
        return {
            f.name: [{"start_bit": 0, "length": f.width, "order": i}]
            for i, f in enumerate(self._fields, 1)
        }

    def set_default(self, scope: Scope, data: Data) -> Undo:
        if not scope.all:
            raise self.invalid("all pipes share it: leave the target's pipe at 0xffff")
        values = {
            f.name: [self._part(f, item) for item in data.values[f.name]]
            for f in self._fields
            if f.name in data.values
        }
        spans = self._spans(values)
        if not spans or len(spans) > SPANS or sum(n for _, n in spans) > self._total:
            what = f"choose 1 to {SPANS} parts, of up to {self._total} bits together"
            raise self.invalid(what)
        return self._set(values, spans)

    def reset_default(self, scope: Scope) -> Undo:
        return self._set(self._all(), None)

    def default(self, scope: Scope) -> Data | None:
        return Data(None, dict(self._values))

    def _part(self, field: HashedField, item: Part) -> Part:
        if "order" not in item:
            raise self.invalid(f"data field {field.name}: no value for order")
        start = item.get("start_bit", 0)
        length = item.get("length", field.width - start)
        if not 0 < length <= field.width - start:
            what = f"data field {field.name}: {length} bits from bit {start} on are not within its"
            raise self.invalid(f"{what} {field.width}")
        return {"start_bit": start, "length": length, "order": item["order"]}

    def _spans(self, values: dict[str, list[Part]]) -> Spans:
        return [(start, length) for _, start, length in sorted(self._placed(values))]

    def _placed(self, values: dict[str, list[Part]]) -> Iterator[tuple[int, int, int]]:
        """Yield order, first bit and length of each part."""
        for name, parts in values.items():
            for part in parts:
                start = self._ends[name] - part["start_bit"] - part["length"]
                yield part["order"], start, part["length"]

    def _set(self, values: dict[str, list[Part]], spans: Spans | None) -> Undo:
        old_values, old_spans = self._values, self.hash.spans
        self._values = values
        self.hash.take(spans, self._total)

        def undo() -> None:
            self._values = old_values
            self.hash.take(old_spans, self._total)

        return undo
