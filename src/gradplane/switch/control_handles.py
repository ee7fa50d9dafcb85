"""Handles of tables, action profiles and externs: what Switch.table, Switch.register ... return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from gradplane.switch.control.cells import Meters
from gradplane.switch.control.kind import Refusal
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.match_values import match_of, number
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction, GroupRef, MemberRef
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import MeterConfig
from gradplane.switch.runtime.profiles import ActionProfile, Weighted
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import State

ReplicaSpec = int | tuple[int, int] | tuple[int, int, Iterable[Any]]
"""A replica: port, (port, egress_rid), or (port, egress_rid, backups): while the port has no link,
the first backup that has one takes its place."""

VALIDITY = "$valid$"  # the name of isValid() in P4Info's keys


class Table:
    """A handle of one table.

    Names may be suffixes; errors are SwitchErrors that suggest a remedy. `match` maps field names
    to values (omitted fields match anything); see gradplane.switch.match_values for the forms. A
    table with an action profile takes `member` or `group` in place of `action`.
    """

    def __init__(self, table: MatchTable, store: Store, lock: AbstractContextManager[Any]) -> None:
        self.state = table
        self._entries = store.entries(table)
        self._lock = lock
        self._where = f"table {table.table.name}"

    def __len__(self) -> int:
        return len(self.state)

    def add(
        self,
        match: Mapping[str, Any],
        action: str | None = None,
        params: Mapping[str, Any] | None = None,
        priority: int | None = None,
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> Entry:
        """Add an entry. Where a priority is needed and none is given it is 1; larger wins."""
        entry = self._entry(match, priority, self._target(action, params, member, group))
        with self._lock:
            self._entries.add(entry)
        return entry

    def modify(
        self,
        match: Mapping[str, Any],
        action: str | None = None,
        params: Mapping[str, Any] | None = None,
        priority: int | None = None,
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        """Give the entry with this match (and priority) another action."""
        entry = self._entry(match, priority, self._target(action, params, member, group))
        with self._lock:
            self._entries.modify(entry.key, action=entry.action)

    def remove(self, match: Mapping[str, Any], priority: int | None = None) -> None:
        """Remove the entry with this match (and priority)."""
        with self._lock:
            self._entries.delete(self._entry(match, priority, ActionData(0)).key)

    def clear(self) -> None:
        """Remove all entries except those that are constant in the source."""
        with self._lock:
            self._entries.clear()

    def set_default(
        self, action: str | None = None, params: Mapping[str, Any] | None = None
    ) -> None:
        """Set the action for lookup misses; without arguments, restore the source's."""
        data = None if action is None else action_data(self.state.actions, action, params)
        with self._lock:
            self._entries.set_default(data)

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        return list(self.state.entries())

    def _entry(self, match: Mapping[str, Any], priority: int | None, target: EntryAction) -> Entry:
        if priority is None:
            priority = int(self.state.with_priority)
        return Entry(self._matches(match), target, priority)

    def _matches(self, match: Mapping[str, Any]) -> tuple[Match, ...]:
        given: dict[str, Any] = {}
        names = [f.name for f in self.state.fields]
        for name, value in match.items():
            written = name.replace("isValid()", VALIDITY)
            given[resolve("match field", written, names, self._where)] = value
        return tuple(match_of(f, given.get(f.name)) for f in self.state.fields)

    def _target(
        self,
        action: str | None,
        params: Mapping[str, Any] | None,
        member: int | None,
        group: int | None,
    ) -> EntryAction:
        given = [x for x in (action, member, group) if x is not None]
        if len(given) != 1:
            raise SwitchError(f"{self._where}: give one of action, member and group")
        if action is not None:
            return action_data(self.state.actions, action, params)
        return MemberRef(member) if member is not None else GroupRef(group or 0)


class Profile:
    """A handle of an action profile's members and an action selector's groups."""

    def __init__(
        self, profile: ActionProfile, store: Store, lock: AbstractContextManager[Any]
    ) -> None:
        self.state = profile
        # simple_switch does not ask whether a default entry uses what is removed.
        self.members = store.members(profile, defaults=False)
        self.groups = store.groups(profile, defaults=False)
        self._lock = lock

    @property
    def actions(self) -> ActionList:
        """The actions that a member can have. Raises SwitchError if no table uses the profile."""
        if not self.state.tables:
            raise SwitchError(f"action profile {self.state.name}: no table uses it")
        return self.state.actions

    def add_member(self, id: int, action: str, params: Mapping[str, Any] | None = None) -> None:
        """Add a member; `action` is an action of a table that uses the profile."""
        data = action_data(self.actions, action, params)
        with self._lock:
            self.members.insert(id, action=data)

    def modify_member(self, id: int, action: str, params: Mapping[str, Any] | None = None) -> None:
        """Give a member another action."""
        data = action_data(self.actions, action, params)
        with self._lock:
            self.members.modify(id, action=data)

    def remove_member(self, id: int) -> None:
        """Remove a member that no group and no entry uses."""
        with self._lock:
            self.members.delete(id)

    def add_group(
        self, id: int, members: Iterable[int | tuple[int, int] | tuple[int, int, int]]
    ) -> None:
        """Add a group of members.

        Each is a member, (member, weight) to give it a share of that weight, or (member, weight,
        port) to skip it while the port has no link.
        """
        weighted = [_weighted(*m) if isinstance(m, tuple) else Weighted(m) for m in members]
        with self._lock:
            self.groups.insert(id, members=weighted)

    def remove_group(self, id: int) -> None:
        """Remove a group that no entry uses."""
        with self._lock:
            self.groups.delete(id)


def _weighted(member: int, weight: int, port: int | None = None) -> Weighted:
    size = 0 if port is None else max(1, (port.bit_length() + 7) // 8)
    return Weighted(member, weight, (port or 0).to_bytes(size, "big"))


def action_data(
    actions: ActionList, action: str, params: Mapping[str, Any] | None = None
) -> ActionData:
    """Return one of the actions with its parameters, by name. Raises SwitchError."""
    name = resolve("action", action, actions.names, actions.owner)
    index = actions.names.index(name)
    wanted = actions.choices[index].action.params
    where = f"{actions.owner}: action {name}"
    given: dict[str, Any] = {}
    for key, value in (params or {}).items():
        given[resolve("parameter", key, [p.name for p in wanted], where)] = value
    missing = [p.name for p in wanted if p.name not in given]
    if missing:
        raise SwitchError(f"{where}: no value for {', '.join(missing)}")
    return ActionData(index, tuple(_argument(p, given[p.name], where) for p in wanted))


def _argument(param: ir.Var, value: Any, where: str) -> int:
    what = f"{where}: parameter {param.name}"
    n = number(value, what)
    width = param.type.width if isinstance(param.type, Bits) else 1
    signed = isinstance(param.type, Bits) and param.type.signed
    if isinstance(param.type, Bits | Bool) and isinstance(value, bytes) and signed:
        n = n - (1 << width) if n >> (width - 1) & 1 else n
    return n


# -- externs --------------------------------------------------------------------------------------


class _Extern:
    """A handle of an extern. Reading is of the engines' own memory, whose attributes it has; what
    is written goes through the store."""

    def __init__(self, state: Any, store: Store, lock: AbstractContextManager[Any]) -> None:
        self.state = state
        self._store = store
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)


class RegisterHandle(_Extern):
    """A register: `read`, `values`, `size` and so on as gradplane.switch.runtime.arrays has them.
    A change of `values` or `cells` in place is not undone if a batch fails."""

    def write(self, index: int, value: int) -> None:
        """Set a cell; raises TableError OUT_OF_RANGE or, for a value that does not fit,
        INVALID_ARGUMENT."""
        with self._lock:
            self._store.registers(self.state).write(index, value=value)

    def clear(self) -> None:
        """Set all cells to their initial value."""
        with self._lock:
            self._store.registers(self.state).clear()


class CounterHandle(_Extern):
    """A counter: `read(index)` gives packets and bytes."""

    def write(self, index: int, packets: int, bytes: int) -> None:
        """Set a cell; raises TableError OUT_OF_RANGE."""
        with self._lock:
            self._store.counters(self.state).write(index, packets=packets, bytes=bytes)

    def clear(self) -> None:
        """Set all cells to 0."""
        with self._lock:
            self._store.counters(self.state).clear()


class MeterHandle(_Extern):
    """A meter: `read(index)` gives its rates, `counts(index)` what it has counted per colour."""

    def write(self, index: int, config: MeterConfig | None, now: int | None = None) -> None:
        """Set a cell's rates (None: every packet is green) and fill its buckets; now: by the
        switch's clock, in ns, None: its time. Raises TableError OUT_OF_RANGE."""
        clock = self._store.state.clock if now is None else lambda: now
        with self._lock:
            Meters(self._store.journal, self.state, clock).write(index, config=config)

    def clear(self) -> None:
        """Remove the rates of all cells."""
        with self._lock:
            self._store.meters(self.state).clear()


class ValueSetHandle(_Extern):
    """A parser value set: `members`, `fields`, `size`."""

    def replace(self, members: Sequence[Sequence[Match]]) -> None:
        """Set all members; raises TableError and changes nothing if one is not possible."""
        with self._lock:
            self._store.values(self.state).replace(members)

    def clear(self) -> None:
        """Remove all members."""
        self.replace([])


# -- multicast groups and clone sessions ----------------------------------------------------------


def set_group(store: Store, group: int, ports: Iterable[ReplicaSpec]) -> None:
    """Set a multicast group's ports; without ports, delete the group. Raises SwitchError."""
    groups = store.replication.groups
    most = groups.numbers[-1]
    if not 0 < group <= most:
        raise SwitchError(f"multicast group {group} is not within 1 to {most}")
    parts = _replicas(ports)
    with _as_switch_errors():
        if parts:
            groups.write(group, parts=parts)
        elif groups.has(group):
            groups.delete(group)


def set_session(
    store: Store, session: int, ports: Iterable[ReplicaSpec], truncate: int, class_of_service: int
) -> None:
    """Set a clone session; without ports, delete it. Raises SwitchError."""
    sessions, found = store.replication.sessions, _replicas(ports)
    too_long = f"clone session {session}: truncate {truncate} is not within 31 bits"
    with _as_switch_errors(truncate=too_long):
        sessions.check_key(session)
        if found:
            sessions.set_plain(
                session, replicas=found, truncate=truncate, class_of_service=class_of_service
            )
        elif sessions.has(session):
            sessions.delete(session)


def replicas(store: Store, ports: Iterable[ReplicaSpec]) -> list[Replica]:
    """Make replicas through ports. Raises SwitchError for those that cannot be."""
    found = _replicas(ports)
    with _as_switch_errors():
        store.replication.groups.check_replicas(0, found)
    return found


def _replicas(ports: Iterable[ReplicaSpec]) -> list[Replica]:
    return [_replica(*port) if isinstance(port, tuple) else Replica(port) for port in ports]


def _replica(port: int, instance: int = 0, backups: Iterable[ReplicaSpec] = ()) -> Replica:
    return Replica(port, instance, tuple(_replicas(backups)))


@contextmanager
def _as_switch_errors(**texts: str) -> Iterator[None]:
    """Raise refusals as SwitchErrors. texts: in place of the store's, by the field."""
    try:
        yield
    except Refusal as error:
        raise SwitchError(texts.get(error.field, error.message)) from error


class ControlledSwitch(Protocol):
    """The interface that a control plane in the same process needs; Switch has it."""

    program: ir.Program
    state: State
    store: Store

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def clone_sessions(self) -> int: ...

    def table(self, name: str) -> Table: ...

    def profile(self, name: str) -> Profile: ...

    def register(self, name: str) -> RegisterHandle: ...

    def value_set(self, name: str) -> ValueSetHandle: ...

    def replicas(self, ports: Iterable[ReplicaSpec]) -> list[Replica]: ...

    def multicast(self, group: int, ports: Iterable[ReplicaSpec]) -> None: ...

    def clone_session(
        self,
        session: int,
        ports: Iterable[ReplicaSpec],
        truncate: int = 0,
        class_of_service: int = 0,
    ) -> None: ...

    def reset(self) -> None: ...
