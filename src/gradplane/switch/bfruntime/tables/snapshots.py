"""The tables of snapshots: configuration, trigger, what was captured, where fields can be used.

A snapshot is one of a range of stages, in one pipe or in all; ranges of one pipe do not overlap.
The trigger's table knows it by its first stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.snapshot_schema import MASK, TRIGGER
from gradplane.switch.bfruntime.snapshots import (
    Capture,
    Snapshot,
    Snapshots,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
from gradplane.switch.bfruntime.tables.match_table import FIRST_HANDLE
from gradplane.switch.p4runtime.status_errors import RpcError

NO_TABLE, NO_NEXT_TABLE = "NO_TABLE", "NO_NEXT_TABLE"
NO_OPERATION = "NO_METER_ALU_OPER_TYPE"
_LISTS = (
    "global_execute_tables", "enabled_global_execute_tables", "long_branch_tables",
    "enabled_long_branch_tables",
)  # fmt: skip
Named = Callable[[str], str]
"""Returns the name that clients have for a table of the program."""


class _SnapshotTable(ControlTable):
    """A table of a pipeline's snapshots."""

    def __init__(self, schema: TableSchema, snapshots: Snapshots, pipeline: str) -> None:
        super().__init__(schema)
        self.snapshots = snapshots
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

    def usage(self, scope: Scope) -> int:
        return sum(1 for _ in self.entries(scope))

    def changed(self, undo: Undo) -> Undo:
        """Follow packets as needed, now and after the change is undone."""
        self.snapshots.changed()

        def undone() -> None:
            undo()
            self.snapshots.changed()

        return undone


class SnapshotConfigTable(_SnapshotTable):
    """The snapshots of ranges of stages."""

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        start, end = self._range(key)
        thread = data.values.get("thread")
        if thread not in ("INGRESS", "EGRESS"):
            raise self.invalid("thread must be INGRESS or EGRESS")
        pipes, known = self.pipes(scope), self.snapshots.known
        for other in known:
            if set(other.pipes) & set(pipes) and start <= other.end and other.start <= end:
                what = f"stages {other.start} to {other.end} have a snapshot, of {other.gress}"
                raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: {what}: delete it")
        made = Snapshot(thread.lower(), pipes, scope.all, start, end, dict(data.values))
        known.append(made)
        return self.changed(lambda: known.remove(made))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        snapshot = self._found(scope, key)
        thread = data.values.get("thread", snapshot.gress.upper())
        if thread != snapshot.gress.upper():
            raise self.invalid("the thread of a snapshot cannot be changed: delete it first")
        old, snapshot.settings = snapshot.settings, {**snapshot.settings, **data.values}
        return lambda: setattr(snapshot, "settings", old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        snapshot = self._found(scope, key)
        if snapshot.trigger:
            raise self.invalid("delete the trigger's entry first")
        return self._without([snapshot])

    def clear(self, scope: Scope) -> Undo:
        return self._without(self.known(scope))

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self._found(scope, key))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for s in self.known(scope):
            yield {"start_stage": (s.start,), "end_stage": (s.end,)}, self._shown(s)

    def _range(self, key: Key) -> tuple[int, int]:
        start, end = self.number(key, "start_stage"), self.number(key, "end_stage")
        last = self.snapshots.facts.stages - 1
        if not start <= end <= last:
            raise self.invalid(f"stages {start} to {end} are not a range within 0 to {last}")
        return start, end

    def _found(self, scope: Scope, key: Key) -> Snapshot:
        wanted = self._range(key)
        found = next((s for s in self.known(scope) if (s.start, s.end) == wanted), None)
        if found is None:
            raise self.missing(f"there is no snapshot of stages {wanted[0]} to {wanted[1]}")
        return found

    def _shown(self, s: Snapshot) -> Data:
        self.snapshots.changed()
        values = {"timer_enable": False, "timer_value_usecs": 0, "ingress_trigger_mode": "INGRESS",
                  **s.settings}  # fmt: skip
        if s.captures:
            values[f"{s.gress}_capture"] = sorted(s.captures)
        return Data(None, values)

    def _without(self, gone: list[Snapshot]) -> Undo:
        known = self.snapshots.known
        old = list(known)
        known[:] = [s for s in known if s not in gone]

        def undo() -> None:
            known[:] = old

        return self.changed(undo)


class SnapshotTriggerTable(_SnapshotTable):
    """The triggers of one gress, by first stage: a snapshot that is enabled waits for a packet
    that has each field's value, as far as its mask says."""

    def __init__(
        self, schema: TableSchema, snapshots: Snapshots, pipeline: str, gress: str
    ) -> None:
        super().__init__(schema, snapshots, pipeline)
        self.gress = gress
        self._widths = {f.name: f.width for f in snapshots.fields[pipeline, gress]}

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        snapshot = self._found(scope, key)
        old = dict(snapshot.trigger), snapshot.enabled, snapshot.due, dict(snapshot.captures)
        snapshot.trigger |= self._trigger(data)
        snapshot.enable(bool(data.values.get("enable")), self.snapshots.clock())

        def undo() -> None:
            snapshot.trigger, snapshot.enabled, snapshot.due, snapshot.captures = old

        return self.changed(undo)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        return self.add(scope, key, data)

    def delete(self, scope: Scope, key: Key) -> Undo:
        return self._disarm([self._found(scope, key)])

    def clear(self, scope: Scope) -> Undo:
        return self._disarm([s for s in self.known(scope) if s.gress == self.gress])

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(scope, self._found(scope, key, reads=True))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for s in self.known(scope):
            if s.gress == self.gress:
                yield {"stage": (s.start,)}, self._shown(scope, s)

    def _found(self, scope: Scope, key: Key, reads: bool = False) -> Snapshot:
        """Return a snapshot; a read finds those of all pipes, too."""
        start = self.number(key, "stage")
        everywhere = Scope(range(self.snapshots.facts.pipes), True)
        for wanted in (scope, everywhere) if reads else (scope,):
            for s in self.known(wanted):
                if s.start == start and s.gress == self.gress:
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

    def _disarm(self, snapshots: list[Snapshot]) -> Undo:
        old = [(s, s.trigger, s.enabled, s.due) for s in snapshots]
        for s in snapshots:
            s.trigger, s.enabled, s.due = {}, False, None

        def undo() -> None:
            for s, trigger, enabled, due in old:
                s.trigger, s.enabled, s.due = trigger, enabled, due

        return self.changed(undo)

    def _shown(self, scope: Scope, s: Snapshot) -> Data:
        self.snapshots.changed()
        pipes = s.pipes if scope.all else self.pipes(scope)
        values: dict[str, Any] = {
            "enable": s.enabled, "trigger_state": [s.state(pipe) for pipe in pipes],
        }  # fmt: skip
        for name, (value, mask) in s.trigger.items():
            values[f"{TRIGGER}{name}"] = value
            values[f"{TRIGGER}{name}{MASK}"] = mask
        return Data(None, values)


class SnapshotDataTable(_SnapshotTable):
    """What the snapshots of one gress captured, by stage; read only, of one pipe."""

    def __init__(
        self, schema: TableSchema, snapshots: Snapshots, pipeline: str, gress: str, named: Named
    ) -> None:
        super().__init__(schema, snapshots, pipeline)
        self.gress = gress
        self._named = named

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        stage = self.number(key, "stage")
        for known, data in self.entries(scope):
            if known["stage"] == (stage,):
                return known, data
        raise self.missing(f"no {self.gress} snapshot of pipe {scope.pipes[0]} has stage {stage}")

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        if scope.all:
            raise self.invalid("a capture is one pipe's: name it in the target (pipe_id)")
        (pipe,) = self.pipes(scope)
        self.snapshots.changed()
        for s in sorted(self.snapshots.known, key=lambda s: s.start):
            if pipe in s.pipes and s.gress == self.gress:
                for stage in range(s.start, s.end + 1):
                    yield {"stage": (stage,)}, self._shown(s, s.captures.get(pipe), stage)

    def usage(self, scope: Scope) -> int:
        own = self.snapshots.pipes(self.pipeline)
        ones = (Scope(range(pipe, pipe + 1), False) for pipe in scope.pipes if pipe in own)
        return sum(1 for one in ones for _ in self.entries(one))

    def _shown(self, s: Snapshot, capture: Capture | None, stage: int) -> Data:
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
        self, schema: TableSchema, snapshots: Snapshots, pipeline: str, gress: str
    ) -> None:
        super().__init__(schema, snapshots, pipeline)
        self._names = [f.name for f in snapshots.fields[pipeline, gress]]

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        match = key["field_name"]
        if match is None or match[0] not in self._names:
            name = "" if match is None else match[0]
            raise self.missing(f"there is no field {name!r}; the data table lists the fields")
        return key, Data(None, {"valid_stages": list(range(self.snapshots.facts.stages))})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for name in self._names:
            yield self.find(scope, {"field_name": (name,)})

    def usage(self, scope: Scope) -> int:
        return 0


def _table(name: str, handle: int = 0, hit: bool = False, executed: bool = False) -> dict[str, Any]:
    return {"table_name": name, "match_hit_handle": handle, "table_hit": hit,
            "table_inhibited": False, "table_executed": executed}  # fmt: skip
