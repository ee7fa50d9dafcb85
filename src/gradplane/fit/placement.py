"""The placement of logical tables in stages: a list schedule, the longest chains first.

Ingress and egress share the stages. Tables that share a register are placed together. A table
without one is split over stages where its memory does not fit into one.

The bytes of containers that several fields share: an ALU writes one in a stage.

The chip's compiler puts metadata of fewer than eight bits together, and keeps a byte of a header or
of a larger field in one container. Tables that set bits of one byte are in different stages, unless
no packet comes through both.

The pragma `stage` says where a table, or a number of its entries, shall be:
`@stage(4, 1024) @stage(6)` asks for 1024 entries in stage 4 and the rest in stage 6. As for the
chip's compiler, a table is in no stage before the one asked for, and in a later one if it must.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from gradplane.fit.chip_resources import STAGE, ChipResources, Overrun
from gradplane.fit.dependencies import Dependency
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.places import Place, bytes_of, header_bytes
from gradplane.fit.table_formats import (
    Demand,
    demand,
    shared,
    shared_memory,
    size_of,
    splittable,
    step_of,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation
from gradplane.switch.source import NOWHERE, Span

NAME = "stage"
FLAGS = {"immediate", "noimmediate"}
WAY_OUT = "write @stage(number), or @stage(number, entries), or leave the pragma out"


@dataclass(frozen=True, slots=True)
class AskedStage:
    """A stage that a table asks for; entries: how many there, 0 for all that are left."""

    stage: int
    entries: int
    span: Span


class _Wrong(Exception):
    """An error in a pragma."""


def asked_stages(table: ir.Table | None, chip: ChipResources) -> list[AskedStage]:
    """Return the stages that a table asks for, the first one first; pragmas that are wrong ask for
    nothing."""
    found = []
    for pragma in _pragmas(table):
        try:
            found.append(_read(pragma, chip))
        except _Wrong:
            continue
    return sorted(found, key=lambda asked: asked.stage)


def wrong_stages(tables: Iterable[LogicalTable], chip: ChipResources) -> Iterator[Overrun]:
    """Yield what is wrong with the pragmas of tables, with their lines."""
    for table in dict.fromkeys(t.table for t in tables if t.table is not None):
        for pragma in _pragmas(table):
            try:
                _read(pragma, chip)
            except _Wrong as wrong:
                yield Overrun("stages", str(wrong), pragma.span or table.span, WAY_OUT)
        asked = asked_stages(table, chip)
        placed = sum(one.entries for one in asked)
        if placed > size_of(table):
            what = f"@stage places {placed} entries of {table.name}, its size is {size_of(table)}"
            way_out = "place fewer entries, or make the table larger"
            yield Overrun("stages", what, asked[-1].span, way_out)


def _pragmas(table: ir.Table | None) -> list[Annotation]:
    return [a for a in table.annotations if a.name == NAME] if table is not None else []


def _read(pragma: Annotation, chip: ChipResources) -> AskedStage:
    """Return what a pragma asks for; its flags, of where action data is, change no estimate."""
    text = pragma.body.replace("- ", "-").replace(" ,", ",")
    given = f"@{NAME}({text})"
    stages = f"{chip.title} has stages 0 to {chip.stages - 1}"
    match _values(text):
        case [int(stage), int(entries), *flags]:
            pass
        case [int(stage), *flags]:
            entries = 0
        case _:
            raise _Wrong(f"{given} does not begin with the number of a stage: {stages}")
    if not 0 <= stage < chip.stages:
        raise _Wrong(f"{given} names no stage: {stages}")
    if entries < 0:
        raise _Wrong(f"{given} asks for fewer than 0 entries")
    if not set(flags) <= FLAGS:
        allowed = 'a stage, a number of entries, "immediate" and "noimmediate"'
        raise _Wrong(f"{given} has other values than {allowed}")
    return AskedStage(stage, entries, pragma.span or NOWHERE)


def _values(text: str) -> list[int | str]:
    """Return the values in the text of a pragma; those of `@pragma stage 4 1024` have no commas."""
    return [_value(word) for word in text.replace(",", " ").split()]


def _value(word: str) -> int | str:
    try:
        return int(word, 0)
    except ValueError:
        return word.strip('"')


MOST_STAGES = 96
"""Where the placement gives up: far more than any chip has."""
MOST_ENTRIES = 1 << 20
"""More than any stage has room for."""


@dataclass(slots=True)
class Part:
    """A table in a stage, or a part of it: entries there."""

    table: LogicalTable
    stage: int
    entries: int
    taken: Demand


@dataclass(slots=True)
class Stage:
    """A stage: the parts there, and what is taken."""

    number: int
    parts: list[Part] = field(default_factory=list)
    taken: Demand = field(default_factory=Demand)


@dataclass(slots=True)
class Placement:
    """Where tables are. oversized: those that even an empty stage has too little for, with how much
    of it they need, by resource, and the place in the source. cycles: tables with one register that
    must be in one stage and after each other, with the dependency."""

    stages: list[Stage]
    oversized: list[tuple[LogicalTable, dict[str, int], Span]]
    cycles: list[Dependency]

    def stage_of(self, table: LogicalTable) -> int:
        """Return the last stage in which a table is, -1 if it is in none."""
        found = [s.number for s in self.stages for part in s.parts if part.table is table]
        return max(found, default=-1)

    def first_stage_of(self, table: LogicalTable) -> int:
        found = [s.number for s in self.stages for part in s.parts if part.table is table]
        return min(found, default=-1)


Need = tuple[list[tuple[LogicalTable, int, Demand]], Demand]
"""The demand of each table of a group in a stage, with its entries there; and the sum, with the
memory that they share."""


@dataclass(slots=True, eq=False)
class _Group:
    """Tables that are placed in one stage, because they use one register."""

    tables: list[LogicalTable]
    memory: list[ir.ExternInstance]
    before: list[tuple[_Group, int]] = field(default_factory=list)
    tail: int = 0
    asked: list[list[AskedStage]] = field(default_factory=list)  # of each table
    left: int = 0  # entries not yet placed, of a table that can be split
    stage: int = -1
    needs: dict[int | None, Need] = field(default_factory=dict)  # by entries, once computed

    @property
    def order(self) -> int:
        return self.tables[0].order

    def asked_from(self, stage: int) -> list[AskedStage]:
        """Return, for each table that asks for stages, the first of them from `stage` on."""
        later = ([a for a in asked if a.stage >= stage] for asked in self.asked)
        return [found[0] for found in later if found]


def place(
    tables: Sequence[LogicalTable],
    edges: Sequence[Dependency],
    chip: ChipResources,
    on_placed: Callable[[int], None] = lambda placed: None,
) -> Placement:
    """Return a placement of tables, in as many stages as they take.

    Fields that share bytes are in the way of few stages; where these are too many, the chip's
    compiler takes the fields apart. on_placed: called before each stage with the number of tables
    that are placed."""
    placement = _place(tables, edges, chip, shared_bytes(tables), on_placed)
    if len(placement.stages) > chip.stages:
        return _place(tables, edges, chip, {}, on_placed)
    return placement


def _place(
    tables: Sequence[LogicalTable],
    edges: Sequence[Dependency],
    chip: ChipResources,
    sets: Mapping[LogicalTable, Set[Hashable]],
    on_placed: Callable[[int], None],
) -> Placement:
    groups, cycles = _groups(tables, edges)
    _tails(groups)
    for group in groups:
        group.asked = [asked_stages(t.table, chip) for t in group.tables]
    waiting = dict.fromkeys(groups)  # in order, so that equal groups are placed in theirs
    placement = Placement([], [], cycles)
    while waiting and len(placement.stages) < MOST_STAGES:
        on_placed(len(tables) - sum(len(group.tables) for group in waiting))
        stage = Stage(len(placement.stages))
        placement.stages.append(stage)
        while True:
            ready = [g for g in waiting if _ready(g, stage.number)]
            ready.sort(key=lambda g: (-g.tail, g.order))
            ready = [g for g in ready if not _meets(g, stage, sets)]
            if not any(_put(group, stage, placement, waiting) for group in ready):
                break
    return placement


def _groups(
    tables: Sequence[LogicalTable], edges: Sequence[Dependency]
) -> tuple[list[_Group], list[Dependency]]:
    """Return the groups with their dependencies, and the dependencies inside a group."""
    owner: dict[LogicalTable, _Group] = {t: _Group([t], []) for t in tables}
    for instance, users in _users(tables).items():
        first = owner[users[0]]
        for table in users[1:]:
            other = owner[table]
            if other is not first:
                first.tables += other.tables
                first.memory += other.memory
                for moved in other.tables:
                    owner[moved] = first
        first.memory.append(instance)
    groups = list(dict.fromkeys(owner.values()))
    for group in groups:
        group.tables.sort(key=lambda t: t.order)
        only = group.tables[0]
        if len(group.tables) == 1 and splittable(only) and only.table is not None:
            group.left = size_of(only.table)
    cycles: list[Dependency] = []
    between: dict[tuple[_Group, _Group], Dependency] = {}
    for edge in edges:
        pair = owner[edge.before], owner[edge.after]
        if pair[0] is pair[1]:
            cycles += [edge] if edge.distance else []
        elif pair not in between or between[pair].distance < edge.distance:
            between[pair] = edge
    circular = _circular(groups, between)
    # A circle of single tables is of one that a packet passes twice, an error of its own.
    shared = any(len(group.tables) > 1 for group in circular)
    for (before, after), edge in between.items():
        if before in circular and after in circular and before.order > after.order:
            cycles += [edge] if shared else []
        else:
            after.before.append((before, edge.distance))
    return groups, cycles


def _circular(groups: Sequence[_Group], pairs: Iterable[tuple[_Group, _Group]]) -> set[_Group]:
    """Return the groups that wait for each other in a circle, and those behind them."""
    after: dict[_Group, list[_Group]] = {}
    waits: dict[_Group, int] = dict.fromkeys(groups, 0)
    for before, group in pairs:
        after.setdefault(before, []).append(group)
        waits[group] += 1
    free = [g for g in groups if not waits[g]]
    for group in free:
        for follower in after.get(group, ()):
            waits[follower] -= 1
            if not waits[follower]:
                free.append(follower)
    return set(groups) - set(free)


def _users(tables: Sequence[LogicalTable]) -> Mapping[ir.ExternInstance, list[LogicalTable]]:
    found: dict[ir.ExternInstance, list[LogicalTable]] = {}
    for table in tables:
        for instance in shared([table]):
            found.setdefault(instance, []).append(table)
    return found


def _tails(groups: Iterable[_Group]) -> None:
    """Set how many stages must follow each group."""
    after: dict[_Group, list[tuple[_Group, int]]] = {}
    for group in groups:
        for before, distance in group.before:
            after.setdefault(before, []).append((group, distance))
    done: dict[_Group, int] = {}

    def settle(start: _Group) -> None:
        stack = [start]
        while stack:
            group = stack[-1]
            missing = [g for g, _ in after.get(group, ()) if g not in done]
            if missing:
                stack += missing
                continue
            stack.pop()
            done[group] = max((done[g] + d for g, d in after.get(group, ())), default=0)

    for group in groups:
        settle(group)
        group.tail = done[group]


def _ready(group: _Group, stage: int) -> bool:
    return all(g.stage >= 0 and g.stage + d <= stage for g, d in group.before) and all(
        asked.stage == stage for asked in group.asked_from(stage)
    )


def _meets(group: _Group, stage: Stage, sets: Mapping[LogicalTable, Set[Hashable]]) -> bool:
    """Return whether a table of a group and one in a stage set bits of one byte."""
    none: Set[Hashable] = frozenset()
    return any(
        sets.get(table, none) & sets.get(part.table, none) and not table.excludes(part.table)
        for table in group.tables
        for part in stage.parts
        if part.table is not table
    )


def _put(group: _Group, stage: Stage, placement: Placement, waiting: dict[_Group, None]) -> bool:
    """Place a group, or a part of its table, if the stage has room; return whether anything
    was placed."""
    if group.left and any(part.table is group.tables[0] for part in stage.parts):
        return False
    entries = _wanted(group, stage.number)
    each, need = _need(group, entries or None)
    if not stage.taken.overflows(need):
        _take(stage, each, need)
        group.left -= entries
        if not group.left:
            group.stage = stage.number
            waiting.pop(group, None)
        return True
    if group.left:
        fitting = _fitting(group, stage, entries)
        if fitting:
            _take(stage, *_need(group, fitting))
            group.left -= fitting
            return True
    if not stage.parts:  # not even an empty stage has room
        totals = need.totals()
        lacking = {name: totals[name] for name in need.lacking()}
        place = group.memory[0] if group.memory else group.tables[0]
        placement.oversized.append((group.tables[0], lacking, place.span))
        _take(stage, each, need)
        group.stage = stage.number
        waiting.pop(group, None)
        return True
    return False


def _wanted(group: _Group, stage: int) -> int:
    """Return how many entries of a table that can be split shall be in a stage, 0 for other
    tables: as many as its pragma asks for, or all that are left."""
    asked = [a.entries for a in group.asked_from(stage) if a.entries]
    return min([group.left, MOST_ENTRIES, *asked])


def _take(stage: Stage, each: list[tuple[LogicalTable, int, Demand]], need: Demand) -> None:
    stage.parts += [Part(table, stage.number, entries, taken) for table, entries, taken in each]
    stage.taken.add(need)


def _need(group: _Group, entries: int | None) -> Need:
    """Return what a group takes of a stage; it is asked for again in each stage."""
    if entries not in group.needs:
        each = [(t, n := _entries(t, entries), demand(t, n)) for t in group.tables]
        total = Demand()
        for _, _, taken in each:
            total.add(taken)
        most = max(n for _, n, _ in each)
        for instance in group.memory:
            total.add(shared_memory(instance, most))
        group.needs[entries] = each, total
    return group.needs[entries]


def _entries(table: LogicalTable, entries: int | None) -> int:
    if entries is not None:
        return entries
    return size_of(table.table) if table.table is not None else 0


def _fitting(group: _Group, stage: Stage, high: int) -> int:
    """Return how many of a table's entries, `high` at most, the rest of a stage has room for."""
    table = group.tables[0]
    step = step_of(table, high)
    low_units, high_units = 0, high // step
    while low_units < high_units:
        middle = (low_units + high_units + 1) // 2
        if stage.taken.overflows(_need(group, middle * step)[1]):
            high_units = middle - 1
        else:
            low_units = middle
    low = low_units * step
    return low if low >= min(step, group.left) else 0


def used(stages: Sequence[Stage]) -> dict[str, int]:
    """Return the sum of each resource over stages."""
    totals = [stage.taken.totals() for stage in stages]
    return {name: sum(t[name] for t in totals) for name in STAGE}


# -- shared bytes -----------------------------------------------------------------------------


_BYTE = 8


def shared_bytes(tables: Sequence[LogicalTable]) -> Mapping[LogicalTable, set[Hashable]]:
    """Return the bytes that each table sets bits of."""
    packed: dict[object, int] = {}
    room: dict[str, list[int]] = {}
    for table in tables:
        for place in table.writes:
            if _is_small(place) and place.field not in packed:
                packed[place.field] = _first_fit(room.setdefault(table.gress, []), place.width)
    return {table: set(_bytes(table, packed)) for table in tables}


def _bytes(table: LogicalTable, packed: Mapping[object, int]) -> Iterator[Hashable]:
    for place in table.writes:
        if place.field in packed:
            yield table.gress, packed[place.field]
        elif place.bits < place.width and header_bytes(place) is None:
            for byte in {place.low // _BYTE, place.high // _BYTE}:
                yield place.field, byte
        else:
            yield from bytes_of(place)


def _is_small(place: Place) -> bool:
    """Return whether a place is metadata of the program's own with less than a byte."""
    own = "intrinsic" not in str(place.var.type)
    return own and not place.of_header and place.width < _BYTE and header_bytes(place) is None


def _first_fit(room: list[int], bits: int) -> int:
    """Take bits of the first byte that has them; return its number."""
    for number, left in enumerate(room):
        if bits <= left:
            room[number] -= bits
            return number
    room.append(_BYTE - bits)
    return len(room) - 1
