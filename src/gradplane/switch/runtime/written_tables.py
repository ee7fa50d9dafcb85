"""Tables that packets write: a miss adds an entry, an entry leaves when it is idle (PNA)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_masks import Key
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile

PROFILES = 256
_SECOND = 1_000_000_000
_SECONDS = (10, 30, 60, 120, 300, 43_200, 120, 120)  # of the first profiles
MOST_NS = (1 << 62) - 1


class ExpireTimes:
    """The times of the expire time profiles, in nanoseconds; 0: an entry with it never expires.

    `cells` are what compiled code reads; `changes` grows with each write."""

    def __init__(self) -> None:
        self.cells = np.zeros(PROFILES, dtype=np.int64)
        self._first = np.zeros(PROFILES, dtype=np.int64)
        self._first[: len(_SECONDS)] = [seconds * _SECOND for seconds in _SECONDS]
        self.changes = 0
        self.reset()

    def reset(self) -> None:
        """Set the times that a program starts with."""
        self.cells[:] = self._first
        self.changes += 1

    def changed(self) -> list[int]:
        """Return the profiles with another time."""
        found: list[int] = np.flatnonzero(self.cells != self._first).tolist()
        return found

    def set(self, profile: int, nanoseconds: int) -> None:
        """Set a profile's time, unchecked; entries that have it already keep theirs."""
        self.cells[profile] = nanoseconds
        self.changes += 1

    @property
    def shortest(self) -> int:
        """The shortest time after which an entry expires."""
        return min((int(time) for time in self.cells if time), default=MOST_NS)


class WrittenTable(MatchTable):
    """A table that packets write. An entry that has been idle for its time is found by nobody, and
    removed when the table is read, or full."""

    def __init__(
        self,
        table: ir.Table,
        times: ExpireTimes,
        profile: ActionProfile | None = None,
        clock: Callable[[], int] = lambda: 0,
        pipes: int = 1,
    ) -> None:
        self.times = times
        self._quiet = 0, 0  # no entry expires before this time, unless times have changed since
        super().__init__(table, profile, clock, pipes)
        self._idle = None  # packets set the times, unseen: `idle` looks at all

    def __len__(self) -> int:
        self.expire()
        return super().__len__()

    def entries(self) -> Iterator[Entry]:
        self.expire()
        return super().entries()

    def find(self, matches: Sequence[Match], priority: int = 0) -> Entry | None:
        found = super().find(matches, priority)
        if found is None or not self._expired(found, self.clock()):
            return found
        self.take_out(found)
        return None

    def lookup(self, key: Key) -> Entry | None:
        found = super().lookup(key)
        return None if found is None or self._expired(found, self.clock()) else found

    # -- what packets do ------------------------------------------------------------------------

    def add(self, key: Sequence[int], action: ActionData, profile: int) -> bool:
        """Add an entry for the key of a lookup that missed; return False where that cannot be.

        All its fields are exact. profile: of its expire time, where the table has timeouts."""
        timeout = int(self.times.cells[profile]) if self.table.support_timeout else 0
        try:
            self._insert(Entry(tuple((number,) for number in key), action, timeout_ns=timeout))
        except TableError:
            return False
        return True

    def restart(self, entry: Entry, profile: int | None = None) -> None:
        """Restart an entry's timer, with the time of a profile if one is given."""
        entry.last_hit_ns = self.clock()
        if profile is not None:
            entry.idle_timeout_ns = int(self.times.cells[profile])

    def idle(self, now: int) -> list[Entry]:
        """Do as any table does."""
        found = [entry for entry in self.entries() if entry.is_idle(now)]
        for entry in found:
            entry.idle_reported_ns = now
        return found

    # -- entries that leave -----------------------------------------------------------------------

    def expire(self) -> None:
        """Remove the entries whose time is over."""
        now = self.clock()
        if not self.table.auto_delete or (now < self._quiet[0] and self._same_times):
            return
        # What packets add or restart from now on has one of the profiles' times before it.
        next_ns = now + self.times.shortest
        for entry in list(self._entries.values()):
            if self._expired(entry, now):
                self.take_out(entry)
            elif entry.idle_timeout_ns:
                next_ns = min(next_ns, entry.last_hit_ns + entry.idle_timeout_ns)
        self._quiet = next_ns, self.times.changes

    @property
    def _same_times(self) -> bool:
        return self._quiet[1] == self.times.changes

    def _expired(self, entry: Entry, now: int) -> bool:
        timeout = entry.idle_timeout_ns if self.table.auto_delete else 0
        return 0 < timeout <= now - entry.last_hit_ns

    def _insert(self, entry: Entry) -> None:
        self.find(entry.matches, entry.priority)  # one that has expired makes room
        if len(self._entries) >= self.table.size:
            self.expire()
        super()._insert(entry)

    # -- the control plane, whose timeouts are of any length -------------------------------------

    def insert(self, entry: Entry) -> None:
        self._quiet = 0, 0
        super().insert(entry)

    def insert_checked(self, entries: Sequence[Entry]) -> bool:
        return False  # each may take the place of one that has expired

    def put_values(self, found: Entry, values: Mapping[str, Any]) -> None:
        self._quiet = 0, 0
        super().put_values(found, values)

    def restore(self, entry: Entry) -> None:
        self._quiet = 0, 0
        super().restore(entry)
