"""The traffic manager's tables that act: the switch's own queues, their rates, depths and counters.

A chip has ports in groups that share queues (port_groups); a queue's number in the group is its
key. A queue's rate and depth are the switch's (egress_queues); other settings of these tables are
kept without effect. A packet counts as one cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
)
from gradplane.switch.bfruntime.tables.port_groups import LOCAL_PORTS, PortGroups
from gradplane.switch.runtime.egress_queues import DEFAULT_DEPTH, EgressQueues
from gradplane.switch.runtime.port_queues import QueueStatus

NODES = 32
"""Scheduling nodes of a group of ports, on Tofino 2."""
NO_TAIL_DROP = (1 << 32) - 1
_KILO = 1000
_PORT, _GROUP, _QUEUE = "dev_port", "pg_id", "pg_queue"


@dataclass(frozen=True, slots=True)
class Place:
    """A queue, or a port as a whole (priority None)."""

    port: int
    priority: int | None = None


class TrafficManager:
    """The queues of the chip, and the settings that were made.

    drop_mirror: the queue that packets which ask for it are deflected to, when theirs is a full one
    of the pipe, as its group and its number there. nodes: the port of each scheduling node (pipe,
    group, node) of Tofino 2, None for a free one; they are shown, without effect.
    """

    def __init__(self, queues: EgressQueues, facts: DeviceFacts) -> None:
        self.queues = queues
        self.facts = facts
        self.groups = PortGroups(facts, queues)
        self.ports = [
            pipe << facts.pipe_bits | port
            for pipe in range(facts.pipes)
            for port in range(LOCAL_PORTS)
        ]
        self.drop_mirror: dict[int, tuple[int, int]] = {}
        queues.deflections.clear()  # those of an earlier program
        self.nodes: dict[tuple[int, int, int], int | None] = {}
        self._settings: dict[Place, dict[str, Any]] = {}

    def ports_of(self, pipe: int) -> list[int]:
        """Return the numbers of a pipe's ports."""
        return [port for port in self.ports if port >> self.facts.pipe_bits == pipe]

    def node_port(self, pipe: int, group: int, node: int) -> int | None:
        """Return the port of a scheduling node; at first, each port has that of its number."""
        at_first = self.groups.port(pipe, group, node) if node < self.groups.ports else None
        return self.nodes.get((pipe, group, node), at_first)

    def nodes_of(self, port: int) -> list[int]:
        pipe, group, _ = self.groups.place(port)
        return [i for i in range(NODES) if self.node_port(pipe, group, i) == port]

    def node_queues(self, pipe: int, group: int, node: int) -> list[int]:
        """Return the numbers of the queues that a scheduling node has."""
        found = []
        for within in range(self.groups.ports):
            port = self.groups.port(pipe, group, within)
            for i in range(self.groups.queues_of(port)):
                kept = self._settings.get(Place(port, i), {})
                if kept.get("pg_l1_node", within) == node:
                    found.append(self.groups.number(port, i))
        return found

    def pool_queues(self, pool: str) -> list[QueueStatus]:
        """Return the queues that were named or used, of those that share a pool of egress."""

        def shares(queue: QueueStatus) -> bool:
            kept = self._settings.get(Place(queue.port, queue.priority), {})
            chosen = kept.get("pool_id", "EG_APP_POOL_0")
            return bool(kept.get("action") == "shared_pool" and chosen == pool)

        return [queue for queue in self.queues.status() if shares(queue)]

    def settings(self, place: Place) -> Mapping[str, Any]:
        """Return what was set of a place, with the limits that hold now."""
        if place.priority is None:
            packets, bits = self.queues.packet_rate(place.port), self.queues.bit_rate(place.port)
        else:
            status = self.queues.queue(place.port, place.priority)
            packets, bits = status.rate, status.bit_rate
        kept = dict(self._settings.get(place, {}))
        if packets or bits:
            kept["max_rate_enable"] = True
            kept["unit"] = "PPS" if packets else "BPS"
            kept["max_rate"] = packets or bits // _KILO
        elif kept.get("max_rate_enable"):
            kept["max_rate"] = 0
        if place.priority is not None:
            kept |= self._depth_shown(kept, status)
        return kept

    def _depth_shown(self, kept: Mapping[str, Any], status: QueueStatus) -> dict[str, Any]:
        if status.depth == NO_TAIL_DROP:
            return {"tail_drop_enable": False}
        shared = kept.get("pool_max_cells", 0)
        own = kept.get("guaranteed_cells", DEFAULT_DEPTH)
        if own + shared == status.depth:
            return {"tail_drop_enable": True, "guaranteed_cells": own}
        return {"tail_drop_enable": True, "guaranteed_cells": status.depth, "pool_max_cells": 0}

    def set(self, place: Place, values: Mapping[str, Any]) -> Undo:
        """Change settings of a place. Raises SwitchError for a rate that is too large."""
        return self._change(place, {**self.settings(place), **values})

    def forget(self, place: Place, names: Iterable[str]) -> Undo:
        """Forget settings of a place: it then has no such limit, a queue the depth of the start."""
        kept = self.settings(place) if place in self._settings else {}
        return self._change(place, {k: v for k, v in kept.items() if k not in names})

    def _change(self, place: Place, values: dict[str, Any]) -> Undo:
        old = dict(self.settings(place))
        self._apply(place, values)

        def undo() -> None:
            self._apply(place, old)

        return undo

    def _apply(self, place: Place, values: dict[str, Any]) -> None:
        rate = values.get("max_rate", 0) if values.get("max_rate_enable") else 0
        packets = rate if values.get("unit") == "PPS" else 0
        self.queues.shape(place.port, 0 if packets else rate * _KILO, place.priority)
        if place.priority is None:
            if packets:
                self.queues.shape_packets(place.port, packets)
        else:
            self.queues.stop(place.port, place.priority, not values.get("scheduling_enable", True))
            self.queues.set_rate(packets, place.port, place.priority)
            depth = values.get("guaranteed_cells", DEFAULT_DEPTH) + values.get("pool_max_cells", 0)
            depth = min(depth, NO_TAIL_DROP) if values.get("tail_drop_enable", True) else None
            self.queues.set_depth(
                NO_TAIL_DROP if depth is None else depth, place.port, place.priority
            )
        self._settings[place] = values


class TrafficTable(ControlTable, ABC):
    """A table of ports, or of queues by group: an entry of each is there from the start.

    A read is of the first pipe that it is for, a write of all of them.
    """

    def __init__(self, schema: TableSchema, manager: TrafficManager) -> None:
        super().__init__(schema)
        self.manager = manager
        self._of_ports = schema.keys[0].name == _PORT

    @abstractmethod
    def shown(self, place: Place) -> Data:
        """Return the entry of a place."""

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self.shown(next(iter(self.places(scope, key))))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for place in self._all(_first_pipe(scope)):
            yield self._key(place), self.shown(place)

    def usage(self, scope: Scope) -> int:
        return sum(1 for _ in self._all(_first_pipe(scope)))

    def places(self, scope: Scope, key: Key) -> list[Place]:
        """Return the places that a key names in the pipes of a request."""
        if self._of_ports:
            port = self.number(key, _PORT)
            if port not in self.manager.ports:
                raise self.missing(f"the traffic manager has no port {port}")
            return [Place(port)]
        groups = self.manager.groups
        group, number = self.number(key, _GROUP), self.number(key, _QUEUE)
        if group >= groups.count or number >= groups.queues:
            raise self.missing(
                f"there is no group {group} with a queue {number}: a pipe has groups 0 to "
                f"{groups.count - 1} with {groups.queues} queues each"
            )
        found = [groups.locate(pipe, group, number) for pipe in scope.pipes]
        for port, queue in found:
            count = groups.queues_of(port)
            if queue >= count:
                local = port & ((1 << groups.pipe_bits) - 1)
                has = f"queues 0 to {count - 1}" if count else "no queues"
                raise self.missing(
                    f"port {local} of a pipe has {has}, and this is queue {queue}; start the"
                    " switch with more (--priority-queues N), or see tm.port.group"
                )
        return [Place(port, queue) for port, queue in found]

    def _all(self, scope: Scope) -> Iterator[Place]:
        groups = self.manager.groups
        for port in self.manager.ports:
            if self._of_ports:
                yield Place(port)
            elif port >> groups.pipe_bits in scope.pipes:
                yield from (Place(port, i) for i in range(groups.queues_of(port)))

    def _key(self, place: Place) -> Key:
        if place.priority is None:
            return {_PORT: (place.port,)}
        groups = self.manager.groups
        _, group, _ = groups.place(place.port)
        return {_GROUP: (group,), _QUEUE: (groups.number(place.port, place.priority),)}

    def _each(self, places: list[Place], change: Callable[[Place], Undo]) -> Undo:
        steps = [change(place) for place in places]

        def undo() -> None:
            for step in reversed(steps):
                step()

        return undo


class PlacesTable(TrafficTable):
    """Which queues a port has, or which port has a queue."""

    def shown(self, place: Place) -> Data:
        groups, port = self.manager.groups, place.port
        pipe, group, within = groups.place(port)
        mirrored = self.manager.drop_mirror.get(pipe, (0, 0))
        if place.priority is not None:
            mine = [i for i, queue in enumerate(groups.map(port)) if queue == place.priority]
            return Data(None, {
                "dev_port": port, "queue_nr": place.priority, "ingress_qid_max": groups.queues,
                "ingress_qid_count": len(mine), "ingress_qid_list": mine,
            })  # fmt: skip
        first, count = groups.number(port, 0), groups.queues_of(port)
        chosen = mirrored[0] == group and mirrored[1] in range(first, first + count)
        return Data(None, {
            "pg_id": group, "pg_port_nr": within, "port_queues_count": count,
            "ingress_qid_map": list(groups.map(port)),
            "egress_qid_queues": [first + queue for queue in groups.map(port)] if count else [],
            "copy_to_cpu": port == self.manager.facts.cpu_port, "mirror_drop_destination": chosen,
            "mirror_drop_pg_queue": mirrored[1] if chosen else 0, "pkt_extraction_credits": 0,
        })  # fmt: skip


class LimitsTable(TrafficTable):
    """Rates, depths and other settings of queues or ports."""

    def __init__(self, schema: TableSchema, manager: TrafficManager) -> None:
        super().__init__(schema, manager)
        fields = [*schema.data, *(f for action in schema.actions for f in action.data)]
        self._names = frozenset(f.name for f in fields)
        if schema.actions:
            self._names |= {"action"}

    def shown(self, place: Place) -> Data:
        kept = {**self._derived(place), **self.manager.settings(place)}
        name = kept.get("action", "buffer_only")
        action = self.schema.action_named(name) if self.schema.actions else None
        fields = [*self.schema.data, *(action.data if action is not None else ())]
        return Data(action, {f.name: kept.get(f.name, f.first) for f in fields})

    def _derived(self, place: Place) -> Mapping[str, Any]:
        """Return what follows from other tables, and from the place itself."""
        pipe, group, within = self.manager.groups.place(place.port)
        if place.priority is None:
            nodes = self.manager.nodes_of(place.port)
            return {"l1_nodes": nodes, "l1_nodes_count": len(nodes)}
        here = group, self.manager.groups.number(place.port, place.priority)
        mirrored = self.manager.drop_mirror.get(pipe, (0, 0)) == here
        return {"pg_l1_node": within, "mirror_drop_destination": mirrored}

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
            if data.action.name == "buffer_only":
                values["pool_max_cells"] = 0
        if "pg_l1_node" in values:
            self._check_node(self.places(scope, key), values["pg_l1_node"])
        return self._each(self.places(scope, key), lambda place: self.manager.set(place, values))

    def _check_node(self, places: list[Place], node: int) -> None:
        for place in places:
            pipe, group, _ = self.manager.groups.place(place.port)
            if node >= NODES or self.manager.node_port(pipe, group, node) != place.port:
                raise self.invalid(
                    f"node {node} is not one of port {place.port}: see tm.l1_node.sched_cfg"
                )

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._each(self.places(scope, key), self._forget)

    def clear(self, scope: Scope) -> Undo:
        return self._each(list(self._all(scope)), self._forget)

    def _forget(self, place: Place) -> Undo:
        return self.manager.forget(place, self._names)


class CountsTable(TrafficTable):
    """Drops of queues or ports, and the packets that wait, now and at most; they are set to 0."""

    def shown(self, place: Place) -> Data:
        found = [self.manager.queues.queue(place.port, i) for i in self._queues(place)]
        return Data(None, {
            "drop_count_packets": sum(q.dropped for q in found),
            "usage_cells": sum(q.waiting for q in found),
            "watermark_cells": sum(q.most for q in found),
        })  # fmt: skip

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        if any(data.values.values()):
            raise self.invalid("counters can only be set to 0")
        return self.reset(scope, key)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._each(self.places(scope, key), self._restart)

    def clear(self, scope: Scope) -> Undo:
        return self._each(list(self._all(scope)), self._restart)

    def _queues(self, place: Place) -> range:
        if place.priority is None:
            return range(self.manager.groups.most)
        return range(place.priority, place.priority + 1)

    def _restart(self, place: Place) -> Undo:
        old = [(i, self.manager.queues.queue(place.port, i)) for i in self._queues(place)]
        for i, _ in old:
            self.manager.queues.restart_counts(place.port, i)

        def undo() -> None:
            for i, status in old:
                self.manager.queues.restart_counts(place.port, i, status.dropped, status.most)

        return undo


def _first_pipe(scope: Scope) -> Scope:
    return Scope(scope.pipes[:1], scope.all)
