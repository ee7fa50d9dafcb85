"""Tables of the replication engine that are arrays in the chip: link groups, pruning, ports.

As in the chip's driver, every row exists from the start: to add sets it, to modify needs no row
that was added, to delete sets it to what it was at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.tables.control_table import Scope, Undo
from gradplane.switch.bfruntime.tables.replication import ReplicationTable

STANDING = ("$pre.lag", "$pre.prune", "$pre.port")
"""The names of these tables."""

_PIPE = 1 << 7  # ports of a pipe have the numbers from a multiple of this one


class StandingTable(ReplicationTable):
    """A table whose rows always exist; an untouched one has no ports."""

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self._set(self._number(key), data.values)

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self._number(key)
        old = self._entries.pop(number, None)
        self.engine.renew()
        return lambda: self._put_back(number, old)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        name = self.schema.keys[0].name
        for number in self._rows():
            yield {name: (number,)}, self._shown(self._entry(number))

    def usage(self, scope: Scope) -> int:
        return self.schema.size

    def _entry(self, number: int) -> dict[str, Any]:
        return self._entries.get(number, {})

    def _number(self, key: Key) -> int:
        field, number = self.schema.keys[0].name, self.number(key, self.schema.keys[0].name)
        rows = self._rows()
        if number not in rows:
            raise self.invalid(f"{field} {number} is not within {rows[0]} to {rows[-1]}")
        return number

    def _put_back(self, number: int, old: dict[str, Any] | None) -> None:
        if old is None:
            self._entries.pop(number, None)
        else:
            self._entries[number] = old
        self.engine.renew()

    def _rows(self) -> range | list[int]:
        """Return the numbers of the rows: of `$pre.port`, the ports of each pipe."""
        if self.schema.name != "$pre.port":
            return range(self.schema.size)
        first = range(0, self.engine.ports, _PIPE)
        each = self.schema.size // len(first)
        return [port + local for port in first for local in range(each)]
