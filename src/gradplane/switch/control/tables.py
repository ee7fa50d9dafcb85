"""Table entries, and the members and groups of action profiles.

Presence, ranges and capacity are checked where the engines keep them, since packets add entries,
too. Entries that packets add stay what they are when a batch fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from gradplane.switch.control.journal import Journal
from gradplane.switch.control.kind import Kind, Record, Refusal
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
    OneShot,
)
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile

EntryKey = tuple[Sequence[Match], int]
"""The matches and the priority of an entry."""

ENTRY_FIELDS = ("action", "metadata", "idle_timeout_ns", "controller_metadata")
"""The fields of an entry that a control plane writes and packets do not."""


class Entries(Kind[EntryKey]):
    """The entries of one table; its default entry is beside them."""

    name = "entry"

    def __init__(self, journal: Journal, table: MatchTable) -> None:
        super().__init__(journal)
        self.table = table

    def existing(self) -> Iterable[EntryKey]:
        return ((entry.matches, entry.priority) for entry in self.table.entries())

    def get(self, key: EntryKey) -> Record | None:
        found = self.table.find(*key)
        return None if found is None else {name: getattr(found, name) for name in ENTRY_FIELDS}

    def put(self, key: EntryKey, record: Record | None) -> None:
        found = self.table.find(*key)
        if record is None:
            assert found is not None, key
            self.table.take_out(found)
            self.journal.record(self.table.restore, found)
        elif found is None:
            self.insert(key, **record)
        else:
            self.modify(key, **record)

    def insert(self, key: EntryKey, /, **values: Any) -> None:
        """Add an entry; raises TableError."""
        self.add(_made(key, values))

    def insert_all(self, records: Iterable[tuple[EntryKey, Record]]) -> None:
        """Add many entries, as `add_all` does."""
        self.add_all(_made(key, values) for key, values in records)

    def add(self, entry: Entry) -> None:
        """Add an entry, which the table keeps; raises TableError."""
        self.table.insert(entry)
        self.journal.record(self.table.take_out, entry)

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Add many entries, all of them or, where one is refused, none."""
        done: list[Entry] = []
        try:
            for entry in entries:
                self.table.insert(entry)
                done.append(entry)
        except BaseException:
            self._take_out(done)
            raise
        self.journal.record(self._take_out, done)

    def add_checked(self, entries: Sequence[Entry]) -> bool:
        """Add entries that the table's `check` would take as they are, all of them or none; return
        whether they are added: not where an equal one is there, or the table is too full."""
        try:
            added = self.table.insert_checked(entries)
        except BaseException:
            self._take_out(entries)
            raise
        if added:
            self.journal.record(self._take_out, entries)
        return added

    def _take_out(self, entries: Sequence[Entry]) -> None:
        for entry in reversed(entries):
            self.table.take_out(entry)

    def modify(self, key: EntryKey, /, **values: Any) -> None:
        """Set those of ENTRY_FIELDS that are given; raises TableError."""
        table, found = self.table, self.table.find(*key)
        former = {name: getattr(found, name) for name in values} if found is not None else {}
        table.change(_identifying(key), values)

        def step() -> None:
            assert found is not None
            table.put_values(found, {
                name: old for name, old in former.items() if getattr(found, name) == values[name]
            })  # fmt: skip

        self.journal.record(step)

    def delete(self, key: EntryKey) -> None:
        """Remove an entry; raises TableError."""
        found = self.table.find(*key)
        self.table.delete(_identifying(key))
        assert found is not None, key
        self.journal.record(self.table.restore, found)

    def clear(self) -> None:
        """Remove all entries but the constant ones; raises TableError."""
        table, handles = self.table, self.table.handles
        former = [entry for entry in table.entries() if not entry.is_const]
        table.clear()

        def step() -> None:
            if not len(table):
                table.handles = handles
            for entry in former:
                table.restore(entry)

        self.journal.record(step)

    def usage(self) -> int:
        return len(self.table)

    def set_default(self, action: EntryAction | None) -> None:
        """Set the table's action on a miss, None: the source's; raises TableError."""
        table, former = self.table, self.table.default
        table.set_default(action)
        written = table.default

        def step() -> None:
            if table.default is written:
                table.put_default(former)

        self.journal.record(step)


def _made(key: EntryKey, values: Record) -> Entry:
    others = {name: value for name, value in values.items() if name != "idle_timeout_ns"}
    timeout = values.get("idle_timeout_ns", 0)
    return Entry(tuple(key[0]), priority=key[1], timeout_ns=timeout, **others)


def _identifying(key: EntryKey) -> Entry:
    """Return an entry that only identifies another."""
    return Entry(tuple(key[0]), ActionData(0), key[1])


class _OfProfile(Kind[int]):
    """A part of an action profile. defaults: whether a default entry uses it, too, which
    simple_switch's commands do not look at."""

    words: ClassVar[str]  # in messages
    ref: ClassVar[type[MemberRef] | type[GroupRef]]

    def __init__(self, journal: Journal, profile: ActionProfile, defaults: bool = True) -> None:
        super().__init__(journal)
        self.profile = profile
        self._defaults_use = defaults

    def check_unused(self, key: int) -> None:
        """Refuse to remove what an entry uses."""
        for table in self.profile.tables:
            user = table.user_of(self.ref(key), self._defaults_use)
            if user is not None:
                what = f"action profile {self.profile.name}: {self.name} {key} is used by {user}"
                raise Refusal("FAILED_PRECONDITION", what, "used", self.name, key, value=user)

    def _check_not_one_shot(self) -> None:
        """Refuse a first member or group beside entries with groups of their own."""
        if self.profile.members or self.profile.groups:
            return  # no entry can be a one shot beside them
        if any(isinstance(t, OneShot) for table in self.profile.tables for t in table.targets()):
            what = "its tables are programmed with sets of actions (one shot): it takes no members"
            message = f"action profile {self.profile.name}: {what} and no groups"
            raise Refusal("INVALID_ARGUMENT", message, "one shot", self.name)


class Members(_OfProfile):
    """The members of an action profile: an action each. Raises TableError."""

    name = "member"
    ref = MemberRef

    def existing(self) -> Iterable[int]:
        return self.profile.members

    def get(self, key: int) -> Record | None:
        action = self.profile.members.get(key)
        return None if action is None else {"action": action}

    def read(self, key: int) -> Record:
        return {"action": self.profile.member(key)}

    def put(self, key: int, record: Record | None) -> None:
        with self._undone(key):
            if record is None:
                self.profile.delete_member(key)
            elif key in self.profile.members:
                self.profile.modify_member(key, record["action"])
            else:
                self.profile.add_member(key, record["action"])

    def insert(self, key: int, /, **values: Any) -> None:
        self._check_not_one_shot()
        with self._undone(key):
            self.profile.add_member(key, values["action"])

    @contextmanager
    def _undone(self, key: int) -> Iterator[None]:
        """Record how a change of a member is taken back, if it is made."""
        former = self.profile.memory_of_member(key)
        yield
        self.journal.record(self.profile.restore_member, key, former)


class SelectorGroups(_OfProfile):
    """The groups of an action selector: members with weights, and how many members it may have at
    most, 0 for the selector's limit. Raises TableError."""

    name = "group"
    ref = GroupRef

    def existing(self) -> Iterable[int]:
        return self.profile.groups

    def get(self, key: int) -> Record | None:
        group = self.profile.groups.get(key)
        return None if group is None else {"members": group.members, "max_size": group.max_size}

    def read(self, key: int) -> Record:
        self.profile.group(key)  # which must exist
        found = self.get(key)
        assert found is not None, key
        return found

    def put(self, key: int, record: Record | None) -> None:
        with self._undone(key):
            if record is None:
                self.profile.delete_group(key)
            elif key in self.profile.groups:
                self.profile.modify_group(key, record["members"], record["max_size"])
            else:
                self.profile.add_group(key, record["members"], record["max_size"])

    def insert(self, key: int, /, **values: Any) -> None:
        self._check_not_one_shot()
        with self._undone(key):
            self.profile.add_group(key, values.get("members", ()), values.get("max_size", 0))

    @contextmanager
    def _undone(self, key: int) -> Iterator[None]:
        """Record how a change of a group is taken back, if it is made."""
        former = self.profile.memory_of_group(key)
        yield
        written = self.profile.memory_of_group(key)
        self.journal.record(self.profile.restore_group, key, former, written)
