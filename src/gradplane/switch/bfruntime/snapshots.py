"""Snapshots: the first packet that satisfies a trigger is captured, with the fields that it has in
each stage, the tables there and what they found; and counters of tables' hits and misses.

While a snapshot is armed or a counter counts, packets run in the interpreter, which shows what
happens to them. A field's value in a stage is the one that the first of the tables from there on
finds: in the first stage, what the parser gives.

The fields are those of a control's parameters. Names are those of the Tofino back end of p4c: the
parameter's, then the fields' with dots; an element of a header stack has $ and its index. Headers
of the first parameter have `$valid`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.bfruntime.schema import DataField, TableSchema, bits, parse_tables
from gradplane.switch.control.names import TableId, name_hash, table_id
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Bits, Fields, Header, Stack, Type
from gradplane.switch.ir.walk import statements
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.stage_probe import ReadValues

Placement = Callable[[ir.Program], Mapping[str, int]]
"""Returns the stage of each table of a program, by its name."""

HIT, MISS, DISABLED = "TBL_HIT", "TBL_MISS", "DISABLED"
_GHOST = "GHOST"
_MICROSECOND = 1000  # ns


@dataclass(frozen=True, slots=True)
class Applied:
    """A table that was looked up, with the fields' values before. None: a miss."""

    table: str
    entry: Entry | None
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Capture:
    """A packet's way through a control: the values at both ends, and the tables between them. A
    timer captures no packet: `first` is None then."""

    first: Mapping[str, int] | None
    tables: Sequence[Applied] = ()
    last: Mapping[str, int] = field(default_factory=dict)

    def values(self, stage: int, stages: Mapping[str, int]) -> Mapping[str, int]:
        """Return the fields' values in a stage, given the stages of tables."""
        if not stage or self.first is None:
            return self.first or {}
        later = (a.values for a in self.tables if stages[a.table] >= stage)
        return next(later, self.last)

    def next_table(self, stage: int, stages: Mapping[str, int]) -> str | None:
        """Return the first table that was looked up behind a stage."""
        return next((a.table for a in self.tables if stages[a.table] > stage), None)


@dataclass(slots=True, eq=False)
class Snapshot:
    """The stages `start` to `end` of pipes, for all of them or for one. trigger: by field, the
    value and its mask. captures: by pipe. due: when the timer ends, None if it is not running."""

    gress: str
    pipes: tuple[int, ...]
    every: bool
    start: int
    end: int
    settings: dict[str, Any]
    trigger: dict[str, tuple[int, int]] = field(default_factory=dict)
    enabled: bool = False
    due: int | None = None
    captures: dict[int, Capture] = field(default_factory=dict)

    def armed(self, pipe: int) -> bool:
        return self.enabled and pipe not in self.captures

    def state(self, pipe: int) -> str:
        if pipe in self.captures:
            return "FULL"
        return "ARMED" if self.enabled else "PASSIVE"

    def enable(self, enabled: bool, now: int) -> None:
        """Wait for a packet, or stop waiting. What was captured before is forgotten when the
        snapshot is enabled."""
        self.enabled, self.due = enabled, self.due_from(now) if enabled else None
        if enabled:
            self.captures.clear()

    def due_from(self, now: int) -> int | None:
        """Return when the timer ends that begins now, None without one."""
        if not self.settings.get("timer_enable"):
            return None
        return now + _MICROSECOND * int(self.settings.get("timer_value_usecs", 0))

    def expire(self, now: int) -> None:
        """End the timer when its time has come."""
        if self.due is not None and now >= self.due:
            self.due = None
            for pipe in self.pipes:
                self.captures.setdefault(pipe, Capture(None))

    def triggered_by(self, values: Mapping[str, int]) -> bool:
        return all(
            not mask or (name in values and values[name] & mask == value & mask)
            for name, (value, mask) in self.trigger.items()
        )


@dataclass(slots=True)
class TableCount:
    """A table's debug counter."""

    type: str = DISABLED
    value: int = 0


@dataclass(slots=True)
class _Way:
    """A packet in a control."""

    fields: Sequence[SnapshotField]
    gress: str
    pipe: int
    read: ReadValues
    first: Mapping[str, int]
    tables: list[Applied]


class Snapshots:
    """The snapshots and debug counters of a running program: a probe and watcher of its packets.

    tables: of each pipeline and gress, in
    their order. place: the placement; by default the tables' order. watch: called with whether
    packets must be watched from now on.
    """

    port: int | None = None

    def __init__(
        self,
        facts: DeviceFacts,
        program: ir.Program,
        clock: Callable[[], int],
        watch: Callable[[bool], None],
        place: Placement | None = None,
    ) -> None:
        self.facts = facts
        self.clock = clock
        self.fields = snapshot_fields(facts.pipelines)
        self.tables = {
            (pipeline.name, gress): list(_tables(control))
            for pipeline in facts.pipelines
            for gress, control in pipeline.controls.items()
        }
        self.known: list[Snapshot] = []
        self.counts: dict[str, TableCount] = {
            name: TableCount() for names in self.tables.values() for name in names
        }
        self._program = program
        self._place = place
        self._stages: Mapping[str, int] | None = None
        self._watch = watch
        self._watching = False
        self._way: _Way | None = None

    @property
    def stages(self) -> Mapping[str, int]:
        """The stage of each table."""
        if self._stages is None:
            last = self.facts.stages - 1
            placed = self._place(self._program) if self._place is not None else {}
            self._stages = {
                name: min(max(placed.get(name, i), 0), last)
                for names in self.tables.values()
                for i, name in enumerate(names)
            }
        return self._stages

    def pipeline(self, pipe: int) -> str:
        """Return the name of a pipe's pipeline."""
        return self.facts.pipeline_of(pipe).name

    def pipes(self, pipeline: str) -> Sequence[int]:
        """Return the pipes that run a pipeline."""
        return [pipe for pipe in range(self.facts.pipes) if self.pipeline(pipe) == pipeline]

    def changed(self) -> None:
        """Follow packets only while that is needed."""
        for snapshot in self.known:
            snapshot.expire(self.clock())
        wanted = any(s.armed(pipe) for s in self.known for pipe in s.pipes)
        wanted = wanted or any(count.type != DISABLED for count in self.counts.values())
        if wanted != self._watching:
            self._watching = wanted
            self._watch(wanted)

    # -- a watcher of packets -------------------------------------------------------------------

    def wants(self, port: int, packet: bytes) -> bool:
        return self._watching

    def deliver(self, trace: object) -> None:
        """Take the trace of a packet, which is not needed."""
        self.changed()

    # -- a probe --------------------------------------------------------------------------------

    def begin(self, gress: str, pipe: int, values: list[Any], read: ReadValues) -> None:
        self._way = None
        if any(s.gress == gress and pipe in s.pipes and s.armed(pipe) for s in self.known):
            fields = self.fields[self.pipeline(pipe), gress]
            self._way = _Way(fields, gress, pipe, read, values_of(fields, values), [])

    def applied(self, table: str, entry: Entry | None) -> None:
        count, way = self.counts[table], self._way
        if count.type == (MISS if entry is None else HIT):
            count.value += 1
        if way is not None:
            way.tables.append(Applied(table, entry, values_of(way.fields, way.read())))

    def end(self) -> None:
        way, self._way = self._way, None
        if way is None:
            return
        now = self.clock()
        capture = Capture(way.first, way.tables, values_of(way.fields, way.read()))
        for snapshot in self.known:
            snapshot.expire(now)
            waits = snapshot.gress == way.gress and way.pipe in snapshot.pipes
            if not waits or not snapshot.armed(way.pipe) or _ghost_only(snapshot):
                continue
            if snapshot.triggered_by(capture.values(snapshot.start, self.stages)):
                snapshot.captures[way.pipe] = capture


def _ghost_only(snapshot: Snapshot) -> bool:
    mode = snapshot.settings.get("ingress_trigger_mode")
    return snapshot.gress == "ingress" and mode == _GHOST


def _tables(control: ir.Control) -> Iterator[str]:
    """Yield the tables that a control applies, each once."""
    applied = (s.table.name for s in statements(control) if isinstance(s, ir.ApplyTable))
    yield from dict.fromkeys(applied)


# -- fields ---------------------------------------------------------------------------------------


_Read = Callable[[Any], int | None]
_HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class SnapshotField:
    """A field of so many bits. read: returns its value, from that of the control's parameters;
    None if it is in an invalid header."""

    id: int
    name: str
    width: int
    read: _Read


def snapshot_fields(
    pipelines: Sequence[PipelineFacts],
) -> dict[tuple[str, str], list[SnapshotField]]:
    """Return the fields by pipeline and gress. Fields of one name have one id in all of them."""
    ids: dict[str, int] = {}
    return {
        (pipeline.name, gress): [
            SnapshotField(ids.setdefault(name, len(ids) + 1), name, width, read)
            for name, width, read in _of_control(control)
        ]
        for pipeline in pipelines
        for gress, control in pipeline.controls.items()
    }


def values_of(fields: Sequence[SnapshotField], parameters: Any) -> Mapping[str, int]:
    """Return the values of fields, by name, but for those in invalid headers."""
    found = ((f.name, f.read(parameters)) for f in fields)
    return {name: value for name, value in found if value is not None}


def _of_control(control: ir.Control) -> Iterator[tuple[str, int, _Read]]:
    for i, param in enumerate(control.params):
        for name, width, read in _leaves(param.var.type, param.name, with_validity=not i):
            yield name, width, _after(i, read)


def _leaves(t: Type, name: str, with_validity: bool) -> Iterator[tuple[str, int, _Read]]:
    """Yield the numbers within a type: names, widths, and how they are read."""
    match t:
        case Bits(width=width):
            yield name, width, _unsigned(width)
        case Header():
            if with_validity:
                yield f"{name}.$valid", 1, lambda header: int(header.valid)
            for i, f in enumerate(t.fields):
                for inner, width, read in _leaves(f.type, f"{name}.{f.name}", False):
                    yield inner, width, _in_header(i, read)
        case Fields():
            for i, f in enumerate(t.fields):
                if not any(a.name == _HIDDEN for a in f.annotations):
                    for inner, width, read in _leaves(f.type, f"{name}.{f.name}", with_validity):
                        yield inner, width, _after(i, read)
        case Array():
            element = _in_stack if isinstance(t, Stack) else _after
            for i in range(t.size):
                for inner, width, read in _leaves(t.element, f"{name}${i}", with_validity):
                    yield inner, width, element(i, read)


def _unsigned(width: int) -> _Read:
    mask = (1 << width) - 1
    return lambda value: int(value) & mask


def _after(i: int, read: _Read) -> _Read:
    return lambda values: read(values[i])


def _in_header(i: int, read: _Read) -> _Read:
    return lambda header: read(header.fields[i]) if header.valid else None


def _in_stack(i: int, read: _Read) -> _Read:
    return lambda stack: read(stack.items[i])


# -- schemas --------------------------------------------------------------------------------------

MASK_ID = 0x8000
"""The distance from a trigger field's id to that of its mask."""
TRIGGER, MASK = "trig.", "_mask"
TABLES_A_STAGE = 16

_CONFIGURATION = """
key SNAPSHOT_ start_stage uint32?~0
key SNAPSHOT_ end_stage uint32?~{last}
data SNAPSHOT_ timer_enable bool~false
data SNAPSHOT_ timer_value_usecs uint32
data SNAPSHOT_ ingress_trigger_mode string~INGRESS:INGRESS,GHOST,INGRESS_GHOST,ANY
data SNAPSHOT_ thread string!:INGRESS,EGRESS,ALL
data SNAPSHOT_ ingress_capture uint32*-
data SNAPSHOT_ egress_capture uint32*-
data SNAPSHOT_ ghost_capture uint32*-
depends {triggers}
"""
_STAGE = "key SNAPSHOT_START_STAGE stage uint32~0"
_TRIGGER = f"""
{_STAGE}
data SNAPSHOT_ enable bool~false
data SNAPSHOT_ trigger_state string*-:PASSIVE,ARMED,FULL
"""
_DATA = f"""
{_STAGE}
data SNAPSHOT_ prev_stage_trigger bool-~false
data SNAPSHOT_ timer_trigger bool-~false
data SNAPSHOT_ local_stage_trigger bool-~false
data SNAPSHOT_ next_table_name string-
data SNAPSHOT_ table_info uint64*-
inner SNAPSHOT_ table_name string-
inner SNAPSHOT_ match_hit_handle uint32-
inner SNAPSHOT_ table_hit bool-
inner SNAPSHOT_ table_inhibited bool-
inner SNAPSHOT_ table_executed bool-
"""
_OF_SECOND_CHIP = """
data SNAPSHOT_ enabled_next_tables string*-
data SNAPSHOT_ global_execute_tables string*-
data SNAPSHOT_ enabled_global_execute_tables string*-
data SNAPSHOT_ long_branch_tables string*-
data SNAPSHOT_ enabled_long_branch_tables string*-
data SNAPSHOT_ deparser_error bool-
data SNAPSHOT_ meter_alu_info uint64*-
inner SNAPSHOT_METER_TABLE_NAME table_name string-
inner SNAPSHOT_ meter_alu_operation_type string-
"""
_LIVENESS = """
key SNAPSHOT_LIVENESS_ field_name string
data SNAPSHOT_LIVENESS_ valid_stages uint32*-
"""
_COUNTERS = """
key DEBUG_COUNTER_TABLE tbl_name string
data DEBUG_COUNTER_ type string~TBL_HIT:{counted}
data DEBUG_COUNTER_ value uint64~0
"""
_COUNTED = "DISABLED,TBL_MISS,TBL_HIT,GW_TBL_MISS,GW_TBL_HIT,GW_TBL_INHIBIT"


def snapshot_tables(facts: DeviceFacts) -> Iterator[TableSchema]:
    """Yield the tables of each pipeline's snapshots, then that of debug counters."""
    known = snapshot_fields(facts.pipelines)
    for pipeline in facts.pipelines:
        name = f"{pipeline.name}.snapshot".removeprefix(facts.label)
        numbers = [_number(facts, control) for control in pipeline.controls.values()]
        triggers = " ".join(str(table_id(TableId.SNAPSHOT_TRIGGER, number)) for number in numbers)
        about = _CONFIGURATION.format(last=facts.stages - 1, triggers=triggers)
        yield _schema(f"{name}.cfg", TableId.SNAPSHOT_CONFIG, numbers[-1], facts.stages, about)
        for number, gress in zip(numbers, pipeline.controls, strict=True):
            own = known[pipeline.name, gress]
            given = (
                DataField(f.id + distance, f"{TRIGGER}{f.name}{suffix}", bits(f.width))
                for f in own for distance, suffix in ((0, ""), (MASK_ID, MASK))
            )  # fmt: skip
            shown = (DataField(f.id, f.name, bits(f.width), read_only=True) for f in own)
            captured = _DATA if facts.family == "tf1" else _DATA + _OF_SECOND_CHIP
            for kind, suffix, size, text, more in (
                (TableId.SNAPSHOT_TRIGGER, "trigger", facts.stages, _TRIGGER, given),
                (TableId.SNAPSHOT_DATA, "data", facts.stages, captured, shown),
                (TableId.SNAPSHOT_LIVENESS, "liveness", 0, _LIVENESS, ()),
            ):
                yield _schema(f"{name}.{gress}_{suffix}", kind, number, size, text, tuple(more))
    size = facts.stages * TABLES_A_STAGE
    yield _schema(
        "tbl_dbg_counter", TableId.DEBUG_COUNTER, 0, size, _COUNTERS.format(counted=_COUNTED)
    )


def _number(facts: DeviceFacts, control: ir.Control) -> int:
    """Return the number of a control's snapshots: of its instance's name behind its full one."""
    return name_hash(f"{facts.full_name(control.name)}.{facts.own_name(control.name)}")


_KINDS = {
    TableId.SNAPSHOT_CONFIG: "SnapshotCfg", TableId.SNAPSHOT_TRIGGER: "SnapshotTrigger",
    TableId.SNAPSHOT_DATA: "SnapshotData", TableId.SNAPSHOT_LIVENESS: "SnapshotLiveness",
    TableId.DEBUG_COUNTER: "TblDbgCnt",
}  # fmt: skip


def _schema(
    name: str, kind: TableId, number: int, size: int, text: str, more: tuple[DataField, ...] = ()
) -> TableSchema:
    (made,) = parse_tables(f"table - {_KINDS[kind]} {table_id(kind, number)} {size}\n{text}")
    return replace(made, name=name, data=(*made.data, *more))
