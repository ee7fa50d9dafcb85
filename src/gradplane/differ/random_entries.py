"""Random entries, members and groups of a program, in several switches alike."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from gradplane.differ.values import PORTS, Values
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, statements
from gradplane.switch.p4runtime.p4info import is_hidden
from gradplane.switch.runtime.action_lists import ActionList, annotated
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
)
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import Weighted
from gradplane.switch.switch import Switch

_MEMBERS, _GROUPS = range(1, 5), range(1, 3)


class RandomEntries:
    """Inserts into the tables of `switches`, which run one program, the same everywhere."""

    def __init__(self, switches: Sequence[Switch], rng: random.Random, values: Values) -> None:
        self._switches, self._rng, self._values = switches, rng, values
        self._used: Counter[tuple[str, int]] = Counter()  # how often each action was chosen
        self.tables = {
            name: [switch.state.tables[name] for switch in switches]
            for name, table in switches[0].state.tables.items()
            if not table.table.entries and _choices(table.actions)
        }

    def prepare(self, program: ir.Program) -> None:
        """Set multicast groups, the program's clone sessions, members and groups of members."""
        groups = {number: sorted(self._rng.sample(PORTS, number)) for number in range(1, 4)}
        sessions = {number: [self._rng.choice(PORTS)] for number in sorted(_sessions(program))}
        for switch in self._switches:
            for number, ports in groups.items():
                switch.multicast(number, ports)
            for number, ports in sessions.items():
                if 0 < number < switch.clone_sessions:
                    switch.clone_session(number, ports)
        for name in self._switches[0].state.profiles:
            self._fill(name)

    def _fill(self, name: str) -> None:
        profiles = [switch.state.profiles[name] for switch in self._switches]
        if profiles[0].mixed:
            return
        for member in _MEMBERS:
            action = self._action(profiles[0].actions)
            for profile in profiles:
                profile.add_member(member, action)
        for group in _GROUPS if profiles[0].has_groups else ():
            members = self._rng.sample(_MEMBERS, group + 1)
            for profile in profiles:
                profile.add_group(group, [Weighted(member) for member in members])

    def insert(self, name: str, keys: Mapping[str, int] | None = None) -> None:
        """Insert an entry that a lookup with these keys hits, or any."""
        tables = self.tables[name]
        fields = tables[0].fields
        matches = tuple(self._match(f, None if keys is None else keys[f.name]) for f in fields)
        priority = self._rng.randrange(1, 1000) if tables[0].with_priority else 0
        action = self._target(tables[0])
        for table in tables:
            try:
                table.insert(Entry(matches, action, priority))
            except TableError:
                return  # there already, or an action that is for the default only

    def _match(self, field: KeyField, key: int | None) -> Match:
        rng = self._rng
        value = self._values.port(field.width) if key is None else key & field.full
        if field.kind == "lpm":
            length = rng.choice((field.width, field.width, rng.randrange(1, field.width + 1)))
            return value & field.mask(length), length
        if field.kind == "ternary":
            mask = rng.choice((field.full, field.full, rng.getrandbits(field.width) | 1))
            return value & mask, mask
        if field.kind == "range":
            other = rng.choice((value, self._values.value(field.width)))
            low, high = sorted((value, other), key=field.order)
            return low, high
        if field.kind == "optional" and rng.random() < 0.2:
            return None
        return (value,)

    def _target(self, table: MatchTable) -> EntryAction:
        if table.profile is None:
            return self._action(table.actions)
        if table.profile.has_groups and self._rng.random() < 0.7:
            return GroupRef(self._rng.choice(_GROUPS))
        return MemberRef(self._rng.choice(_MEMBERS))

    def _action(self, actions: ActionList) -> ActionData:
        known = _choices(actions)
        self._rng.shuffle(known)
        index = min(known, key=lambda number: self._used[actions.owner, number])
        self._used[actions.owner, index] += 1
        params = actions.choices[index].action.params
        return ActionData(index, tuple(self._values.argument(p.type) for p in params))


def _choices(actions: ActionList) -> list[int]:
    """Return the numbers of the actions that a controller can give to an entry."""
    return [
        number
        for number, choice in enumerate(actions.choices)
        if not (is_hidden(choice.action.annotations) or annotated(choice, "defaultonly"))
    ]


def _sessions(program: ir.Program) -> set[int]:
    """Return the clone sessions that the program names by a number."""
    calls = [s for _, block in blocks(program.package) for s in statements(block)]
    clones = [s for s in calls if isinstance(s, ir.CallExtern) and s.name.startswith("clone")]
    return {int(a.value) for s in clones for a in s.args[1:2] if isinstance(a, ir.Const)}
