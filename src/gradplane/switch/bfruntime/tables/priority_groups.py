"""Priority groups: which of a port's packets share a part of the buffer at ingress, by their class
(icos). The table and its counts; nothing waits at ingress here, so that they have no effect.

The classes that no group of a port has are in its default group (tm.port.dpg, tm.mirror.dpg).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
    nothing,
)
from gradplane.switch.bfruntime.tables.port_groups import LOCAL_PORTS
from gradplane.switch.p4runtime.status_errors import RpcError

_CLASSES = 8
_OF_A_PORT = 8
_OF_A_PIPE = 128
_Group = tuple[int, int]


def mirror_port(pipe: int, pipe_bits: int) -> int:
    """Return the number of the port that mirror copies come by."""
    return pipe << pipe_bits | LOCAL_PORTS


class PriorityGroups:
    """The groups that were added, by pipe and number: their values, with the port ("dev_port")."""

    def __init__(self, facts: DeviceFacts) -> None:
        self.pipe_bits = facts.pipe_bits
        self.added: dict[_Group, dict[str, Any]] = {}

    def of_port(self, port: int) -> Iterator[tuple[_Group, dict[str, Any]]]:
        for group, values in self.added.items():
            if values["dev_port"] == port:
                yield group, values

    def classes(self, port: int) -> dict[str, Any]:
        """Return the values of a port's default group: the group of each class, 0 for itself."""
        owners = [0] * _CLASSES
        for (_, number), values in self.of_port(port):
            for i in range(_CLASSES):
                if values.get(f"icos_{i}"):
                    owners[i] = number
        own = {f"icos_{i}": not owner for i, owner in enumerate(owners)}
        return {"icos_ppg_map": owners, **own}

    def counters(self, pipe: int) -> dict[int, int]:
        """Return the number of the group of each counter in a pipe."""
        return {v["ppg_counter_id"]: n for (p, n), v in self.added.items() if p == pipe}


class PriorityGroupTable(ControlTable):
    """The table of priority groups. The action says whether a group is a port's or the mirror
    port's."""

    def __init__(self, schema: TableSchema, groups: PriorityGroups) -> None:
        super().__init__(schema)
        self.groups = groups

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        number = self.number(key, "ppg_id")
        if not number:
            raise self.invalid("ppg_id 0 is not allowed")
        if data.action is None:
            raise self.invalid("an action is missing: dev_port or mirror_port")
        there = [pipe for pipe in scope.pipes if (pipe, number) in self.groups.added]
        if there:
            raise self._exists(there[0], number)
        made = {}
        for pipe in scope.pipes:
            port = self._port(pipe, data)
            self._check_room(pipe, port)
            used = self.groups.counters(pipe)
            counter = next(i for i in range(_OF_A_PIPE) if i not in used)
            values = {**data.values, "dev_port": port, "ppg_counter_id": counter}
            made[pipe, number] = self._checked((pipe, number), values)
        return self._set(made)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        changed = {}
        for group in self._found(scope, key):
            old = self.groups.added[group]
            if data.action is not None and data.action.name != self._action(group[0], old):
                raise self.invalid(f"group {group[1]} is of the other kind of port")
            if data.values.get("dev_port", old["dev_port"]) != old["dev_port"]:
                raise self.invalid(f"group {group[1]} is port {old['dev_port']}'s")
            changed[group] = self._checked(group, {**old, **data.values})
        return self._set(changed)

    def delete(self, scope: Scope, key: Key) -> Undo:
        return self._set(dict.fromkeys(self._found(scope, key)))

    def clear(self, scope: Scope) -> Undo:
        return self._set(dict.fromkeys(g for g in self.groups.added if g[0] in scope.pipes))

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self._found(scope, key)[0])

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for group in sorted(self.groups.added):
            if group[0] == scope.pipes[0]:
                yield {"ppg_id": (group[1],)}, self._shown(group)

    def usage(self, scope: Scope) -> int:
        return sum(1 for pipe, _ in self.groups.added if pipe in scope.pipes)

    # -- parts ----------------------------------------------------------------------------------

    def _exists(self, pipe: int, number: int) -> RpcError:
        what = f"table {self.schema.name}: pipe {pipe} has a group {number}"
        return RpcError("ALREADY_EXISTS", what)

    def _found(self, scope: Scope, key: Key) -> list[_Group]:
        number = self.number(key, "ppg_id")
        found = [(pipe, number) for pipe in scope.pipes if (pipe, number) in self.groups.added]
        if not found:
            raise self.missing(f"there is no group {number}")
        return found

    def _port(self, pipe: int, data: Data) -> int:
        assert data.action is not None
        bits = self.groups.pipe_bits
        if data.action.name == "mirror_port":
            return mirror_port(pipe, bits)
        port = data.values.get("dev_port")
        if port is None:
            raise self.invalid("dev_port is missing")
        if port >> bits != pipe or port & ((1 << bits) - 1) >= LOCAL_PORTS:
            raise self.invalid(f"dev_port {port} is not a port of pipe {pipe}; name the pipe")
        return int(port)

    def _check_room(self, pipe: int, port: int) -> None:
        if sum(1 for _ in self.groups.of_port(port)) >= _OF_A_PORT:
            raise self._full(f"port {port} has {_OF_A_PORT} groups already")
        if len(self.groups.counters(pipe)) >= _OF_A_PIPE:
            raise self._full(f"pipe {pipe} has {_OF_A_PIPE} groups already")

    def _full(self, what: str) -> RpcError:
        return RpcError("RESOURCE_EXHAUSTED", f"table {self.schema.name}: {what}")

    def _checked(self, group: _Group, values: dict[str, Any]) -> dict[str, Any]:
        """Return values whose classes no other group of the port has. Raises RpcError."""
        wanted = [f"icos_{i}" for i in range(_CLASSES) if values.get(f"icos_{i}")]
        for other, theirs in self.groups.of_port(values["dev_port"]):
            taken = [name for name in wanted if theirs.get(name)]
            if other != group and taken:
                raise self.invalid(f"{taken[0]} is group {other[1]}'s: take it from there first")
        return values

    def _action(self, pipe: int, values: Mapping[str, Any]) -> str:
        mirrored = values["dev_port"] == mirror_port(pipe, self.groups.pipe_bits)
        return "mirror_port" if mirrored else "dev_port"

    def _shown(self, group: _Group) -> Data:
        kept = self.groups.added[group]
        action = self.schema.action_named(self._action(group[0], kept))
        fields = (*self.schema.data, *action.data)
        return Data(action, {f.name: kept.get(f.name, f.first) for f in fields})

    def _set(self, values: Mapping[_Group, dict[str, Any] | None]) -> Undo:
        old = {group: self.groups.added.get(group) for group in values}
        self._apply(values)
        return lambda: self._apply(old)

    def _apply(self, values: Mapping[_Group, dict[str, Any] | None]) -> None:
        for group, kept in values.items():
            if kept is None:
                self.groups.added.pop(group, None)
            else:
                self.groups.added[group] = kept


class PriorityGroupCounts(ControlTable):
    """The counts of priority groups, by the number of the counter that each group shows: 0."""

    def __init__(self, schema: TableSchema, groups: PriorityGroups) -> None:
        super().__init__(schema)
        self.groups = groups

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        number = self.number(key, "ppg_counter_id")
        found = self.groups.counters(scope.pipes[0])
        if number not in found:
            raise self.missing(f"no group of pipe {scope.pipes[0]} has counter {number}")
        return key, self._shown(found[number])

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for number, group in self.groups.counters(scope.pipes[0]).items():
            yield {"ppg_counter_id": (number,)}, self._shown(group)

    def usage(self, scope: Scope) -> int:
        return len(self.groups.counters(scope.pipes[0]))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        self.find(scope, key)
        if any(data.values.values()):
            raise self.invalid("counters can only be set to 0")
        return nothing

    def reset(self, scope: Scope, key: Key) -> Undo:
        self.find(scope, key)
        return nothing

    def clear(self, scope: Scope) -> Undo:
        return nothing

    def _shown(self, group: int) -> Data:
        return Data(None, {f.name: f.first for f in self.schema.data} | {"ppg_id": group})
