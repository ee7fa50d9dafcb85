"""Arrays of low-pass filters and of weighted random early drop."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.arrays import ArrayTable
from gradplane.switch.bfruntime.tables.control_table import Scope, Undo
from gradplane.switch.bfruntime.tables.filter_fields import FilterFields
from gradplane.switch.runtime.filters import Filter


class FilterTable(ArrayTable):
    """A filter's cells; `clock`, in ns, starts them. A write sets all fields of a cell."""

    def __init__(
        self, schema: TableSchema, filter: Filter, fields: FilterFields, clock: Callable[[], int]
    ) -> None:
        super().__init__(schema)
        self.filter = filter
        self._fields = fields
        self._clock = clock

    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        old = self.filter.read(index)
        self.filter.write(index, self._fields.changed(old, data.values), self._clock())
        return lambda: self.filter.write(index, old, self._clock())

    def read(self, scope: Scope, index: int) -> Data:
        return Data(None, self._fields.values(self.filter.read(index)))

    def initialise(self, scope: Scope, index: int) -> Undo:
        old = self.filter.read(index)
        self.filter.write(index, None)
        return lambda: self.filter.write(index, old, self._clock())
