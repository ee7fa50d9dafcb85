"""Groups of ports, which share queues, and the table that deals the queues out to the ports; and
priority groups of a port's packets.

A packet names a queue (qid); the port's map gives the queue that it waits in. The switch's own
queues follow the map (`EgressQueues.classes`).

A priority group says which of a port's packets share a part of the buffer at ingress, by their
class (icos); nothing waits at ingress here, so that it has no effect. The classes that no group of
a port has are in its default group (tm.port.dpg, tm.mirror.dpg).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Flags, RowTable, Scope
from gradplane.switch.control.journal import Journal
from gradplane.switch.control.store import Store
from gradplane.switch.runtime.egress_queues import EgressQueues

LOCAL_PORTS = 72
"""Ports of a pipe that the traffic manager knows."""
_Group = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Deal:
    """How many queues each port of a group has, and the queue of each qid, port by port."""

    counts: tuple[int, ...]
    maps: tuple[tuple[int, ...], ...]


class PortGroups:
    """The groups of a chip's pipes: `ports` ports share `queues` queues.

    Unless the table deals them out, each port has the queues that the switch was started with, at
    the first numbers of an equal share, and qids go round them.
    """

    def __init__(self, facts: DeviceFacts, queues: EgressQueues) -> None:
        self.ports, self.queues = (4, 32) if facts.family == "tf1" else (8, 128)
        self.pipe_bits = facts.pipe_bits
        self.count = LOCAL_PORTS // self.ports
        self.switch_queues = queues

    @property
    def most(self) -> int:
        """The queues of a port of the switch."""
        return self.switch_queues.priorities or 1

    def place(self, port: int) -> tuple[int, int, int]:
        """Return a port's pipe, its group there and its number in the group."""
        pipe, local = divmod(port, 1 << self.pipe_bits)
        return (pipe, *divmod(local, self.ports))

    def port(self, pipe: int, group: int, within: int) -> int:
        return pipe << self.pipe_bits | (group * self.ports + within)

    def queues_of(self, port: int) -> int:
        """Return how many queues a port has."""
        pipe, group, within = self.place(port)
        return self.deal(pipe, group).counts[within]

    def number(self, port: int, queue: int) -> int:
        """Return the number in its group of a port's queue."""
        pipe, group, within = self.place(port)
        return self._firsts(pipe, group)[within] + queue

    def locate(self, pipe: int, group: int, number: int) -> tuple[int, int]:
        """Return the port of a queue, and the queue's number there, which may be beyond those that
        the port has."""
        firsts = self._firsts(pipe, group)
        within = max(i for i, first in enumerate(firsts) if first <= number)
        return self.port(pipe, group, within), number - firsts[within]

    def map(self, port: int) -> Sequence[int]:
        """Return the queue of each qid of a port."""
        pipe, group, within = self.place(port)
        return self.deal(pipe, group).maps[within]

    def deal(self, pipe: int, group: int) -> _Deal:
        found = self._dealt(pipe, group)
        if found is not None:
            return found
        counts = (self.most,) * self.ports
        return _Deal(counts, tuple(round_robin(count, self.queues) for count in counts))

    def _dealt(self, pipe: int, group: int) -> _Deal | None:
        """Return what the table dealt out, which outlasts the program."""
        queues, ports = self.switch_queues, [self.port(pipe, group, i) for i in range(self.ports)]
        if ports[0] not in queues.dealt:
            return None
        maps = (tuple(queues.classes[port, : self.queues].tolist()) for port in ports)
        return _Deal(tuple(queues.dealt[port] for port in ports), tuple(maps))

    def _firsts(self, pipe: int, group: int) -> list[int]:
        """Return the number of each port's first queue."""
        found = self._dealt(pipe, group)
        if found is None:
            return [i * (self.queues // self.ports) for i in range(self.ports)]
        return [sum(found.counts[:i]) for i in range(self.ports)]

    def set(self, journal: Journal, group: _Group, deal: _Deal | None) -> None:
        """Deal out the queues of a group; None: as at the start."""
        old = self._dealt(*group)
        self._apply(group, deal)
        journal.record(lambda: self._apply(group, old))

    def _apply(self, group: _Group, deal: _Deal | None) -> None:
        for within in range(self.ports):
            port = self.port(*group, within)
            self.switch_queues.deal_evenly(port)
            if deal is not None:
                self.switch_queues.classes[port, : self.queues] = deal.maps[within]
                self.switch_queues.dealt[port] = deal.counts[within]


@cache  # a read of all nodes or ports asks it tens of thousands of times
def round_robin(count: int, qids: int) -> tuple[int, ...]:
    """Return the map of a port whose qids go round its queues."""
    return tuple(i % count if count else 0 for i in range(qids))


@cache
def in_chunks(count: int, qids: int) -> tuple[int, ...]:
    """Return the map of a port whose queues have equally many qids, each some in a row."""
    size = qids // count if count else 0
    if size > 1:
        return tuple(min(i // size, count - 1) for i in range(qids))
    return tuple(i if i < count else 0 for i in range(qids))


class PortGroupTable(RowTable):
    """The table that deals out the queues of each group; it shows them as the action "map"."""

    def __init__(self, schema: TableSchema, store: Store, groups: PortGroups) -> None:
        super().__init__(schema, store)
        self.groups = groups

    def rows(self, scope: Scope) -> range:
        return range(self.groups.count)

    def row(self, scope: Scope, key: Key) -> int:
        group = self.number(key)
        if group >= self.groups.count:
            raise self.invalid(f"there is no group {group}: a pipe has {self.groups.count}")
        return group

    def usage(self, scope: Scope) -> int:
        return self.groups.count * len(scope.pipes)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        group = self.row(scope, key)
        if data.action is None:
            names = ", ".join(a.name for a in self.schema.actions)
            raise self.invalid(f"an action is missing: {names}")
        for pipe, deal in [(pipe, self._deal(pipe, group, data)) for pipe in scope.pipes]:
            self.groups.set(self.store.journal, (pipe, group), deal)

    def reset(self, scope: Scope, key: Key) -> None:
        for pipe in scope.pipes:
            self.groups.set(self.store.journal, (pipe, self.row(scope, key)), None)

    def clear(self, scope: Scope) -> None:
        for pipe in scope.pipes:
            for group in self.rows(scope):
                self.groups.set(self.store.journal, (pipe, group), None)

    def shown(self, scope: Scope, row: int) -> Data:
        groups, pipe = self.groups, scope.pipes[0]
        deal = groups.deal(pipe, row)
        ports = [groups.port(pipe, row, i) for i in range(groups.ports)]
        values: dict[str, Any] = {"pg_dev_ports": ports, "port_queue_count": list(deal.counts)}
        for i, port in enumerate(ports):
            queues = deal.maps[i]
            values[f"ingress_qid_map_{i}"] = list(queues)
            served = [groups.number(port, q) for q in queues] if deal.counts[i] else []
            values[f"egress_qid_queues_{i}"] = served
        return Data(self.schema.action_named("map"), values)

    def _deal(self, pipe: int, group: int, data: Data) -> _Deal:
        """Return what an entry asks for. Raises RpcError."""
        assert data.action is not None
        old = self.groups.deal(pipe, group)
        given = data.values.get("port_queue_count")
        if not given and data.action.name == "crop":
            raise self.invalid("crop needs port_queue_count")
        counts = tuple(given) if given else old.counts
        self._check_counts(counts)
        if data.action.name == "map":
            return _Deal(counts, self._maps(old, counts, data))
        made = {"seq": round_robin, "even": in_chunks}.get(data.action.name)
        if made is not None:
            return _Deal(counts, tuple(made(count, self.groups.queues) for count in counts))
        cropped = [
            tuple(q if q < count else 0 for q in queues)
            for count, queues in zip(counts, old.maps, strict=True)
        ]
        return _Deal(counts, tuple(cropped))

    def _check_counts(self, counts: Sequence[int]) -> None:
        groups = self.groups
        if len(counts) != groups.ports:
            raise self.invalid(f"port_queue_count has {len(counts)} items, not {groups.ports}")
        if sum(counts) > groups.queues:
            raise self.invalid(f"{sum(counts)} queues: a group has {groups.queues}")
        if max(counts) > groups.most:
            raise self.invalid(
                f"{max(counts)} queues of a port: here a port has {groups.most}; start the switch"
                " with more (--priority-queues N, at most 8)"
            )

    def _maps(self, old: _Deal, counts: Sequence[int], data: Data) -> tuple[tuple[int, ...], ...]:
        maps = list(old.maps)
        changed = False
        for i, count in enumerate(counts):
            given = data.values.get(f"ingress_qid_map_{i}")
            if given is None:
                if count != old.counts[i]:
                    raise self.invalid(f"port {i} of the group has other queues, but no new map")
                continue
            if len(given) != self.groups.queues:
                what = f"ingress_qid_map_{i} has {len(given)} items, not {self.groups.queues}"
                raise self.invalid(what)
            beyond = next((q for q in given if q and q >= count), None)
            if beyond is not None:
                raise self.invalid(f"ingress_qid_map_{i}: queue {beyond} of a port with {count}")
            maps[i] = tuple(given)
            changed = True
        if not changed:
            raise self.invalid("map needs an ingress_qid_map at least")
        return tuple(maps)


# -- priority groups ------------------------------------------------------------------------------

_CLASSES = 8
_OF_A_PORT = 8
_OF_A_PIPE = 128


def mirror_port(pipe: int, pipe_bits: int) -> int:
    """Return the number of the port that mirror copies come by."""
    return pipe << pipe_bits | LOCAL_PORTS


class PriorityGroups:
    """The groups that were added, by pipe and number: their values, with the port ("dev_port")."""

    def __init__(self, store: Store, facts: DeviceFacts) -> None:
        self.pipe_bits = facts.pipe_bits
        self.added: dict[_Group, dict[str, Any]] = store.kept("tm.ppg.cfg")

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


class PriorityGroupTable(RowTable):
    """The table of priority groups. The action says whether a group is a port's or the mirror
    port's."""

    def __init__(self, schema: TableSchema, store: Store, groups: PriorityGroups) -> None:
        super().__init__(schema, store)
        self.groups = groups

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        number = self.number(key)
        if not number:
            raise self.invalid("ppg_id 0 is not allowed")
        if data.action is None:
            raise self.invalid("an action is missing: dev_port or mirror_port")
        for pipe in scope.pipes:
            if (pipe, number) in self.groups.added:
                raise self.exists(f"pipe {pipe} has a group {number}")
        made = {}
        for pipe in scope.pipes:
            port = self._port(pipe, data)
            self._check_room(pipe, port)
            used = self.groups.counters(pipe)
            counter = next(i for i in range(_OF_A_PIPE) if i not in used)
            values = {**data.values, "dev_port": port, "ppg_counter_id": counter}
            made[pipe, number] = self._checked((pipe, number), values)
        self._set(made)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        changed = {}
        for group in self._found(scope, key):
            old = self.groups.added[group]
            if data.action is not None and data.action.name != self._action(group[0], old):
                raise self.invalid(f"group {group[1]} is of the other kind of port")
            if data.values.get("dev_port", old["dev_port"]) != old["dev_port"]:
                raise self.invalid(f"group {group[1]} is port {old['dev_port']}'s")
            changed[group] = self._checked(group, {**old, **data.values})
        self._set(changed)

    def delete(self, scope: Scope, key: Key) -> None:
        self._set(dict.fromkeys(self._found(scope, key)))

    def clear(self, scope: Scope) -> None:
        self._set(dict.fromkeys(g for g in self.groups.added if g[0] in scope.pipes))

    def rows(self, scope: Scope) -> Iterable[_Group]:
        return [group for group in sorted(self.groups.added) if group[0] == scope.pipes[0]]

    def row(self, scope: Scope, key: Key) -> _Group:
        return self._found(scope, key)[0]

    def key(self, row: _Group) -> Key:
        return super().key(row[1])

    def shown(self, scope: Scope, row: _Group) -> Data:
        kept = self.groups.added[row]
        action = self.schema.action_named(self._action(row[0], kept))
        fields = (*self.schema.data, *action.data)
        return Data(action, {f.name: kept.get(f.name, f.first) for f in fields})

    def usage(self, scope: Scope) -> int:
        return sum(1 for pipe, _ in self.groups.added if pipe in scope.pipes)

    # -- parts ----------------------------------------------------------------------------------

    def _found(self, scope: Scope, key: Key) -> list[_Group]:
        number = self.number(key)
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
            raise self.full(f"port {port} has {_OF_A_PORT} groups already")
        if len(self.groups.counters(pipe)) >= _OF_A_PIPE:
            raise self.full(f"pipe {pipe} has {_OF_A_PIPE} groups already")

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

    def _set(self, values: Mapping[_Group, dict[str, Any] | None]) -> None:
        self.store.journal.put_all(self.groups.added, values.items())


class PriorityGroupCounts(RowTable):
    """The counts of priority groups, by the number of the counter that each group shows: 0."""

    def __init__(self, schema: TableSchema, store: Store, groups: PriorityGroups) -> None:
        super().__init__(schema, store)
        self.groups = groups

    def rows(self, scope: Scope) -> Iterable[int]:
        return self.groups.counters(scope.pipes[0])

    def row(self, scope: Scope, key: Key) -> int:
        number = self.number(key)
        if number not in self.rows(scope):
            raise self.missing(f"no group of pipe {scope.pipes[0]} has counter {number}")
        return number

    def shown(self, scope: Scope, row: int) -> Data:
        group = self.groups.counters(scope.pipes[0])[row]
        return Data(None, {f.name: f.first for f in self.schema.data} | {"ppg_id": group})

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.row(scope, key)
        self.check_zeros(data)

    def reset(self, scope: Scope, key: Key) -> None:
        self.row(scope, key)

    def clear(self, scope: Scope) -> None:
        """Leave the counts as they are: 0."""
