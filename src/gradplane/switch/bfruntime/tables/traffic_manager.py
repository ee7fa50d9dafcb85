"""The traffic manager's tables: the switch's own queues, their rates, depths and counters.

A chip has ports in groups that share queues. Here a port has the queues of its priorities, the
first ones of its share; a queue's number in the group is its key. A queue's rate and depth are the
switch's (egress_queues); other settings are kept without effect. A packet counts as one cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
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
    nothing,
)
from gradplane.switch.runtime.egress_queues import DEFAULT_DEPTH, EgressQueues, QueueStatus

LOCAL_PORTS = 72
"""Ports of a pipe that the traffic manager knows."""
NO_TAIL_DROP = (1 << 32) - 1
_KILO = 1000
_PORT, _GROUP, _QUEUE = "dev_port", "pg_id", "pg_queue"


@dataclass(frozen=True, slots=True)
class QueueShares:
    """The groups of a chip: `ports` share `queues`, and each port has an equal share."""

    ports: int
    queues: int
    pipe_bits: int

    def group(self, port: int) -> tuple[int, int]:
        """Return a port's group in its pipe, and its number in the group."""
        return divmod(port & ((1 << self.pipe_bits) - 1), self.ports)

    @property
    def share(self) -> int:
        """The queues of a port."""
        return self.queues // self.ports


def queue_shares(facts: DeviceFacts) -> QueueShares:
    if facts.family == "tf1":
        return QueueShares(4, 32, facts.pipe_bits)
    return QueueShares(8, 128, facts.pipe_bits)


@dataclass(frozen=True, slots=True)
class Place:
    """A queue, or a port as a whole (priority None)."""

    port: int
    priority: int | None = None


class TrafficManager:
    """The queues of the chip, and the settings that were made."""

    def __init__(self, queues: EgressQueues, facts: DeviceFacts) -> None:
        self.queues = queues
        self.shares = queue_shares(facts)
        self.ports = [
            pipe << facts.pipe_bits | port
            for pipe in range(facts.pipes)
            for port in range(LOCAL_PORTS)
        ]
        self.cpu_port = facts.cpu_port
        self._settings: dict[Place, dict[str, Any]] = {}

    @property
    def priorities(self) -> int:
        """How many queues a port has."""
        return self.queues.priorities or 1

    def settings(self, place: Place) -> Mapping[str, Any]:
        """Return what was set of a place, with the limits that hold now."""
        if place.priority is None:
            packets, bits = 0, self.queues.bit_rate(place.port)
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

    def forget(self, place: Place) -> Undo:
        """Give a place no limits and a queue the depth of the start, if it was changed here."""
        return self._change(place, {}) if place in self._settings else nothing

    def _change(self, place: Place, values: dict[str, Any]) -> Undo:
        old = dict(self.settings(place))
        self._apply(place, values)

        def undo() -> None:
            self._apply(place, old)

        return undo

    def _apply(self, place: Place, values: dict[str, Any]) -> None:
        rate = values.get("max_rate", 0) if values.get("max_rate_enable") else 0
        packets = rate if values.get("unit", "PPS") == "PPS" else 0
        self.queues.shape(place.port, 0 if packets else rate * _KILO, place.priority)
        if place.priority is not None:
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
        for place in self._all(scope):
            yield self._key(place), self.shown(place)

    def usage(self, scope: Scope) -> int:
        return sum(1 for _ in self._all(scope))

    def places(self, scope: Scope, key: Key) -> list[Place]:
        """Return the places that a key names in the pipes of a request."""
        if self._of_ports:
            port = self.number(key, _PORT)
            if port not in self.manager.ports:
                raise self.missing(f"the traffic manager has no port {port}")
            return [Place(port)]
        shares, group = self.manager.shares, self.number(key, _GROUP)
        within, priority = divmod(self.number(key, _QUEUE), shares.share)
        local = group * shares.ports + within
        if local >= LOCAL_PORTS or within >= shares.ports:
            raise self.missing(
                f"there is no group {group} with a queue {self.number(key, _QUEUE)}: a pipe has "
                f"groups 0 to {LOCAL_PORTS // shares.ports - 1} with {shares.queues} queues each"
            )
        count = self.manager.priorities
        if priority >= count:
            raise self.missing(
                f"port {local} of a pipe has queues 0 to {count - 1}, and this is queue {priority};"
                " start the switch with more (--priority-queues N)"
            )
        return [Place(pipe << shares.pipe_bits | local, priority) for pipe in scope.pipes]

    def _all(self, scope: Scope) -> Iterator[Place]:
        bits = self.manager.shares.pipe_bits
        for port in self.manager.ports:
            if self._of_ports:
                yield Place(port)
            elif port >> bits == scope.pipes[0]:
                yield from (Place(port, i) for i in range(self.manager.priorities))

    def _key(self, place: Place) -> Key:
        if place.priority is None:
            return {_PORT: (place.port,)}
        group, within = self.manager.shares.group(place.port)
        return {_GROUP: (group,), _QUEUE: (within * self.manager.shares.share + place.priority,)}

    def _each(self, places: list[Place], change: Callable[[Place], Undo]) -> Undo:
        steps = [change(place) for place in places]

        def undo() -> None:
            for step in reversed(steps):
                step()

        return undo


class PlacesTable(TrafficTable):
    """Which queues a port has, or which port has a queue."""

    def shown(self, place: Place) -> Data:
        shares, count = self.manager.shares, self.manager.priorities
        group, within = shares.group(place.port)
        classes = [i if self.manager.queues.priorities else 0 for i in range(shares.share)]
        if place.priority is not None:
            mine = [i for i, queue in enumerate(classes) if queue == place.priority]
            return Data(None, {
                "dev_port": place.port, "queue_nr": place.priority, "ingress_qid_max": shares.share,
                "ingress_qid_count": len(mine), "ingress_qid_list": mine,
            })  # fmt: skip
        return Data(None, {
            "pg_id": group, "pg_port_nr": within, "port_queues_count": count,
            "ingress_qid_map": classes,
            "egress_qid_queues": [within * shares.share + i for i in range(count)],
            "copy_to_cpu": place.port == self.manager.cpu_port, "mirror_drop_destination": False,
            "mirror_drop_pg_queue": 0, "pkt_extraction_credits": 0,
        })  # fmt: skip


class LimitsTable(TrafficTable):
    """Rates and depths of queues or ports."""

    def shown(self, place: Place) -> Data:
        kept = self.manager.settings(place)
        name = kept.get("action", "buffer_only")
        action = self.schema.action_named(name) if self.schema.actions else None
        fields = [*self.schema.data, *(action.data if action is not None else ())]
        return Data(action, {f.name: kept.get(f.name, _first(f)) for f in fields})

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        if self._of_ports and data.values.get("unit") == "PPS":
            raise self.refused("a port's rate in packets; set BPS, or the rate of its queues")
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
            if data.action.name == "buffer_only":
                values["pool_max_cells"] = 0
        return self._each(self.places(scope, key), lambda place: self.manager.set(place, values))

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._each(self.places(scope, key), self.manager.forget)

    def clear(self, scope: Scope) -> Undo:
        return self._each(list(self._all(scope)), self.manager.forget)


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
            return range(self.manager.priorities)
        return range(place.priority, place.priority + 1)

    def _restart(self, place: Place) -> Undo:
        old = [(i, self.manager.queues.queue(place.port, i)) for i in self._queues(place)]
        for i, _ in old:
            self.manager.queues.restart_counts(place.port, i)

        def undo() -> None:
            for i, status in old:
                self.manager.queues.restart_counts(place.port, i, status.dropped, status.most)

        return undo


def _first(field: Any) -> Any:
    """Return a setting that was never made."""
    if field.repeated:
        return []
    if field.type.choices:
        return field.type.choices[0]
    return {"bool": field.name == "scheduling_enable", "string": ""}.get(field.type.name, 0)
