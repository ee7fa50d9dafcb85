"""The rules that a program's annotations set for the entries that controllers write.

    @entry_restriction("..."), @action_restriction("...")   p4-constraints (constraints.py)
    @refers_to(table, key)                                  on a key or an action's parameter

A value that refers to a table's key must be that of an entry there. Where several values of an
entry's keys, or of its action, refer to keys of one table, one entry must have all of them. The
tables `builtin::multicast_group_table` (its key is multicast_group_id) and
`builtin::clone_session_table` (clone_session_id) are the packet replication engine's. What a
table's own restriction keeps out of it is there without an entry, as SAI's default VRF.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradplane._p4runtime import p4i
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.catalog import Catalog, ListedActions, TableInfo, Value
from gradplane.switch.p4runtime.constraints import Constraint, ConstraintError, ones, restrictions
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction, OneShot
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable

Values = tuple[int, ...]

_REFERS = re.compile(
    r'@refers_to\(\s*"?(?P<builtin>builtin\s*:\s*:\s*)?(?P<table>[\w.]+)"?\s*,'
    r'\s*"?(?P<key>[\w.]+)"?\s*\)'
)
GROUPS, SESSIONS = "multicast_group_table", "clone_session_table"
_BUILTIN_KEYS = {GROUPS: "multicast_group_id", SESSIONS: "clone_session_id"}


@dataclass(eq=False)
class _Target:
    """Keys of a table that others refer to. `there`: how many entries have each combination of
    values; `used`: how many values refer to it. `exists`: tells whether a builtin table has it;
    `values`: how another table's keys are shown; `kept_out`: whether no entry may have them."""

    table: str
    keys: tuple[str, ...]
    positions: tuple[int, ...] = ()
    exists: Callable[[int], bool] | None = None
    values: tuple[Value, ...] = ()
    kept_out: Callable[[Values], bool] = lambda values: False
    there: Counter[Values] = field(default_factory=Counter)
    used: Counter[Values] = field(default_factory=Counter)

    def has(self, values: Values) -> bool:
        if self.exists is not None:
            return self.exists(values[0])
        return self.there[values] > 0 or self.kept_out(values)

    def text(self, values: Values) -> str:
        shown: list[str | int] = list(values)
        for i, value in enumerate(self.values):
            if value.names is not None:
                shown[i] = f'"{value.names.name(values[i])}"'
        return ", ".join(f"{key} {one}" for key, one in zip(self.keys, shown, strict=True))


@dataclass(frozen=True)
class _Reference:
    """`positions`: of the values, among the keys of a table or the parameters of an action."""

    target: _Target
    positions: tuple[int, ...]

    def of_key(self, matches: Sequence[Match]) -> Values | None:
        """Return the values that an entry's keys refer with; None if one of them is any value."""
        return _values(matches, self.positions)

    def of_action(self, action: ActionData) -> Values:
        return tuple(action.args[position] for position in self.positions)


class EntryRules:
    """The rules of a running program. Raises ConstraintError where one cannot be understood."""

    def __init__(self, catalog: Catalog, info: p4i.P4Info, store: Store) -> None:
        self._restrictions = restrictions(info)
        self._targets: dict[tuple[str, tuple[str, ...]], _Target] = {}
        self._catalog = catalog
        self._store = store
        self._of_keys = {
            t.preamble.id: self._references(t.preamble.name, _annotated(
                t.match_fields, [f.value for f in catalog.tables[t.preamble.id].fields.values()]
            ))
            for t in info.tables
        }  # fmt: skip
        self._of_actions = {
            a.preamble.id: self._references(
                a.preamble.name, _annotated(a.params, catalog.actions[a.preamble.id].params)
            )
            for a in info.actions
        }
        for table in catalog.tables.values():
            self._watch(table)
        for number, listed in catalog.member_actions.items():
            if any(self._of_actions.get(id) for id in listed.by_id):
                self._watch_members(catalog.profiles[number].name, listed)

    # -- what writers ask ------------------------------------------------------------------------

    def check_entry(
        self, info: TableInfo, matches: Sequence[Match], priority: int, target: EntryAction
    ) -> None:
        """Refuse an entry that its table's rules or its actions' do not allow. Raises RpcError."""
        for action in _actions(target):
            self.check_action(info.actions, action)
        constraint = self._restrictions.get(info.id)
        if constraint is not None:
            fields = info.fields.values()
            given: dict[str, Any] = {
                f.value.name: _seen(f.kind, f.value, matches[f.position]) for f in fields
            }
            _keep(constraint, {**given, "::priority": priority}, f"table {info.name}: the entry")
        for reference in self._of_keys.get(info.id, ()):
            values = reference.of_key(matches)
            if values is not None:
                _find(reference.target, values, f"table {info.name}: the entry")

    def apply_to(self, table: int, action: int) -> bool:
        """Return whether there are rules for a table's entries with an action, by their ids."""
        of_keys, of_actions = self._of_keys.get(table), self._of_actions.get(action)
        restricted = table in self._restrictions or action in self._restrictions
        return bool(restricted or of_keys or of_actions)

    def check_action(self, listed: ListedActions, action: ActionData) -> None:
        """Refuse an action's arguments that its rules do not allow. Raises RpcError."""
        info = next(choice.info for choice in listed.by_id.values() if choice.index == action.index)
        constraint = self._restrictions.get(info.id)
        if constraint is not None:
            pairs = zip(info.params, action.args, strict=True)
            given = {param.name: value & (1 << param.width) - 1 for param, value in pairs}
            _keep(constraint, given, f"action {info.name}")
        for reference in self._of_actions.get(info.id, ()):
            _find(reference.target, reference.of_action(action), f"action {info.name}")

    def check_unused(self, info: TableInfo, matches: Sequence[Match]) -> None:
        """Refuse to delete an entry that is the last one others refer to. Raises RpcError."""
        for target in self._provided(info):
            values = _values(matches, target.positions)
            if values is not None and target.there[values] == 1:
                _unused(target, values)

    def check_builtin_unused(self, table: str, number: int) -> None:
        """Refuse to delete a multicast group or a clone session in the same way."""
        target = self._targets.get((table, (_BUILTIN_KEYS[table],)))
        if target is not None:
            _unused(target, (number,))

    # -- what the tables hold --------------------------------------------------------------------

    def _watch(self, info: TableInfo) -> None:
        actions = [self._of_actions.get(c.info.id, ()) for c in info.actions.by_id.values()]
        if not (self._of_keys.get(info.id) or any(actions) or any(self._provided(info))):
            return
        table = self._store.state.tables[info.name]
        watch = _Watch(self, info, table)
        for entry in table.entries():
            watch.inserted(entry)
        table.watchers.append(watch)

    def _watch_members(self, profile: str, listed: ListedActions) -> None:
        def changed(former: ActionData | None, action: ActionData | None) -> None:
            for one, change in ((former, -1), (action, +1)):
                for target, values in self.used_by_action(listed, one):
                    target.used[values] += change

        self._store.state.profiles[profile].watchers.append(changed)

    def _provided(self, info: TableInfo) -> Iterator[_Target]:
        """Yield what others refer to in a table."""
        return (t for t in self._targets.values() if t.table == info.name and t.exists is None)

    def used_by(self, info: TableInfo, entry: Entry) -> Iterator[tuple[_Target, Values]]:
        """Yield what an entry refers to."""
        for reference in self._of_keys.get(info.id, ()):
            values = reference.of_key(entry.matches)
            if values is not None:
                yield reference.target, values
        yield from self.used_by_action(info.actions, entry.action)

    def used_by_action(
        self, listed: ListedActions, target: EntryAction | None
    ) -> Iterator[tuple[_Target, Values]]:
        """Yield what the actions refer to that an entry gives with it, or that are a member's."""
        ids = {choice.index: choice.info.id for choice in listed.by_id.values()}
        for action in _actions(target):
            for reference in self._of_actions.get(ids.get(action.index, 0), ()):  # 0: @hidden
                yield reference.target, reference.of_action(action)

    def provides(self, info: TableInfo, entry: Entry, change: int) -> None:
        """Count an entry, or count it no longer, among those that others may refer to."""
        for target in self._provided(info):
            values = _values(entry.matches, target.positions)
            if values is not None:
                target.there[values] += change

    # -- the annotations -------------------------------------------------------------------------

    def _references(
        self, owner: str, annotated: Iterable[tuple[int, re.Match[str]]]
    ) -> list[_Reference]:
        """Return references, those to keys of one table as one."""
        found: dict[str, dict[str, int]] = {}
        for position, annotation in annotated:
            table, key = annotation["table"], annotation["key"]
            name = table if annotation["builtin"] else self._table(owner, table).name
            found.setdefault(name, {})[key] = position
        return [
            _Reference(self._target(owner, name, tuple(keys)), tuple(keys.values()))
            for name, keys in found.items()
        ]

    def _table(self, owner: str, name: str) -> TableInfo:
        for table in self._catalog.tables.values():
            if f".{table.name}".endswith(f".{name}"):
                return table
        raise ConstraintError(f"{owner}: @refers_to({name}, ...): there is no such table")

    def _target(self, owner: str, table: str, keys: tuple[str, ...]) -> _Target:
        if (table, keys) not in self._targets:
            self._targets[table, keys] = self._made(owner, table, keys)
        return self._targets[table, keys]

    def _made(self, owner: str, table: str, keys: tuple[str, ...]) -> _Target:
        if table in _BUILTIN_KEYS:
            kinds = self._store.replication
            builtin = kinds.groups if table == GROUPS else kinds.sessions
            if keys == (_BUILTIN_KEYS[table],):
                return _Target(table, keys, exists=builtin.has)
        else:
            info = self._table(owner, table)
            fields = {f.value.name: f for f in info.fields.values()}
            if set(keys) <= set(fields):
                chosen = [fields[key] for key in keys]
                at = tuple(f.position for f in chosen)
                values = tuple(f.value for f in chosen)
                return _Target(table, keys, at, values=values, kept_out=self._kept_out(info, keys))
        raise ConstraintError(f"{owner}: @refers_to({table}, ...): it has no key {', '.join(keys)}")

    def _kept_out(self, info: TableInfo, keys: Sequence[str]) -> Callable[[Values], bool]:
        """Return the function that says whether a table's restriction allows no entry with
        such values of these keys."""
        constraint, fields = self._restrictions.get(info.id), list(info.fields.values())
        named = {f.value.name: f for f in fields}
        if constraint is None or len(keys) < len(fields) or any(f.kind != "exact" for f in fields):
            return lambda values: False

        def kept_out(values: Values) -> bool:
            pairs = ((named[key], value) for key, value in zip(keys, values, strict=True))
            given = {f.value.name: _seen(f.kind, f.value, (value,)) for f, value in pairs}
            return constraint.violated({**given, "::priority": 0}) is not None

        return kept_out


@dataclass(eq=False)
class _Watch:
    """Keeps the counts of what a table's entries are referred to for, and refer to.

    Whoever writes or deletes them: packets, commands and programs do, too."""

    rules: EntryRules
    info: TableInfo
    table: MatchTable
    uses: dict[int, list[tuple[_Target, Values]]] = field(default_factory=dict)

    def inserted(self, entry: Entry) -> None:
        self.rules.provides(self.info, entry, +1)
        self.modified(entry)

    def modified(self, entry: Entry) -> None:
        self._use(id(entry), self.rules.used_by(self.info, entry))

    def deleted(self, entry: Entry) -> None:
        self.rules.provides(self.info, entry, -1)
        self._use(id(entry), ())

    def default_set(self) -> None:
        """The source's default entry may refer to what is not there: it is not counted."""
        default = self.table.default
        own = None if default == self.table.source_default else default
        self._use(0, self.rules.used_by_action(self.info.actions, own))

    def _use(self, key: int, uses: Iterable[tuple[_Target, Values]]) -> None:
        """Count what an entry refers to in the place of what it did; 0: the default entry."""
        for target, values in self.uses.pop(key, ()):
            target.used[values] -= 1
        if found := list(uses):
            self.uses[key] = found
            for target, values in found:
                target.used[values] += 1


class NoRules(EntryRules):
    """Allows everything."""

    def __init__(self) -> None:
        self._restrictions: Mapping[int, Constraint] = {}
        self._targets, self._of_keys, self._of_actions = {}, {}, {}


def _annotated(
    parts: Iterable[p4i.MatchField | p4i.Action.Param], values: Sequence[Value]
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the references of keys or parameters, with their positions among the values."""
    positions = {value.id: position for position, value in enumerate(values)}
    for part in parts:
        for annotation in part.annotations:
            found = _REFERS.fullmatch(annotation)
            if found is not None:
                yield positions[part.id], found


def _actions(target: EntryAction | None) -> Iterator[ActionData]:
    """Yield the actions that an entry gives with it."""
    match target:
        case ActionData():
            yield target
        case OneShot(actions=actions):
            yield from (action for action, _, _ in actions)


def _values(matches: Sequence[Match], positions: Iterable[int]) -> Values | None:
    """Return the values of an entry's keys; None if one of them is any value."""
    found = [matches[position] for position in positions]
    return None if None in found else tuple(match[0] for match in found if match is not None)


def _seen(kind: str, field: Value, match: Match) -> Any:
    """Return an entry's match of a key as constraints see it; `match` is None for any value.

    Text is its bytes as one number, so that only the empty one is 0; the mask of all bits is -1.
    """
    whole = ones(field.wire)
    if match is not None and not field.wire:
        mask = [whole if part == ones(field.width) else part for part in match[1:]]
        match = (int.from_bytes(field.show(match[0]), "big"), *mask)
    match kind:
        case "exact":
            return None if match is None else match[0]
        case "optional":
            return (0, 0) if match is None else (match[0], whole)
        case "range":
            return (0, whole) if match is None else match
    return (0, 0) if match is None else match


def _keep(constraint: Constraint, given: Mapping[str, Any], what: str) -> None:
    violated = constraint.violated(given)
    if violated is not None:
        raise invalid(f"{what} breaks its restriction: {violated}")


def _find(target: _Target, values: Values, what: str) -> None:
    if not target.has(values):
        raise RpcError(
            "NOT_FOUND",
            f"{what} refers to {target.table} with {target.text(values)}, and there is no such"
            " entry: insert that first",
        )


def _unused(target: _Target, values: Values) -> None:
    if target.used[values]:
        raise RpcError(
            "FAILED_PRECONDITION",
            f"{target.table} with {target.text(values)} is referred to by"
            f" {target.used[values]} values of other entries: delete these first",
        )
