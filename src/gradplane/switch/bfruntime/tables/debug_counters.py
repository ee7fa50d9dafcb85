"""The tables of debug counters, which count a table's hits or misses: by the table's name, or by
its stage and its number there. A counter that is DISABLED, as all are at first, does not count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.snapshots import DISABLED, HIT, MISS, Snapshots, TableCount
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
    nothing,
)

TABLES_A_STAGE = 16


class _CounterTable(ControlTable, ABC):
    def __init__(self, schema: TableSchema, snapshots: Snapshots) -> None:
        super().__init__(schema)
        self.snapshots = snapshots

    @abstractmethod
    def keys(self) -> Iterator[Key]:
        """Yield the keys of the entries, which are always there."""

    @abstractmethod
    def count(self, key: Key) -> TableCount | None:
        """Return a counter, None if no table is there. Raises RpcError for a wrong key."""

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        count = self.count(key)
        if count is None:
            raise self.missing("no table is there: see pipe.snapshot.ingress_data")
        kind = data.values.get("type", count.type)
        if kind not in (HIT, MISS, DISABLED):
            raise self.refused(f"{kind}: conditions are not counted; use {HIT}, {MISS}, {DISABLED}")
        old = count.type, count.value
        count.type, count.value = kind, data.values.get("value", 0 if kind != old[0] else old[1])
        self.snapshots.changed()

        def undo() -> None:
            count.type, count.value = old
            self.snapshots.changed()

        return undo

    def reset(self, scope: Scope, key: Key) -> Undo:
        if self.count(key) is None:
            return nothing
        return self.modify(scope, key, Data(None, {"value": 0}), Flags())

    def clear(self, scope: Scope) -> Undo:
        steps = [self.reset(scope, key) for key in self.keys()]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def delete(self, scope: Scope, key: Key) -> Undo:
        return self.modify(scope, key, Data(None, {"type": DISABLED, "value": 0}), Flags())

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        count = self.count(key) or TableCount()
        return key, Data(None, {"type": count.type, "value": count.value})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for key in self.keys():
            yield self.find(scope, key)


class DebugCounterTable(_CounterTable):
    """Counters by the names of tables. named: gives the name that clients have for a table."""

    def __init__(
        self, schema: TableSchema, snapshots: Snapshots, named: Callable[[str], str]
    ) -> None:
        super().__init__(schema, snapshots)
        self._counts = {named(name): count for name, count in snapshots.counts.items()}

    def keys(self) -> Iterator[Key]:
        for name in self._counts:
            yield {"tbl_name": (name,)}

    def count(self, key: Key) -> TableCount:
        match = key["tbl_name"]
        name = "" if match is None else str(match[0])
        ends = [full for full in self._counts if full == name or full.endswith(f".{name}")]
        if len(ends) != 1:
            raise self.missing(f"there is no table {name!r}; tables: {', '.join(self._counts)}")
        return self._counts[ends[0]]

    def usage(self, scope: Scope) -> int:
        return sum(count.type != DISABLED for count in self._counts.values())


class StageCounterTable(_CounterTable):
    """Counters by stage and number, the order of the stage's tables. They are those of the first
    pipe's pipeline."""

    def keys(self) -> Iterator[Key]:
        for stage in range(self.snapshots.facts.stages):
            for i in range(TABLES_A_STAGE):
                yield {"stage": (stage,), "log_tbl": (i,)}

    def count(self, key: Key) -> TableCount | None:
        stage, number = self.number(key, "stage"), self.number(key, "log_tbl")
        if stage >= self.snapshots.facts.stages or number >= TABLES_A_STAGE:
            last = self.snapshots.facts.stages - 1
            raise self.missing(f"stages are 0 to {last}, with tables 0 to {TABLES_A_STAGE - 1}")
        there = self._tables(stage)
        return self.snapshots.counts[there[number]] if number < len(there) else None

    def _tables(self, stage: int) -> list[str]:
        stages, own = self.snapshots.stages, self.snapshots.pipeline(0)
        return [
            name
            for (pipeline, _), names in self.snapshots.tables.items()
            for name in names
            if pipeline == own and stages[name] == stage
        ]

    def usage(self, scope: Scope) -> int:
        return self.snapshots.facts.stages * TABLES_A_STAGE


class ContainerTable(ControlTable):
    """The captured values of the chip's containers (PHV), which fields do not have here."""

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        raise self._elsewhere()

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        raise self._elsewhere()

    def usage(self, scope: Scope) -> int:
        return self.schema.size

    def _elsewhere(self) -> Any:
        return self.refused(
            "fields are in no containers here: pipe.snapshot.ingress_data and .egress_data have"
            " them by name"
        )
