"""Tables that keep what is written: an entry of each place is there from the start.

A chip has many settings that have no effect here. What a table needs beside its schema, which has
the first values, is in its Rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Flags, RowTable, Scope
from gradplane.switch.bfruntime.tables.port_groups import PriorityGroups
from gradplane.switch.bfruntime.tables.traffic_manager import NODES, TrafficManager
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError

Spot = tuple[Any, ...]
"""An entry: its pipe, 0 for a table of the whole chip, and the values of its key."""
Values = dict[str, Any]
CLASSES = 8


@dataclass(frozen=True, slots=True)
class Chip:
    """What the tables of a chip say of it."""

    facts: DeviceFacts
    manager: TrafficManager
    groups: PriorityGroups
    generator: PacketGenerator


def _none(table: KeptTable, spot: Spot) -> Values:
    return {}


def _nothing(table: KeptTable, spot: Spot, values: Values) -> None:
    """Accept all values; tell nobody."""


def _there_is_no(table: KeptTable, name: str, value: Any) -> RpcError:
    return table.missing(f"there is no {name} {value}")


@dataclass(frozen=True, slots=True)
class Rules:
    """What is different in a kind of table.

    first: the first values of an entry that are not the same for all. follows: those that follow
    from others, or counts. check: looks at an entry's new values and raises RpcError. tell: called
    with what is kept of an entry, for those who must know; it notes in the journal what it changes.
    beyond: returns the refusal of a key's field that has no such value. a_pipe: whether each pipe
    has entries. clears: whether the table can be cleared. counts: whether its values are counts,
    which can only be set to 0. reads_only: whether it refuses all writes.
    """

    first: Callable[[KeptTable, Spot], Values] = _none
    follows: Callable[[KeptTable, Spot], Values] = _none
    check: Callable[[KeptTable, Spot, Values], None] = _nothing
    tell: Callable[[KeptTable, Spot, Values], None] = _nothing
    beyond: Callable[[KeptTable, str, Any], RpcError] = _there_is_no
    a_pipe: bool = True
    clears: bool = True
    counts: bool = False
    reads_only: bool = False


_LIKE_MOST = Rules()


class KeptTable(RowTable):
    """A table of settings, or of counts, which stay as they are."""

    def __init__(
        self, schema: TableSchema, store: Store, chip: Chip, rules: Rules = _LIKE_MOST
    ) -> None:
        super().__init__(schema, store)
        self.chip, self.rules = chip, rules
        self._a_pipe = rules.a_pipe and all(f.name != "dev_port" for f in schema.keys)
        self._fields = {
            f.name: f for f in (*schema.data, *(d for a in schema.actions for d in a.data))
        }
        self._written: dict[Spot, Values] = {}

    # -- entries --------------------------------------------------------------------------------

    def rows(self, scope: Scope) -> Iterator[Spot]:
        return self._all(scope.pipes[:1])

    def row(self, scope: Scope, key: Key) -> Spot:
        return self._spots(scope, key)[0]

    def key(self, row: Spot) -> Key:
        return {f.name: (value,) for f, value in zip(self.schema.keys, row[1:], strict=True)}

    def shown(self, scope: Scope, row: Spot) -> Data:
        values = self.values(row)
        name = values.pop("action", None)
        return Data(self.schema.action_named(name) if name else None, values)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self._modify(self._spots(scope, key), data)

    def reset(self, scope: Scope, key: Key) -> None:
        self._set({spot: {} for spot in self._spots(scope, key)})

    def clear(self, scope: Scope) -> None:
        if not self.rules.clears:
            raise self.refused("it cannot be cleared: modify its entries")
        self._set({spot: {} for spot in self._all(scope.pipes)})

    def set_default(self, scope: Scope, data: Data) -> None:
        self._keyless()
        self._modify(list(self._all(scope.pipes)), data)

    def reset_default(self, scope: Scope) -> None:
        self._keyless()
        self.clear(scope)

    def default(self, scope: Scope) -> Data | None:
        return None if self.schema.keys else self.shown(scope, next(self._all(scope.pipes)))

    def _keyless(self) -> None:
        if self.schema.keys:
            raise self.refused("it has no default entry")
        if self.rules.reads_only:
            raise self.refused("it can only be read")

    # -- places ---------------------------------------------------------------------------------

    def _values_of(self, name: str) -> Iterable[Any]:
        if name == "dev_port":
            return self.chip.manager.ports
        found = {"pg_id": self.chip.manager.groups.count, "pg_l1_node": NODES, "cos": CLASSES}
        f = next(f for f in self.schema.keys if f.name == name)
        return range(found.get(name, self.schema.size)) if f.type.bits else f.type.choices

    def _all(self, pipes: range) -> Iterator[Spot]:
        of = pipes if self._a_pipe else (0,)
        yield from product(of, *(self._values_of(f.name) for f in self.schema.keys))

    def _spots(self, scope: Scope, key: Key) -> list[Spot]:
        values = []
        for f in self.schema.keys:
            match = key[f.name]
            assert match is not None
            if match[0] not in self._values_of(f.name):
                raise self.rules.beyond(self, f.name, match[0])
            values.append(match[0])
        return [(pipe, *values) for pipe in (scope.pipes if self._a_pipe else (0,))]

    # -- values ---------------------------------------------------------------------------------

    def values(self, spot: Spot) -> Values:
        """Return an entry's values, "action" among them where the table has actions."""
        found = {name: f.first for name, f in self._fields.items()} | self.rules.first(self, spot)
        kept, follow = self._written.get(spot, {}), self.rules.follows(self, spot)
        if self.rules.counts:
            return {**found, **{n: max(c - kept.get(n, 0), 0) for n, c in follow.items()}}
        return {**found, **kept, **follow}

    def _modify(self, spots: list[Spot], data: Data) -> None:
        for name, f in self._fields.items():
            if f.mandatory and name not in data.values:
                raise self.invalid(f"data field {name} is missing")
        if self.rules.counts:
            self.check_zeros(data)
            self._set({spot: self._counted(spot, data.values) for spot in spots})
            return
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
        for spot in spots:
            self.rules.check(self, spot, values)
        self._set({spot: {**self._written.get(spot, {}), **values} for spot in spots})

    def _counted(self, spot: Spot, names: Iterable[str]) -> Values:
        """Return what is to be taken from counts, which then begin at 0."""
        now = self.rules.follows(self, spot)
        return {**self._written.get(spot, {}), **{n: now[n] for n in names if n in now}}

    def _set(self, values: Mapping[Spot, Values]) -> None:
        cleared = [name for name, f in self._fields.items() if not f.read_only]
        for spot, kept in values.items():
            if self.rules.counts and not kept:
                kept = self._counted(spot, cleared)
            self.store.journal.put(self._written, spot, kept or None)
            self.rules.tell(self, spot, kept)
