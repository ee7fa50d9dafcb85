"""Idle timeouts of entries: the attribute IdleTimeout, times that are left, hit states."""

from __future__ import annotations

from typing import Any

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.tables.control_table import Attribute
from gradplane.switch.control.journal import Journal
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_table import MatchTable

TTL, HIT_STATE = "$ENTRY_TTL", "$ENTRY_HIT_STATE"
MILLISECOND = 10**6  # ns

POLL, NOTIFY = 0, 1
"""The modes of idle timeouts: the hit state is read, or notifications are sent."""


class IdleMode:
    """A table's attribute IdleTimeout; times in ms."""

    def __init__(self) -> None:
        self.enabled = False
        self.mode = NOTIFY
        self.query_interval = 5000
        self.most = 3600000
        self.least = 1000

    @classmethod
    def of(cls, message: Any) -> IdleMode:
        """Make it of a message's IdleTable."""
        idle = cls()
        idle.enabled, idle.mode = message.enable, message.idle_table_mode
        idle.query_interval = message.ttl_query_interval or idle.query_interval
        idle.most, idle.least = message.max_ttl or idle.most, message.min_ttl
        return idle

    def show(self, message: Any) -> None:
        """Set a message's IdleTable."""
        message.enable, message.idle_table_mode = self.enabled, self.mode
        message.ttl_query_interval = self.query_interval
        message.max_ttl, message.min_ttl = self.most, self.least

    def excess(self, ttl: int) -> str:
        """Return what is wrong with a timeout, nothing if it may be set."""
        if ttl and self.enabled and not self.least <= ttl <= self.most:
            return f"{TTL} {ttl} is not within {self.least} to {self.most} ms"
        return ""

    def left(self, entry: Entry, now: int) -> int:
        """Return the ms that an entry has left; they fall once in each query interval, in which
        the driver looks for hits."""
        left = entry.idle_timeout_ns // MILLISECOND
        idle_for = (now - entry.last_hit_ns) // MILLISECOND
        if not self.enabled:
            return left
        if idle_for >= left:
            return 0
        return left - idle_for // self.query_interval * self.query_interval


class IdleTimes:
    """What a client sees and sets of the idle times of a table's entries. timed: whether an entry
    has a time of its own; if not, its hit state can only be polled."""

    def __init__(self, journal: Journal, table: MatchTable, timed: bool) -> None:
        self._journal = journal
        self._table = table
        self._timed = timed
        self.mode = IdleMode()
        self._seen: dict[int, int] = {}  # by handle: the last hit before UpdateHitState
        self._states: dict[int, str] = {}

    def show(self, data: Data, entry: Entry) -> None:
        """Add an entry's time that is left, or, in the mode to poll, its hit state; both while the
        attribute is not enabled."""
        if self._timed and (not self.mode.enabled or self.mode.mode == NOTIFY):
            data.values[TTL] = self.mode.left(entry, self._table.clock())
        if not self.mode.enabled or self.mode.mode == POLL:
            data.values[HIT_STATE] = self._state(entry)

    def attribute(self) -> Attribute:
        """Return the attribute IdleTimeout."""

        def set(message: Any) -> None:
            self._journal.set(self, "mode", IdleMode.of(message.idle_table))

        return Attribute(lambda message: self.mode.show(message.idle_table), set)

    def note(self, entry: Entry, data: Data) -> None:
        """Keep the hit state that a client sets with an entry."""
        state = data.values.get(HIT_STATE, "ENTRY_IDLE")
        self._journal.put(self._seen, entry.handle, entry.last_hit_ns)
        self._journal.put(self._states, entry.handle, state)
        if state == "ENTRY_ACTIVE":
            self._journal.set(entry, "last_hit_ns", self._table.clock())

    def update_states(self) -> None:
        """See which entries were hit since the last time: the operation UpdateHitState."""
        for entry in self._table.entries():
            active = entry.last_hit_ns > self._seen.get(entry.handle, 0)
            self._states[entry.handle] = "ENTRY_ACTIVE" if active else "ENTRY_IDLE"
            self._seen[entry.handle] = entry.last_hit_ns

    def forget(self, entry: Entry) -> None:
        """Drop what is known of an entry that is deleted."""
        self._journal.put(self._seen, entry.handle, None)
        self._journal.put(self._states, entry.handle, None)

    def _state(self, entry: Entry) -> str:
        if self.mode.mode == POLL and self.mode.enabled:
            return self._states.get(entry.handle, "ENTRY_IDLE")
        idle_for = self._table.clock() - entry.last_hit_ns
        expired = entry.idle_timeout_ns and idle_for >= entry.idle_timeout_ns
        return "ENTRY_IDLE" if expired else "ENTRY_ACTIVE"
