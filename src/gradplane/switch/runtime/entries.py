"""Table entries and the actions they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from heapq import heapify, heappop, heappush

from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.meters import MeterCell
from gradplane.switch.runtime.shared_memory import signed_words, unsigned_words

MASK64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ActionData:
    """An action of a table, by its position in table.actions, and a number for each parameter."""

    index: int
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRef:
    """A member of the table's action profile."""

    id: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A group of the table's action selector."""

    id: int


@dataclass(frozen=True, slots=True)
class OneShot:
    """A group that is given with the entry: an action, a weight and a watch port each.

    mode, semantics: P4Runtime's action_selection_mode and size_semantics, as they were given; they
    ask for what the selector does.
    """

    actions: tuple[tuple[ActionData, int, bytes], ...]
    mode: int = 0
    semantics: int = 0


EntryAction = ActionData | MemberRef | GroupRef | OneShot


class Count:
    """Packets and bytes, modulo 2^64; they are the two words of `cells`. seen: both as
    `control/cells.py` keeps them for a notation that reads what it saw last."""

    __slots__ = ("cells", "seen")

    def __init__(self, packets: int = 0, bytes: int = 0) -> None:
        self.seen: dict[int, tuple[int, int]] | None = None
        self.cells = unsigned_words(2)
        self.packets, self.bytes = packets, bytes

    @property
    def packets(self) -> int:
        return self.cells[0]

    @packets.setter
    def packets(self, number: int) -> None:
        self.cells[0] = number & MASK64

    @property
    def bytes(self) -> int:
        return self.cells[1]

    @bytes.setter
    def bytes(self, number: int) -> None:
        self.cells[1] = number & MASK64

    def add(self, nbytes: int) -> None:
        """Count a packet of `nbytes`."""
        cells = self.cells
        cells[0] = (cells[0] + 1) & MASK64
        cells[1] = (cells[1] + nbytes) & MASK64

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Count) and self.cells == other.cells

    def __repr__(self) -> str:
        return f"Count(packets={self.packets}, bytes={self.bytes})"


@dataclass(slots=True, eq=False)
class Entry:
    """A table entry. `matches` has a match for each match field (selector keys have none).

    `priority`: the larger wins; 0 in tables of exact and lpm fields only. `serial` is the order
    of insertion: among equal priorities the older entry wins. `handle`: as simple_switch's commands
    number a table's entries. `timeout_ns`: see idle_timeout_ns. `idle_reported_ns`: the time of the
    last idle notice. `metadata` and `controller_metadata`: of a P4Runtime controller, which gets
    them back.
    """

    matches: tuple[Match, ...]
    action: EntryAction
    priority: int = 0
    metadata: bytes = b""
    timeout_ns: InitVar[int] = 0
    is_const: bool = False
    serial: int = 0
    handle: int = 0
    idle_reported_ns: int = 0
    controller_metadata: int = 0
    idle_due_ns: int = field(default=0, init=False, repr=False)  # see IdleEntries
    # Made on first use: most tables need none of them.
    _counter: Count | None = field(default=None, init=False, repr=False)
    _meter: MeterCell | None = field(default=None, init=False, repr=False)
    _times: memoryview[int] | None = field(default=None, init=False, repr=False)
    _watch: IdleEntries | None = field(default=None, init=False, repr=False)
    # The table's direct register and filter make them when the entry is inserted.
    register: Register | None = field(default=None, init=False, repr=False)
    filter: Filter | None = field(default=None, init=False, repr=False)

    def __post_init__(self, timeout_ns: int) -> None:
        if timeout_ns:
            self.idle_timeout_ns = timeout_ns

    @property
    def key(self) -> tuple[tuple[Match, ...], int]:
        """The entry's matches and priority."""
        return self.matches, self.priority

    @property
    def counter(self) -> Count:
        """The entry's direct counter."""
        if self._counter is None:
            self._counter = Count()
        return self._counter

    @property
    def meter(self) -> MeterCell:
        """The entry's direct meter."""
        if self._meter is None:
            self._meter = MeterCell()
        return self._meter

    @property
    def times(self) -> memoryview[int]:
        """Two words, kept in tables with idle timeouts, which packets write: `last_hit_ns` and
        `idle_timeout_ns`."""
        if self._times is None:
            self._times = signed_words(2)
        return self._times

    @property
    def idle_timeout_ns(self) -> int:
        """The time without a hit after which the entry is idle; 0: it never is."""
        return 0 if self._times is None else self._times[1]

    @idle_timeout_ns.setter
    def idle_timeout_ns(self, timeout: int) -> None:
        if timeout or self._times is not None:
            self.times[1] = timeout
            if self._watch is not None:
                self._watch.watch(self)

    def is_idle(self, now: int) -> bool:
        """Return whether it had no hit, and no notice, for its timeout."""
        last = max(self.last_hit_ns, self.idle_reported_ns)
        return 0 < self.idle_timeout_ns <= now - last

    @property
    def last_hit_ns(self) -> int:
        return self.times[0]

    @last_hit_ns.setter
    def last_hit_ns(self, now: int) -> None:
        self.times[0] = now


class IdleEntries:
    """The entries of a table that become idle, by the time before which each cannot.

    Hits put that time off, which is looked at when it has come: so packets and inserts cost nothing
    here, and a look for idle entries costs as much as there are entries whose time has come.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Entry]] = []  # a heap; numbers tell equal times apart
        self._count = 0

    def watch(self, entry: Entry) -> None:
        """Follow an entry, whose times have been set; a timeout set later is followed, too."""
        entry._watch, times = self, entry._times
        if times is not None and times[1]:
            entry.idle_due_ns = max(times[0], entry.idle_reported_ns) + times[1]
            self._count += 1
            heappush(self._waiting, (entry.idle_due_ns, self._count, entry))

    def found(self, now: int, there: Callable[[Entry], bool], number: int) -> list[Entry]:
        """Return the entries that are idle for their timeout since their last hit or notice, oldest
        first, with the notice noted. there: whether an entry is in the table, which has `number`.
        """
        if len(self._waiting) > 2 * number + _LEFTOVERS:
            rows = {id(row[2]): row for row in self._waiting if row[0] == row[2].idle_due_ns}
            self._waiting = [row for row in rows.values() if there(row[2])]
            heapify(self._waiting)
        idle = []
        while self._waiting and self._waiting[0][0] <= now:
            due, _, entry = heappop(self._waiting)
            if due != entry.idle_due_ns or not entry.idle_timeout_ns or not there(entry):
                continue  # it has other times by now, or is gone
            if entry.is_idle(now):
                entry.idle_reported_ns = now
                idle.append(entry)
            self.watch(entry)
        return sorted(idle, key=lambda entry: entry.serial)


_LEFTOVERS = 1000  # rows of entries that are gone, beside as many as there are entries
