"""Groups of ports, which share queues, and the table that deals the queues out to the ports.

A packet names a queue (qid); the port's map gives the queue that it waits in. The switch's own
queues follow the map (`EgressQueues.classes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
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

    def set(self, group: _Group, deal: _Deal | None) -> Undo:
        """Deal out the queues of a group; None: as at the start."""
        old = self._dealt(*group)
        self._apply(group, deal)
        return lambda: self._apply(group, old)

    def _apply(self, group: _Group, deal: _Deal | None) -> None:
        for within in range(self.ports):
            port = self.port(*group, within)
            self.switch_queues.deal_evenly(port)
            if deal is not None:
                self.switch_queues.classes[port, : self.queues] = deal.maps[within]
                self.switch_queues.dealt[port] = deal.counts[within]


def round_robin(count: int, qids: int) -> tuple[int, ...]:
    """Return the map of a port whose qids go round its queues."""
    return tuple(i % count if count else 0 for i in range(qids))


def in_chunks(count: int, qids: int) -> tuple[int, ...]:
    """Return the map of a port whose queues have equally many qids, each some in a row."""
    size = qids // count if count else 0
    if size > 1:
        return tuple(min(i // size, count - 1) for i in range(qids))
    return tuple(i if i < count else 0 for i in range(qids))


class PortGroupTable(ControlTable):
    """The table that deals out the queues of each group; it shows them as the action "map"."""

    def __init__(self, schema: TableSchema, groups: PortGroups) -> None:
        super().__init__(schema)
        self.groups = groups

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(scope.pipes[0], self._group(key))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for group in range(self.groups.count):
            yield {"pg_id": (group,)}, self._shown(scope.pipes[0], group)

    def usage(self, scope: Scope) -> int:
        return self.groups.count * len(scope.pipes)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        group = self._group(key)
        if data.action is None:
            names = ", ".join(a.name for a in self.schema.actions)
            raise self.invalid(f"an action is missing: {names}")
        deals = {pipe: self._deal(pipe, group, data) for pipe in scope.pipes}
        return self._each([(pipe, group) for pipe in scope.pipes], deals)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._each([(pipe, self._group(key)) for pipe in scope.pipes], {})

    def clear(self, scope: Scope) -> Undo:
        groups = range(self.groups.count)
        return self._each([(pipe, group) for pipe in scope.pipes for group in groups], {})

    def _each(self, groups: list[_Group], deals: dict[int, _Deal]) -> Undo:
        steps = [self.groups.set(group, deals.get(group[0])) for group in groups]

        def undo() -> None:
            for step in reversed(steps):
                step()

        return undo

    def _group(self, key: Key) -> int:
        group = self.number(key, "pg_id")
        if group >= self.groups.count:
            raise self.invalid(f"there is no group {group}: a pipe has {self.groups.count}")
        return group

    def _shown(self, pipe: int, group: int) -> Data:
        groups = self.groups
        deal = groups.deal(pipe, group)
        ports = [groups.port(pipe, group, i) for i in range(groups.ports)]
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
