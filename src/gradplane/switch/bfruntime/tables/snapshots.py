"""The tables of snapshots: configuration, trigger, what was captured, where fields can be used.

A snapshot is one of a range of stages, in one pipe or in all; ranges of one pipe do not overlap.
The trigger's table knows it by its first stage.

Debug counters count a table's hits or misses, by the table's name, or by its stage and its number
there. A counter that is DISABLED, as all are at first, does not count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.snapshots import (
    DISABLED,
    HIT,
    MASK,
    MISS,
    TABLES_A_STAGE,
    TRIGGER,
    Capture,
    Snapshot,
    Snapshots,
    TableCount,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, RowTable, Scope
from gradplane.switch.control.names import FIRST_HANDLE
from gradplane.switch.control.store import Store

NO_TABLE, NO_NEXT_TABLE = "NO_TABLE", "NO_NEXT_TABLE"
NO_OPERATION = "NO_METER_ALU_OPER_TYPE"
_LISTS = (
    "global_execute_tables", "enabled_global_execute_tables", "long_branch_tables",
    "enabled_long_branch_tables",
)  # fmt: skip
Named = Callable[[str], str]
"""Returns the name that clients have for a table of the program."""


class _Probed(RowTable):
    """A table of snapshots or debug counters, for which packets are followed as needed."""

    def __init__(self, schema: TableSchema, store: Store, snapshots: Snapshots) -> None:
        super().__init__(schema, store)
        self.snapshots = snapshots

    def set(self, owner: object, **values: Any) -> None:
        """Set attributes, and follow packets as needed, now and if that is taken back."""
        self.store.journal.record(self.snapshots.changed)  # the last step that is taken back
        for name, value in values.items():
            self.store.journal.set(owner, name, value)
        self.snapshots.changed()


class _SnapshotTable(_Probed):
    """A table of a pipeline's snapshots."""

    def __init__(
        self, schema: TableSchema, store: Store, snapshots: Snapshots, pipeline: str
    ) -> None:
        super().__init__(schema, store, snapshots)
        self.pipeline = pipeline

    def known(self, scope: Scope) -> list[Snapshot]:
        """Return the snapshots of exactly a request's pipes, in the order of their stages."""
        pipes = self.pipes(scope)
        found = [s for s in self.snapshots.known if s.every == scope.all and s.pipes == pipes]
        return sorted(found, key=lambda s: s.start)

    def pipes(self, scope: Scope) -> tuple[int, ...]:
        """Return the pipes of a request that run the pipeline. Raises RpcError if none does."""
        own = self.snapshots.pipes(self.pipeline)
        if scope.all:
            return tuple(own)
        if scope.pipes[0] not in own:
            raise self.other_pipeline(scope.pipes[0], own)
        return tuple(scope.pipes)


class SnapshotConfigTable(_SnapshotTable):
    """The snapshots of ranges of stages."""

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        start, end = self._range(key)
        thread = data.values.get("thread")
        if thread not in ("INGRESS", "EGRESS"):
            raise self.invalid("thread must be INGRESS or EGRESS")
        pipes, known = self.pipes(scope), self.snapshots.known
        for other in known:
            if set(other.pipes) & set(pipes) and start <= other.end and other.start <= end:
                what = f"stages {other.start} to {other.end} have a snapshot, of {other.gress}"
                raise self.exists(f"{what}: delete it")
        made = Snapshot(thread.lower(), pipes, scope.all, start, end, dict(data.values))
        self.set(self.snapshots, known=[*known, made])

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        snapshot = self.row(scope, key)
        thread = data.values.get("thread", snapshot.gress.upper())
        if thread != snapshot.gress.upper():
            raise self.invalid("the thread of a snapshot cannot be changed: delete it first")
        self.store.journal.set(snapshot, "settings", {**snapshot.settings, **data.values})

    def delete(self, scope: Scope, key: Key) -> None:
        snapshot = self.row(scope, key)
        if snapshot.trigger:
            raise self.invalid("delete the trigger's entry first")
        self._remove([snapshot])

    def clear(self, scope: Scope) -> None:
        self._remove(self.known(scope))

    def rows(self, scope: Scope) -> list[Snapshot]:
        return self.known(scope)

    def row(self, scope: Scope, key: Key) -> Snapshot:
        wanted = self._range(key)
        found = next((s for s in self.known(scope) if (s.start, s.end) == wanted), None)
        if found is None:
            raise self.missing(f"there is no snapshot of stages {wanted[0]} to {wanted[1]}")
        return found

    def key(self, row: Snapshot) -> Key:
        return {"start_stage": (row.start,), "end_stage": (row.end,)}

    def shown(self, scope: Scope, row: Snapshot) -> Data:
        self.snapshots.changed()
        values = {"timer_enable": False, "timer_value_usecs": 0, "ingress_trigger_mode": "INGRESS",
                  **row.settings}  # fmt: skip
        if row.captures:
            values[f"{row.gress}_capture"] = sorted(row.captures)
        return Data(None, values)

    def _range(self, key: Key) -> tuple[int, int]:
        start, end = self.number(key, "start_stage"), self.number(key, "end_stage")
        last = self.snapshots.facts.stages - 1
        if not start <= end <= last:
            raise self.invalid(f"stages {start} to {end} are not a range within 0 to {last}")
        return start, end

    def _remove(self, gone: list[Snapshot]) -> None:
        self.set(self.snapshots, known=[s for s in self.snapshots.known if s not in gone])


class SnapshotTriggerTable(_SnapshotTable):
    """The triggers of one gress, by first stage: a snapshot that is enabled waits for a packet
    that has each field's value, as far as its mask says."""

    def __init__(
        self, schema: TableSchema, store: Store, snapshots: Snapshots, pipeline: str, gress: str
    ) -> None:
        super().__init__(schema, store, snapshots, pipeline)
        self.gress = gress
        self._widths = {f.name: f.width for f in snapshots.fields[pipeline, gress]}

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        snapshot, enabled = self._found(scope, key), bool(data.values.get("enable"))
        due = snapshot.due_from(self.snapshots.clock()) if enabled else None
        values = {"trigger": snapshot.trigger | self._trigger(data), "enabled": enabled, "due": due}
        self.set(snapshot, **values, captures={} if enabled else snapshot.captures)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.add(scope, key, data)

    def delete(self, scope: Scope, key: Key) -> None:
        self._disarm([self._found(scope, key)])

    def clear(self, scope: Scope) -> None:
        self._disarm(self.rows(scope))

    def rows(self, scope: Scope) -> list[Snapshot]:
        return [s for s in self.known(scope) if s.gress == self.gress]

    def row(self, scope: Scope, key: Key) -> Snapshot:
        return self._found(scope, key, reads=True)

    def key(self, row: Snapshot) -> Key:
        return {"stage": (row.start,)}

    def shown(self, scope: Scope, row: Snapshot) -> Data:
        self.snapshots.changed()
        pipes = row.pipes if scope.all else self.pipes(scope)
        values: dict[str, Any] = {
            "enable": row.enabled, "trigger_state": [row.state(pipe) for pipe in pipes],
        }  # fmt: skip
        for name, (value, mask) in row.trigger.items():
            values[f"{TRIGGER}{name}"] = value
            values[f"{TRIGGER}{name}{MASK}"] = mask
        return Data(None, values)

    def _found(self, scope: Scope, key: Key, reads: bool = False) -> Snapshot:
        """Return a snapshot; a read finds those of all pipes, too."""
        start = self.number(key)
        everywhere = Scope(range(self.snapshots.facts.pipes), True)
        for wanted in (scope, everywhere) if reads else (scope,):
            for s in self.rows(wanted):
                if s.start == start:
                    return s
        pipes = "all pipes" if scope.all else f"pipe {scope.pipes[0]}"
        raise self.missing(
            f"no {self.gress} snapshot of {pipes} begins at stage {start}: add one to"
            f" {self.pipeline}.snapshot.cfg"
        )

    def _trigger(self, data: Data) -> dict[str, tuple[int, int]]:
        given = {n.removeprefix(TRIGGER): v for n, v in data.values.items() if n != "enable"}
        names = {name if name in self._widths else name.removesuffix(MASK) for name in given}
        full = {name: (1 << self._widths[name]) - 1 for name in names}
        return {
            name: (given.get(name, 0), given.get(f"{name}{MASK}", full[name]))
            for name in sorted(names)
        }

    def _disarm(self, snapshots: list[Snapshot]) -> None:
        for s in snapshots:
            self.set(s, trigger={}, enabled=False, due=None)


class SnapshotDataTable(_SnapshotTable):
    """The captures of one gress' snapshots in one pipe, by stage; read only."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        snapshots: Snapshots,
        pipeline: str,
        gress: str,
        named: Named,
    ) -> None:
        super().__init__(schema, store, snapshots, pipeline)
        self.gress = gress
        self._named = named

    def rows(self, scope: Scope) -> Iterator[tuple[Snapshot, int]]:
        """Yield the stages of snapshots."""
        if scope.all:
            raise self.invalid("a capture is one pipe's: name it in the target (pipe_id)")
        (pipe,) = self.pipes(scope)
        self.snapshots.changed()
        for s in sorted(self.snapshots.known, key=lambda s: s.start):
            if pipe in s.pipes and s.gress == self.gress:
                yield from ((s, stage) for stage in range(s.start, s.end + 1))

    def row(self, scope: Scope, key: Key) -> tuple[Snapshot, int]:
        stage = self.number(key)
        for row in self.rows(scope):
            if row[1] == stage:
                return row
        raise self.missing(f"no {self.gress} snapshot of pipe {scope.pipes[0]} has stage {stage}")

    def key(self, row: tuple[Snapshot, int]) -> Key:
        return {"stage": (row[1],)}

    def usage(self, scope: Scope) -> int:
        own = self.snapshots.pipes(self.pipeline)
        ones = (Scope(range(pipe, pipe + 1), False) for pipe in scope.pipes if pipe in own)
        return sum(1 for one in ones for _ in self.rows(one))

    def shown(self, scope: Scope, row: tuple[Snapshot, int]) -> Data:
        s, stage = row
        capture = s.captures.get(scope.pipes[0])
        way = capture or Capture(None)
        stages = self.snapshots.stages
        captured = way.first is not None
        following = way.next_table(stage, stages) if captured else None
        names = [self._named(following)] if following is not None else []
        values: dict[str, Any] = {
            **way.values(stage, stages),
            "prev_stage_trigger": captured and stage > s.start,
            "local_stage_trigger": captured and stage == s.start,
            "timer_trigger": capture is not None and not captured,
            "next_table_name": names[0] if names else NO_NEXT_TABLE,
            "table_info": list(self._tables(way, stage)) or [_table(NO_TABLE)],
            "enabled_next_tables": names, "deparser_error": False,
            **{name: [] for name in _LISTS},
            "meter_alu_info": [
                {"table_name": NO_TABLE, "meter_alu_operation_type": NO_OPERATION}
            ],
        }  # fmt: skip
        return Data(None, values)

    def _tables(self, way: Capture, stage: int) -> Iterator[Mapping[str, Any]]:
        stages = self.snapshots.stages
        applied = {a.table: a for a in way.tables}
        for name in self.snapshots.tables[self.pipeline, self.gress]:
            if stages[name] == stage:
                found = applied.get(name)
                entry = None if found is None else found.entry
                handle = 0 if entry is None else entry.handle + FIRST_HANDLE
                yield _table(self._named(name), handle, entry is not None, found is not None)


class SnapshotLivenessTable(_SnapshotTable):
    """The stages in which a field can be used: all of them, since none is in a container."""

    def __init__(
        self, schema: TableSchema, store: Store, snapshots: Snapshots, pipeline: str, gress: str
    ) -> None:
        super().__init__(schema, store, snapshots, pipeline)
        self._names = [f.name for f in snapshots.fields[pipeline, gress]]

    def rows(self, scope: Scope) -> list[str]:
        return self._names

    def row(self, scope: Scope, key: Key) -> str:
        match = key["field_name"]
        name = "" if match is None else match[0]
        if name not in self._names:
            raise self.missing(f"there is no field {name!r}; the data table lists the fields")
        return str(name)

    def shown(self, scope: Scope, row: str) -> Data:
        return Data(None, {"valid_stages": list(range(self.snapshots.facts.stages))})

    def usage(self, scope: Scope) -> int:
        return 0


def _table(name: str, handle: int = 0, hit: bool = False, executed: bool = False) -> dict[str, Any]:
    return {"table_name": name, "match_hit_handle": handle, "table_hit": hit,
            "table_inhibited": False, "table_executed": executed}  # fmt: skip


# -- debug counters -------------------------------------------------------------------------------


class _CounterTable(_Probed):
    """Debug counters: one of each table, which is always there. A row is a key."""

    @abstractmethod
    def rows(self, scope: Scope) -> Iterator[Key]: ...

    @abstractmethod
    def count(self, key: Key) -> TableCount | None:
        """Return a counter, None if no table is there. Raises RpcError for a wrong key."""

    def row(self, scope: Scope, key: Key) -> Key:
        return key

    def key(self, row: Key) -> Key:
        return row

    def shown(self, scope: Scope, row: Key) -> Data:
        count = self.count(row) or TableCount()
        return Data(None, {"type": count.type, "value": count.value})

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        count = self.count(key)
        if count is None:
            raise self.missing("no table is there: see pipe.snapshot.ingress_data")
        kind = data.values.get("type", count.type)
        if kind not in (HIT, MISS, DISABLED):
            raise self.refused(f"{kind}: conditions are not counted; use {HIT}, {MISS}, {DISABLED}")
        self._set(count, kind, data.values.get("value", 0 if kind != count.type else count.value))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.add(scope, key, data)

    def reset(self, scope: Scope, key: Key) -> None:
        count = self.count(key)
        if count is not None:
            self._set(count, count.type, 0)

    def clear(self, scope: Scope) -> None:
        for key in self.rows(scope):
            self.reset(scope, key)

    def delete(self, scope: Scope, key: Key) -> None:
        self.add(scope, key, Data(None, {"type": DISABLED, "value": 0}))

    def _set(self, count: TableCount, kind: str, value: int) -> None:
        more = value - count.value
        count.value = value

        def step() -> None:
            count.value -= more  # what packets have counted since stays

        self.store.journal.record(step)
        self.set(count, type=kind)


class DebugCounterTable(_CounterTable):
    """Counters by the names of tables. named: gives the name that clients have for a table. label:
    what the names of the program's tables begin with."""

    def __init__(
        self, schema: TableSchema, store: Store, snapshots: Snapshots, named: Named, label: str
    ) -> None:
        super().__init__(schema, store, snapshots)
        counts = snapshots.counts.items()
        self._counts = {named(name): c for name, c in counts if name.startswith(label)}

    def rows(self, scope: Scope) -> Iterator[Key]:
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

    def rows(self, scope: Scope) -> Iterator[Key]:
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
