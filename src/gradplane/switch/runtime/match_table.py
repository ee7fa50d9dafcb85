"""A table at run time: its entries, its default action, and their rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.arrays import Register, direct_cells
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import (
    ActionData,
    Count,
    Entry,
    EntryAction,
    IdleEntries,
    OneShot,
)
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.handles import Handles
from gradplane.switch.runtime.lookup import Index, index_for
from gradplane.switch.runtime.match_fields import WITH_PRIORITY, Match, key_fields, source_match
from gradplane.switch.runtime.match_masks import Key
from gradplane.switch.runtime.meters import MeterCell
from gradplane.switch.runtime.profiles import ActionProfile
from gradplane.switch.runtime.translations import Translation

Identity = tuple[tuple[Match, ...], int]
PI_NO_ENTRY = "Cannot find match entry"
_PI_EXISTS = "Match entry exists, use MODIFY if you wish to change action"


class Watcher(Protocol):
    """Compiled code's mirror of a table, notified after every change."""

    def inserted(self, entry: Entry) -> None: ...

    def modified(self, entry: Entry) -> None: ...

    def deleted(self, entry: Entry) -> None: ...

    def default_set(self) -> None: ...


def _command_priority(priority: int) -> str:
    """Return the number that a command gives such a priority, where it was most likely one."""
    counted = (1 << 31) - 1 - priority
    return f" ({counted} in commands, where the smaller one wins)" if counted < 1 << 24 else ""


class MatchTable:
    """The entries of one table, at first the source's. Raises TableError for refused changes.

    `fields` are the match fields in order (selector keys left out); a key for `lookup` has one
    unsigned number for each. The identity of an entry is its matches and, where a field is
    ternary, range or optional, its priority.
    """

    def __init__(
        self,
        table: ir.Table,
        profile: ActionProfile | None = None,
        clock: Callable[[], int] = lambda: 0,
        pipes: int = 1,
    ) -> None:
        self.table = table
        self._pipes = pipes
        self.profile = profile
        self.actions = ActionList(f"table {table.name}", table.actions)
        numbers = () if profile is None else profile.attach(self)
        self._from_profile = {number: index for index, number in enumerate(numbers)}
        self.clock = clock  # ns; the time of insertion counts as a hit for the idle timeout
        self.fields = key_fields(f"table {table.name}", table.keys)
        self.with_priority = any(f.kind in WITH_PRIORITY for f in self.fields)
        self.default_counter = Count()
        self.default_meter = MeterCell()
        register = table.register
        self.default_register = None if register is None else direct_cells(register, pipes)
        self.default_filter = None if table.filter is None else Filter(table.filter.name, 1)
        self._entries: dict[Identity, Entry] = {}
        self.handles = Handles()
        self._serial = 0
        self._index: Index | None = None  # made for the first lookup: compiled code needs none
        self.watchers: list[Watcher] = []
        self._idle = IdleEntries() if table.support_timeout else None
        self.translations: Sequence[Translation | None] = ()  # of the fields, where they have some
        self.default: EntryAction = self.source_default
        self.default_metadata: tuple[int, bytes] = (0, b"")  # of a P4Runtime controller
        self._load()

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterator[Entry]:
        """Iterate over all entries, oldest first."""
        return iter(list(self._entries.values()))

    @property
    def has_added_entries(self) -> bool:
        """Whether there are entries that the source does not have."""
        own = {self._identity(e.matches, e.priority) for e in self._source_entries()}
        return not self._entries.keys() <= own

    def find(self, matches: Sequence[Match], priority: int = 0) -> Entry | None:
        """Return the entry of this identity; raises TableError for matches that cannot be."""
        return self._entries.get(self._identity(self._canonical(matches), priority))

    def lookup(self, key: Key) -> Entry | None:
        """Return the entry that a key hits."""
        if self._index is None:
            self._index = index_for(self.fields)
            for entry in self._entries.values():
                self._index.insert(entry)
        return self._index.find(key)

    def watch_idle(self, entry: Entry) -> None:
        """Follow the times of an entry, which have been set, for `idle`."""
        if self._idle is not None:
            self._idle.watch(entry)

    def idle(self, now: int) -> list[Entry]:
        """Return the entries that have become idle since the last call, or stayed so, oldest first,
        and note that they are reported."""
        if self._idle is None:
            return []
        return self._idle.found(now, self._has, len(self._entries))

    def _has(self, entry: Entry) -> bool:
        return self._entries.get(self._identity(entry.matches, entry.priority)) is entry

    def renumber(self, handles: Sequence[int]) -> None:
        """Give the entries these handles, in the order of `entries`; raises ValueError."""
        self.handles.renumber(list(self.entries()), handles)

    def insert(self, entry: Entry) -> None:
        """Add an entry (the table keeps the object)."""
        self._changeable()
        self._insert(entry)

    def check(self, entry: Entry) -> None:
        """Refuse an entry that cannot be in the table, whatever else is there; make its matches
        canonical."""
        self._changeable()
        self._check(entry)

    def insert_checked(self, entries: Sequence[Entry]) -> bool:
        """Add entries that `check` would take as they are. Return False, and add none, where an
        equal one is there, or there is not room for all."""
        keys = {self._identity(entry.matches, entry.priority): entry for entry in entries}
        if not (len(keys) == len(entries) <= self.table.size - len(self._entries)):
            return False
        if not self._entries.keys().isdisjoint(keys):
            return False
        for entry in entries:
            self._add(entry)
        return True

    def modify(self, entry: Entry) -> None:
        """Give the entry of the same identity this action, metadata and idle timeout.

        Counter and meter are left alone.
        """
        self.change(entry, {
            "action": entry.action, "metadata": entry.metadata,
            "idle_timeout_ns": entry.idle_timeout_ns,
        })  # fmt: skip

    def change(self, entry: Entry, values: Mapping[str, Any]) -> None:
        """Set attributes of the entry of the same identity: its action, metadata and so on."""
        self._changeable()
        found = self._existing(entry)
        if "action" in values:
            self._check_target(values["action"])
        self.put_values(found, values)

    def put_values(self, found: Entry, values: Mapping[str, Any]) -> None:
        """Set attributes of an entry, unchecked."""
        if self.profile is not None and "action" in values:
            self.profile.note(found.action, -1)
            self.profile.note(values["action"])
        for name, value in values.items():
            setattr(found, name, value)
        for watcher in self.watchers:
            watcher.modified(found)

    def delete(self, entry: Entry) -> None:
        """Remove the entry of the same identity."""
        self._changeable()
        self.take_out(self._existing(entry))

    def take_out(self, entry: Entry) -> None:
        """Remove an entry, unchecked, unless it is not there any more."""
        if not self._has(entry):
            return
        del self._entries[self._identity(entry.matches, entry.priority)]
        if self.profile is not None:
            self.profile.note(entry.action, -1)
        self.handles.remove(entry)
        if self._index is not None:
            self._index.remove(entry)
        for watcher in self.watchers:
            watcher.deleted(entry)

    def clear(self) -> None:
        """Remove all entries but the constant ones."""
        self._changeable()
        for entry in self.entries():
            if not entry.is_const:
                self.delete(entry)
        if not self._entries:
            self.handles = Handles()

    def reset(self) -> None:
        """Set entries, default action, counters and meters as the program starts with them."""
        if not self.table.const_entries:
            self.clear()
            for entry in self._source_entries():
                if self.find(entry.matches, entry.priority) is None:
                    self._insert(entry)
        if not self.table.const_default:
            self.set_default(None)
        self.default_metadata = (0, b"")
        self.clear_counters()
        for meter in [self.default_meter, *(entry.meter for entry in self.entries())]:
            meter.configure(None)
        for cell in self.register_cells():
            cell.clear()
        for filter in [self.default_filter, *(entry.filter for entry in self.entries())]:
            if filter is not None:
                filter.clear()

    def register_cells(self) -> Iterator[Register]:
        """Iterate over the cells of the direct register: those of misses, then each entry's."""
        for cell in [self.default_register, *(entry.register for entry in self.entries())]:
            if cell is not None:
                yield cell

    def clear_counters(self) -> None:
        """Set the direct counters of all entries and of the misses to 0."""
        for count in [self.default_counter, *(entry.counter for entry in self.entries())]:
            count.packets = count.bytes = 0
            count.seen = None

    def set_default(self, action: EntryAction | None) -> None:
        """Set the action on a miss, or the member or group that gives it; None: the source's."""
        if self.table.const_default:
            raise self._error("PERMISSION_DENIED", "its default action is const in the source")
        if isinstance(action, ActionData):
            self.actions.check(action, forbidden="tableonly")
        elif action is not None:
            self._check_target(action)
        self.put_default(self.source_default if action is None else action)

    def put_default(self, action: EntryAction) -> None:
        """Set the action on a miss, unchecked."""
        self.default = action
        for watcher in self.watchers:
            watcher.default_set()

    def resolve(self, target: EntryAction, selection: int = 0) -> ActionData:
        """Return the action that an entry runs; the hash `selection` chooses a group's member.

        For an empty group it is the action that the source gives for it, else the default action
        (the source's, if the default entry has a member or a group).
        """
        if type(target) is ActionData:
            return target
        choices = self.members(target)
        return choices[selection % len(choices)] if choices else self.for_empty_group

    def members(self, target: EntryAction) -> list[ActionData]:
        """Return the actions that an entry's hash chooses among, as `ActionProfile.choices`."""
        assert self.profile is not None, target
        if isinstance(target, ActionData):
            return [target]
        if isinstance(target, OneShot):
            return self.profile.one_shot(target)
        return [self.own(member) for member in self.profile.choices(target)]

    def own(self, member: ActionData) -> ActionData:
        """Return a member's action in the table's numbering. Raises TableError if it has none."""
        assert self.profile is not None, member
        index = self._from_profile.get(member.index)
        if index is None:
            name = self.profile.actions.action(member).name
            what = f"a member of {self.profile.name} has action {name}; its actions: "
            raise self._error("INVALID_ARGUMENT", what + ", ".join(self.actions.for_entries))
        return member if index == member.index else ActionData(index, member.args)

    def check_member(self, member: ActionData) -> None:
        """Raise TableError unless entries of this table may use a member with this action."""
        self.actions.check(self.own(member))

    @property
    def for_empty_group(self) -> ActionData:
        """The action that an entry with an empty group runs."""
        given = self.table.empty_group
        if given is not None:
            return ActionData(given.index, _numbers(given.args))
        return self.default if isinstance(self.default, ActionData) else self.source_default

    def user_of(self, target: EntryAction, default: bool = True) -> str | None:
        """Return the first entry that has a member or a group, as text; None if there is none.

        default: ask the default entry, too."""
        for entry in self.entries():
            if entry.action == target:
                return f"table {self.table.name}, entry {self.describe(entry)}"
        used = default and self.default == target
        return f"the default entry of table {self.table.name}" if used else None

    def targets(self) -> Iterator[EntryAction]:
        """Iterate over what the entries, and the default entry, run."""
        yield from (entry.action for entry in self.entries())
        yield self.default

    # -- rules ----------------------------------------------------------------------------------

    def _check(self, entry: Entry) -> None:
        entry.matches = self._canonical(entry.matches)
        self._check_priority(entry)
        self._check_target(entry.action)

    def _insert(self, entry: Entry) -> None:
        self._check(entry)
        identity = self._identity(entry.matches, entry.priority)
        if identity in self._entries:
            raise self._error(
                "ALREADY_EXISTS", f"it has an entry for {self.describe(entry)}", _PI_EXISTS
            )
        if len(self._entries) >= self.table.size:
            raise self._error("RESOURCE_EXHAUSTED", f"all {self.table.size} entries are in use")
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        """Add a new entry, unchecked."""
        self._serial += 1
        entry.serial = self._serial
        if self.table.support_timeout:
            entry.last_hit_ns = self.clock()
        self._put(entry, self.handles.add)

    def restore(self, entry: Entry) -> None:
        """Put back an entry that was deleted, with its place among equals, its last hit and its
        handle, unless there is one of the same identity by now."""
        if self._identity(entry.matches, entry.priority) not in self._entries:
            self._put(entry, self.handles.put_back)

    def _put(self, entry: Entry, give_handle: Callable[[Entry], None]) -> None:
        if self.table.register is not None and entry.register is None:
            entry.register = direct_cells(self.table.register, self._pipes)
        if self.table.filter is not None and entry.filter is None:
            entry.filter = Filter(self.table.filter.name, 1)
        self._entries[self._identity(entry.matches, entry.priority)] = entry
        if self.profile is not None:
            self.profile.note(entry.action)
        give_handle(entry)
        if self._index is not None:
            self._index.insert(entry)
        if self._idle is not None:
            self._idle.watch(entry)
        for watcher in self.watchers:
            watcher.inserted(entry)

    def _existing(self, entry: Entry) -> Entry:
        found = self.find(entry.matches, entry.priority)
        if found is None:
            what = f"it has no entry for {self.describe(entry)}"
            raise self._error("NOT_FOUND", what, PI_NO_ENTRY)
        if found.is_const:
            what = self.describe(entry)
            raise self._error("PERMISSION_DENIED", f"its entry for {what} is const in the source")
        return found

    def _canonical(self, matches: Sequence[Match]) -> tuple[Match, ...]:
        if not self.fields:
            raise self._error("INVALID_ARGUMENT", "it has no key, so it takes no entries")
        if len(matches) != len(self.fields):
            names = ", ".join(f.name for f in self.fields)
            what = f"{len(matches)} matches given for its {len(self.fields)} fields ({names})"
            raise self._error("INVALID_ARGUMENT", what)
        pairs = zip(self.fields, matches, strict=True)
        return tuple(f.canonical(match) for f, match in pairs)

    def _identity(self, matches: tuple[Match, ...], priority: int) -> Identity:
        return matches, priority if self.with_priority else 0

    def _check_priority(self, entry: Entry) -> None:
        if self.with_priority and not 0 < entry.priority < 1 << 31:
            what = "ternary, range and optional fields need a priority of 1 to 2147483647"
            raise self._error("INVALID_ARGUMENT", f"{what}, not {entry.priority}")
        if not self.with_priority and entry.priority:
            what = f"priority {entry.priority} given, but exact and lpm fields take none"
            raise self._error("INVALID_ARGUMENT", what)

    def _check_target(self, target: EntryAction) -> None:
        if isinstance(target, ActionData):
            if self.profile is not None:
                how = "(member=, group=; table_indirect_add, table_indirect_add_with_group)"
                what = f"its actions are those of {self.profile.name}: give a member or a group"
                raise self._error("INVALID_ARGUMENT", f"{what} {how}")
            self.actions.check(target)
        elif self.profile is None:
            raise self._error("INVALID_ARGUMENT", "it has no action profile: give an action")
        elif isinstance(target, OneShot):
            for action, _, _ in target.actions:
                self.actions.check(action)
        else:
            self.profile.check(target)
            for member in self.profile.members_of(target) if self.profile.mixed else ():
                self.check_member(member)

    def _changeable(self) -> None:
        if self.table.const_entries:
            raise self._error("PERMISSION_DENIED", "its entries are const in the source")

    def _error(self, code: str, what: str, pi_text: str = "") -> TableError:
        return TableError(code, f"table {self.table.name}: {what}", pi_text)

    def describe(self, entry: Entry, exact: Sequence[str] = ()) -> str:
        """Return an entry's matches as text. exact: the texts of exact fields that have others than
        their numbers."""
        names = self.translations or itertools.repeat(None)
        texts = exact or itertools.repeat("")
        parts = [
            f"{f.name} {text if text and f.kind == 'exact' else _match_text(f.kind, match, name)}"
            for f, match, name, text in zip(self.fields, entry.matches, names, texts, strict=False)
        ]
        if self.with_priority:
            parts.append(f"priority {entry.priority}{_command_priority(entry.priority)}")
        return ", ".join(parts)

    # -- the source's entries -------------------------------------------------------------------

    @property
    def source_default(self) -> ActionData:
        """The action on a miss that the source gives."""
        default = self.table.default
        return ActionData(default.index, _numbers(default.args))

    def _load(self) -> None:
        for entry in self._source_entries():
            self._serial += 1
            entry.serial = self._serial
            self._load_one(entry)

    def _source_entries(self) -> Iterator[Entry]:
        for source, priority in zip(self.table.entries, self._priorities(), strict=True):
            pairs = zip(self.fields, _padded(source.matches, len(self.fields)), strict=True)
            yield Entry(
                matches=tuple(source_match(f, match) for f, match in pairs),
                action=ActionData(source.action.index, _numbers(source.action.args)),
                priority=priority,
                is_const=source.const,
            )

    def _load_one(self, entry: Entry) -> None:
        """Load an entry of the source. Of two with the same key the first one wins."""
        identity = self._identity(entry.matches, entry.priority)
        if identity not in self._entries:
            self._put(entry, self.handles.add)

    def _priorities(self) -> list[int]:
        """Return the source entries' priorities; larger wins (P4_16 1.2.5, section 14.2.1.4)."""
        sources = self.table.entries
        if not self.with_priority:
            return [0] * len(sources)
        if all(source.priority is None for source in sources):
            return list(range(len(sources), 0, -1))
        written = _filled([s.priority for s in sources], self.table.largest_priority_wins)
        if self.table.largest_priority_wins:
            return written
        top = max(written)
        return [top + 1 - priority for priority in written]


def _filled(priorities: list[int | None], largest_wins: bool) -> list[int]:
    """Fill in priorities: an entry without one is one step less important than its predecessor."""
    step = -1 if largest_wins else 1
    current = len(priorities) + 1 if largest_wins else 0
    out = []
    for priority in priorities:
        current = current + step if priority is None else priority
        out.append(current)
    return out


def _padded(matches: list[ir.Match], count: int) -> list[ir.Match]:
    """Expand a single `_` or default, which stands for all fields."""
    if len(matches) == 1 and count > 1 and isinstance(matches[0], ir.MatchAny):
        return matches * count
    return matches


def _numbers(args: Sequence[int | bool]) -> tuple[int, ...]:
    return tuple(int(a) for a in args)


def _match_text(kind: str, match: Match, translation: Translation | None) -> str:
    if match is None:
        return "any"
    if translation is not None and kind in ("exact", "optional"):
        return f'"{translation.name(match[0])}"'
    signs = {"lpm": "/", "ternary": " &&& ", "range": ".."}
    first = f"{match[0]:#x}" if kind != "range" else str(match[0])
    second = (hex if kind == "ternary" else str)(match[1]) if len(match) > 1 else ""
    return first + signs.get(kind, "") + second
