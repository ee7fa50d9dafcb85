"""The choices of the entries of a table with an action profile, in native memory.

Each target in use (a member, a group, a one-shot group) has a run of choices: action parts that
entries refer to by the first one's number and their number. The first two of all are the table's
default action, if it is one, and the action for an empty group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gradplane.switch.jit.native_memory import Memory
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction
from gradplane.switch.runtime.match_table import MatchTable

FIXED = 2  # choices that are always there
SLACK = 1024  # choices that may be unused before all are written anew


@dataclass(slots=True)
class _Run:
    """The choices of a target. `users`: the entries with this target, by their id()."""

    actions: list[ActionData]
    first: int
    users: dict[int, Entry] = field(default_factory=dict)

    @property
    def numbers(self) -> bytes:
        return self.first.to_bytes(4, "little") + len(self.actions).to_bytes(4, "little")


class Choices:
    """The choices of one table.

    encode: returns an action part of `size` bytes for an action, given whether it is an entry's.
    moved: called with entries whose numbers have changed."""

    def __init__(
        self,
        table: MatchTable,
        memory: Memory,
        size: int,
        encode: Callable[[ActionData, bool], bytes],
        moved: Callable[[Entry, bytes], None],
    ) -> None:
        self._table = table
        self._memory = memory
        self._size = size
        self._encode = encode
        self._moved = moved
        self._runs: dict[EntryAction, _Run] = {}
        self._targets: dict[int, EntryAction] = {}  # by the entry's id()
        self._end = FIXED
        self._used = FIXED
        self._seen: object = None  # of the profile, when the runs were last compared with it

    def set_fixed(self) -> None:
        """Write the default action and that for an empty group."""
        default, empty = self._table.default, self._table.for_empty_group
        default = default if isinstance(default, ActionData) else empty
        for at, action in enumerate((default, empty)):
            self._write(at, [action], False)

    def take(self, entry: Entry) -> bytes:
        """Return the numbers for an entry that is new, or has a new target."""
        self.drop(entry)
        target = entry.action
        run = self._runs.get(target)
        if run is None:
            run = self._runs[target] = _Run([], 0)
            self._place(run, self._actions(target))
        run.users[id(entry)] = entry
        self._targets[id(entry)] = target
        return run.numbers

    def drop(self, entry: Entry) -> None:
        """Note that an entry no longer uses its target."""
        target = self._targets.pop(id(entry), None)
        if target is None:
            return
        run = self._runs[target]
        del run.users[id(entry)]
        if not run.users:
            self._used -= len(run.actions)
            del self._runs[target]

    def refresh(self) -> None:
        """Update the runs from the profile, if it changed."""
        profile = self._table.profile
        assert profile is not None, self._table.table.name
        seen = profile.changes, profile.links.down, profile.member_states()
        if seen != self._seen:
            self._seen = seen
            for target, run in self._runs.items():
                actions = self._actions(target)
                if actions != run.actions:
                    self._place(run, actions)

    def _actions(self, target: EntryAction) -> list[ActionData]:
        return self._table.members(target)

    def _place(self, run: _Run, actions: list[ActionData]) -> None:
        """Give a run other actions: in its place if there are as many, else after all others."""
        before, run.actions = run.actions, actions
        if len(actions) != len(before):
            self._used += len(actions) - len(before)
            run.first, self._end = self._end, self._end + len(actions)
        self._write(run.first, actions, True)
        if len(actions) != len(before):
            for entry in run.users.values():
                self._moved(entry, run.numbers)
        if self._end > 2 * self._used + SLACK:
            self._close_up()

    def _close_up(self) -> None:
        """Write all runs anew, without gaps."""
        self._end = self._used = FIXED
        for run in self._runs.values():
            actions, run.actions = run.actions, []
            self._place(run, actions)

    def _write(self, at: int, actions: list[ActionData], hit: bool) -> None:
        self._memory.grow((at + len(actions)) * self._size)
        self._memory.write(at * self._size, b"".join(self._encode(a, hit) for a in actions))
