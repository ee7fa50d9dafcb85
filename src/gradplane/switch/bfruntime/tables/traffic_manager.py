"""The traffic manager's tables that act: the switch's own queues, their rates, depths and counters.

A chip has ports in groups that share queues (port_groups); a queue's number in the group is its
key. A queue's rate and depth are the switch's (egress_queues); other settings of these tables are
kept without effect. A packet counts as one cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Flags, RowTable, Scope
from gradplane.switch.bfruntime.tables.port_groups import LOCAL_PORTS, PortGroups
from gradplane.switch.control.store import Store
from gradplane.switch.runtime.egress_queues import DEFAULT_DEPTH
from gradplane.switch.runtime.port_queues import QueueStatus

NODES = 32
"""Scheduling nodes of a group of ports, on Tofino 2."""
NO_PORT = -1
"""The port of a free scheduling node."""
NO_TAIL_DROP = (1 << 32) - 1
_KILO = 1000
_PORT, _GROUP, _QUEUE = "dev_port", "pg_id", "pg_queue"


class Place(NamedTuple):
    """A queue, or a port as a whole (priority None)."""

    port: int
    priority: int | None = None


class TrafficManager:
    """The queues of the chip, and the settings that were made.

    drop_mirror: the queue that packets which ask for it are deflected to, when theirs is a full one
    of the pipe, as its group and its number there. nodes: the port of each scheduling node (pipe,
    group, node) of Tofino 2, NO_PORT for a free one; they are shown, without effect.
    """

    def __init__(self, store: Store, facts: DeviceFacts) -> None:
        self._journal, queues = store.journal, store.state.links.queues
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
        self.nodes: dict[tuple[int, ...], int] = {}
        self._settings: dict[Place, dict[str, Any]] = store.kept("tm settings")

    def ports_of(self, pipe: int) -> list[int]:
        """Return the numbers of a pipe's ports."""
        return [port for port in self.ports if port >> self.facts.pipe_bits == pipe]

    def node_port(self, pipe: int, group: int, node: int) -> int | None:
        """Return the port of a scheduling node; at first, each port has that of its number."""
        at_first = self.groups.port(pipe, group, node) if node < self.groups.ports else None
        found = self.nodes.get((pipe, group, node), at_first)
        return None if found == NO_PORT else found

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

    def set(self, place: Place, values: Mapping[str, Any]) -> None:
        """Change settings of a place. Raises SwitchError for a rate that is too large."""
        self._change(place, {**self.settings(place), **values})

    def forget(self, place: Place, names: Iterable[str]) -> None:
        """Forget settings of a place: it then has no such limit, a queue the depth of the start."""
        kept = self.settings(place) if place in self._settings else {}
        self._change(place, {k: v for k, v in kept.items() if k not in names})

    def _change(self, place: Place, values: dict[str, Any]) -> None:
        old = dict(self.settings(place))
        self._apply(place, values)
        self._journal.record(lambda: self._apply(place, old))

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


class TrafficTable(RowTable):
    """A table of ports, or of queues by group: an entry of each is there from the start.

    A read is of the first pipe that it is for, a write of all of them.
    """

    def __init__(self, schema: TableSchema, store: Store, manager: TrafficManager) -> None:
        super().__init__(schema, store)
        self.manager = manager
        self._of_ports = schema.keys[0].name == _PORT

    def rows(self, scope: Scope) -> Iterator[Place]:
        return self.all_places(scope.pipes[:1])

    def row(self, scope: Scope, key: Key) -> Place:
        return self.places(scope, key)[0]

    def key(self, row: Place) -> Key:
        if row.priority is None:
            return {_PORT: (row.port,)}
        groups = self.manager.groups
        _, group, _ = groups.place(row.port)
        return {_GROUP: (group,), _QUEUE: (groups.number(row.port, row.priority),)}

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

    def all_places(self, pipes: range) -> Iterator[Place]:
        """Yield the places in some pipes; ports are shown for all of them."""
        groups = self.manager.groups
        for port in self.manager.ports:
            if self._of_ports:
                yield Place(port)
            elif port >> groups.pipe_bits in pipes:
                yield from (Place(port, i) for i in range(groups.queues_of(port)))


class PlacesTable(TrafficTable):
    """Which queues a port has, or which port has a queue."""

    def shown(self, scope: Scope, row: Place) -> Data:
        groups, port = self.manager.groups, row.port
        pipe, group, within = groups.place(port)
        mirrored = self.manager.drop_mirror.get(pipe, (0, 0))
        if row.priority is not None:
            mine = [i for i, queue in enumerate(groups.map(port)) if queue == row.priority]
            return Data(None, {
                "dev_port": port, "queue_nr": row.priority, "ingress_qid_max": groups.queues,
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

    def __init__(self, schema: TableSchema, store: Store, manager: TrafficManager) -> None:
        super().__init__(schema, store, manager)
        fields = [*schema.data, *(f for action in schema.actions for f in action.data)]
        self._names = frozenset(f.name for f in fields)
        if schema.actions:
            self._names |= {"action"}

    def shown(self, scope: Scope, row: Place) -> Data:
        kept = {**self._derived(row), **self.manager.settings(row)}
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

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
            if data.action.name == "buffer_only":
                values["pool_max_cells"] = 0
        if "pg_l1_node" in values:
            self._check_node(self.places(scope, key), values["pg_l1_node"])
        for place in self.places(scope, key):
            self.manager.set(place, values)

    def _check_node(self, places: list[Place], node: int) -> None:
        for place in places:
            pipe, group, _ = self.manager.groups.place(place.port)
            if node >= NODES or self.manager.node_port(pipe, group, node) != place.port:
                raise self.invalid(
                    f"node {node} is not one of port {place.port}: see tm.l1_node.sched_cfg"
                )

    def reset(self, scope: Scope, key: Key) -> None:
        for place in self.places(scope, key):
            self.manager.forget(place, self._names)

    def clear(self, scope: Scope) -> None:
        for place in list(self.all_places(scope.pipes)):
            self.manager.forget(place, self._names)


class CountsTable(TrafficTable):
    """Drops of queues or ports, and the packets that wait, now and at most; they are set to 0."""

    def shown(self, scope: Scope, row: Place) -> Data:
        found = [self.manager.queues.queue(row.port, i) for i in self._queues(row)]
        return Data(None, {
            "drop_count_packets": sum(q.dropped for q in found),
            "usage_cells": sum(q.waiting for q in found),
            "watermark_cells": sum(q.most for q in found),
        })  # fmt: skip

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.check_zeros(data)
        self.reset(scope, key)

    def reset(self, scope: Scope, key: Key) -> None:
        self._restart(self.places(scope, key))

    def clear(self, scope: Scope) -> None:
        self._restart(self.all_places(scope.pipes))

    def _queues(self, place: Place) -> range:
        if place.priority is None:
            return range(self.manager.groups.most)
        return range(place.priority, place.priority + 1)

    def _restart(self, places: Iterable[Place]) -> None:
        queues = self.manager.queues
        for place in places:
            for i in self._queues(place):
                old = queues.queue(place.port, i)
                queues.restart_counts(place.port, i)
                self.store.journal.record(partial(self._count_on, place.port, i, old))

    def _count_on(self, port: int, priority: int, old: QueueStatus) -> None:
        """Let a queue count on from an earlier state, with what it has counted since."""
        queues = self.manager.queues
        now = queues.queue(port, priority)
        most = max(old.most, now.most)
        queues.restart_counts(port, priority, old.dropped + now.dropped, most)
