"""Table entries, default entries, and the members and groups of action profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradplane.switch.control.journal import Journal
from gradplane.switch.control.kind import Refusal
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
)
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile, Weighted

# The fields of an entry that a control plane writes and packets do not.
ENTRY_FIELDS = ("action", "metadata", "idle_timeout_ns", "controller_metadata")


class Tables:
    """Writes the entries of match-action tables. Entries that packets add stay what they are."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def insert(self, table: MatchTable, entry: Entry) -> None:
        """Add an entry; raises TableError."""
        table.insert(entry)
        self._journal.record(table.take_out, entry)

    def insert_all(self, table: MatchTable, entries: Iterable[Entry]) -> None:
        """Add many entries, all of them or, where one is refused, none."""
        done: list[Entry] = []

        def step() -> None:
            for entry in reversed(done):
                table.take_out(entry)

        try:
            for entry in entries:
                table.insert(entry)
                done.append(entry)
        except BaseException:
            step()
            raise
        self._journal.record(step)

    def modify(self, table: MatchTable, entry: Entry, **values: Any) -> None:
        """Set those of ENTRY_FIELDS that are given in the entry of the same identity; raises
        TableError."""
        found = table.find(entry.matches, entry.priority)
        former = {name: getattr(found, name) for name in values} if found is not None else {}
        table.change(entry, values)

        def step() -> None:
            assert found is not None
            table.put_values(found, {
                name: old for name, old in former.items() if getattr(found, name) == values[name]
            })  # fmt: skip

        self._journal.record(step)

    def delete(self, table: MatchTable, entry: Entry) -> None:
        """Remove the entry of the same identity; raises TableError."""
        found = table.find(entry.matches, entry.priority)
        table.delete(entry)
        assert found is not None, entry
        self._journal.record(table.restore, found)

    def clear(self, table: MatchTable) -> None:
        """Remove all entries but the constant ones; raises TableError."""
        former = [entry for entry in table.entries() if not entry.is_const]
        handles = table.handles
        table.clear()

        def step() -> None:
            if not len(table):
                table.handles = handles
            for entry in former:
                table.restore(entry)

        self._journal.record(step)

    def set_default(self, table: MatchTable, action: EntryAction | None) -> None:
        """Set a table's action on a miss, None: the source's; raises TableError."""
        former = table.default
        table.set_default(action)
        written = table.default

        def step() -> None:
            if table.default is written:
                table.put_default(former)

        self._journal.record(step)


class Profiles:
    """Writes the members and groups of action profiles; raises TableError."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    # -- members --------------------------------------------------------------------------------

    def add_member(self, profile: ActionProfile, number: int, action: ActionData) -> None:
        """Add a member."""
        with self._member(profile, number):
            profile.add_member(number, action)

    def modify_member(self, profile: ActionProfile, number: int, action: ActionData) -> None:
        """Give a member another action."""
        with self._member(profile, number):
            profile.modify_member(number, action)

    def delete_member(self, profile: ActionProfile, number: int, default: bool = True) -> None:
        """Remove a member that no group and no entry uses. default: nor a default entry, which
        simple_switch's commands do not look at."""
        with self._member(profile, number):
            check_unused(profile, MemberRef(number), default)
            profile.delete_member(number)

    # -- groups ---------------------------------------------------------------------------------

    def add_group(
        self, profile: ActionProfile, number: int, members: Sequence[Weighted], most: int = 0
    ) -> None:
        """Add a group of members; most: how many it may have, 0 for the profile's limit."""
        with self._group(profile, number):
            profile.add_group(number, members, most)

    def modify_group(
        self, profile: ActionProfile, number: int, members: Sequence[Weighted], most: int = 0
    ) -> None:
        """Give a group other members; most: as in `add_group`, 0 for the former one."""
        with self._group(profile, number):
            profile.modify_group(number, members, most)

    def delete_group(self, profile: ActionProfile, number: int, default: bool = True) -> None:
        """Remove a group that no entry uses; default: as in `delete_member`."""
        with self._group(profile, number):
            check_unused(profile, GroupRef(number), default)
            profile.delete_group(number)

    @contextmanager
    def _member(self, profile: ActionProfile, number: int) -> Iterator[None]:
        """Record how a change of a member is taken back, if it is made."""
        former = profile.memory_of_member(number)
        yield
        self._journal.record(profile.restore_member, number, former)

    @contextmanager
    def _group(self, profile: ActionProfile, number: int) -> Iterator[None]:
        """Record how a change of a group is taken back, if it is made."""
        former = profile.memory_of_group(number)
        yield
        written = profile.memory_of_group(number)
        self._journal.record(profile.restore_group, number, former, written)


def check_unused(
    profile: ActionProfile, target: MemberRef | GroupRef, default: bool = True
) -> None:
    """Refuse to remove a member or group that an entry uses."""
    for table in profile.tables:
        user = table.user_of(target, default)
        if user is not None:
            kind = "member" if isinstance(target, MemberRef) else "group"
            what = f"action profile {profile.name}: {kind} {target.id} is used by {user}"
            raise Refusal("FAILED_PRECONDITION", what, "used", kind, target.id, value=user)
