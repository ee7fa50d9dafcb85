"""The traffic manager's tables that only keep what is written: the emulated buffer has no pools,
shares, flow control or scheduling nodes.

An entry of each place is there from the start, with the driver's first values. What else a table
needs is in the mappings at the end, by the kind of the table: values that differ between places,
those that follow from others, and what an entry must fulfil.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
from gradplane.switch.bfruntime.tables.priority_groups import PriorityGroups, mirror_port
from gradplane.switch.bfruntime.tables.traffic_manager import NODES, TrafficManager
from gradplane.switch.bfruntime.traffic_schema import POOL_CELLS

Spot = tuple[Any, ...]
"""An entry: its pipe, 0 for a table of the whole chip, and the values of its key."""
_COLOURED = ("IG_APP_POOL_0", "EG_APP_POOL_0")
_FIFOS = 4
_CLASSES = 8


class KeptTable(ControlTable):
    """A table of settings, or of counts, which stay as they are."""

    def __init__(
        self, schema: TableSchema, manager: TrafficManager, groups: PriorityGroups
    ) -> None:
        super().__init__(schema)
        self.manager, self.groups = manager, groups
        names = {f.name for f in schema.keys}
        self._a_pipe = "dev_port" not in names and schema.kind not in _OF_THE_CHIP
        self._counts = schema.kind.startswith("TmCounter")
        self._fields = {
            f.name: f for f in (*schema.data, *(d for a in schema.actions for d in a.data))
        }
        self._written: dict[Spot, dict[str, Any]] = {}

    # -- entries --------------------------------------------------------------------------------

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self._spots(scope, key)[0])

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for spot in self._all(scope.pipes[:1]):
            yield self._key(spot), self._shown(spot)

    def usage(self, scope: Scope) -> int:
        return sum(1 for _ in self._all(scope.pipes[:1]))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        return self._modify(self._spots(scope, key), data)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._set({spot: {} for spot in self._spots(scope, key)})

    def clear(self, scope: Scope) -> Undo:
        if self.schema.kind in _NEVER_CLEARED:
            raise self.refused("it cannot be cleared: modify its entries")
        return self._set({spot: {} for spot in self._all(scope.pipes)})

    def set_default(self, scope: Scope, data: Data) -> Undo:
        self._keyless()
        return self._modify(list(self._all(scope.pipes)), data)

    def reset_default(self, scope: Scope) -> Undo:
        self._keyless()
        return self.clear(scope)

    def default(self, scope: Scope) -> Data | None:
        return None if self.schema.keys else self._shown(next(self._all(scope.pipes)))

    def _keyless(self) -> None:
        if self.schema.keys:
            raise self.refused("it has no default entry")
        if self.schema.kind == "TmPortGroupCfg":
            raise self.refused("it can only be read")

    # -- places ---------------------------------------------------------------------------------

    def _values_of(self, name: str) -> Iterable[Any]:
        if name == "dev_port":
            return self.manager.ports
        found = {"pg_id": self.manager.groups.count, "pg_l1_node": NODES, "cos": _CLASSES}
        f = next(f for f in self.schema.keys if f.name == name)
        return range(found[name]) if name in found else f.type.choices

    def _all(self, pipes: range) -> Iterator[Spot]:
        of = pipes if self._a_pipe else (0,)
        yield from product(of, *(self._values_of(f.name) for f in self.schema.keys))

    def _spots(self, scope: Scope, key: Key) -> list[Spot]:
        values = []
        for f in self.schema.keys:
            match = key[f.name]
            assert match is not None
            if match[0] not in self._values_of(f.name):
                raise self.missing(f"there is no {f.name} {match[0]}")
            values.append(match[0])
        return [(pipe, *values) for pipe in (scope.pipes if self._a_pipe else (0,))]

    def _key(self, spot: Spot) -> Key:
        return {f.name: (value,) for f, value in zip(self.schema.keys, spot[1:], strict=True)}

    # -- values ---------------------------------------------------------------------------------

    def values(self, spot: Spot) -> dict[str, Any]:
        """Return an entry's values, "action" among them where the table has actions."""
        found = {name: f.first for name, f in self._fields.items()}
        found |= _FIRST.get(self.schema.kind, _none)(self, spot)
        kept = self._written.get(spot, {})
        follow = _FOLLOWS.get(self.schema.kind, _none)(self, spot)
        if self._counts:
            follow = {name: max(n - kept.get(name, 0), 0) for name, n in follow.items()}
            return {**found, **follow}
        return {**found, **kept, **follow}

    def _shown(self, spot: Spot) -> Data:
        values = self.values(spot)
        name = values.pop("action", None)
        return Data(self.schema.action_named(name) if name else None, values)

    def _modify(self, spots: list[Spot], data: Data) -> Undo:
        for name, f in self._fields.items():
            if f.mandatory and name not in data.values:
                raise self.invalid(f"data field {name} is missing")
        if self._counts:
            if any(data.values.values()):
                raise self.invalid("counters can only be set to 0")
            return self._set({spot: self._counted(spot, data.values) for spot in spots})
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
        elif self.schema.kind == "TmPoolApp":
            raise self.invalid("an action is missing: color_drop_enable or color_drop_disable")
        for spot in spots:
            _CHECKS.get(self.schema.kind, _no_check)(self, spot, values)
        return self._set({spot: {**self._written.get(spot, {}), **values} for spot in spots})

    def _counted(self, spot: Spot, names: Iterable[str]) -> dict[str, Any]:
        """Return what is to be taken from counts, which then begin at 0."""
        now = _FOLLOWS.get(self.schema.kind, _none)(self, spot)
        return {**self._written.get(spot, {}), **{n: now[n] for n in names if n in now}}

    def _set(self, values: Mapping[Spot, dict[str, Any]]) -> Undo:
        if self._counts:
            names = [name for name, f in self._fields.items() if not f.read_only]
            values = {spot: kept or self._counted(spot, names) for spot, kept in values.items()}
        old = {spot: self._written.get(spot) for spot in values}
        self._apply(values)
        return lambda: self._apply(old)

    def _apply(self, values: Mapping[Spot, dict[str, Any] | None]) -> None:
        for spot, kept in values.items():
            if kept:
                self._written[spot] = kept
            else:
                self._written.pop(spot, None)
            _TELLS.get(self.schema.kind, _no_check)(self, spot, kept or {})


# -- what is different in a table ----------------------------------------------------------------

_OF_THE_CHIP = ("TmCfg", "TmPoolCfg", "TmPoolSkid", "TmPoolApp", "TmPoolColor", "TmPoolAppPfc",
                "TmPortGroupCfg", "TmCounterPool")  # fmt: skip
"""Tables without ports in their keys that do not have entries in each pipe."""
_NEVER_CLEARED = ("TmPoolCfg", "TmPoolApp")

Values = Mapping[str, Any]


def _none(table: KeptTable, spot: Spot) -> Values:
    return {}


def _no_check(table: KeptTable, spot: Spot, values: Values) -> None:
    """Accept all values."""


def _cells(table: KeptTable, pool: str) -> int:
    return POOL_CELLS[table.manager.facts.family].get(pool, 0)


def _pool_colours(table: KeptTable, spot: Spot) -> Values:
    coloured = spot[1] in _COLOURED
    cells = _cells(table, spot[1]) if coloured else 0
    limits = dict.fromkeys(("green_limit_cells", "yellow_limit_cells", "red_limit_cells"), cells)
    return {"action": "color_drop_enable" if coloured else "color_drop_disable", **limits}


def _fifos(table: KeptTable, spot: Spot) -> Values:
    zeros = [0] * _FIFOS
    return {"icos_mask": [0xFF, 0, 0, 0], "arbitration_mode": ["WRR"] * _FIFOS,
            "wrr_weight": zeros, "depth": zeros}  # fmt: skip


def _fifos_fit(table: KeptTable, spot: Spot, values: Values) -> None:
    for name, items in values.items():
        if len(items) != _FIFOS:
            raise table.invalid(f"data field {name} has {len(items)} items, not {_FIFOS}")


def _classes_fit(table: KeptTable, spot: Spot, values: Values) -> None:
    given = values.get("cos_to_icos", range(_CLASSES))
    if len(given) != _CLASSES or max(given) >= _CLASSES:
        raise table.invalid(f"cos_to_icos takes {_CLASSES} items of 0 to {_CLASSES - 1}")


def _port_classes(table: KeptTable, spot: Spot) -> Values:
    return table.groups.classes(spot[1])


def _mirror_classes(table: KeptTable, spot: Spot) -> Values:
    return table.groups.classes(mirror_port(spot[0], table.manager.facts.pipe_bits))


def _mirrored_drops(table: KeptTable, spot: Spot) -> Values:
    group, number = table.manager.drop_mirror.get(spot[0], (0, 0))
    port, queue = table.manager.groups.locate(spot[0], group, number)
    return {"mirror_drop_dev_port": port, "mirror_drop_queue_nr": queue}


def _drop_mirror_fits(table: KeptTable, spot: Spot, values: Values) -> None:
    given = [values.get(name) for name in ("mirror_drop_pg_id", "mirror_drop_pg_queue")]
    if given == [None, None]:
        return
    if None in given:
        raise table.invalid("mirror_drop_pg_id and mirror_drop_pg_queue are set together")
    groups = table.manager.groups
    group, number = int(given[0] or 0), int(given[1] or 0)
    if group >= groups.count or number >= groups.queues:
        raise table.invalid(f"there is no group {group} with a queue {number}")


def _tell_drop_mirror(table: KeptTable, spot: Spot, values: Values) -> None:
    manager, pipe = table.manager, spot[0]
    chosen = values.get("mirror_drop_pg_id"), values.get("mirror_drop_pg_queue")
    manager.drop_mirror[pipe] = chosen[0] or 0, chosen[1] or 0
    to = manager.groups.locate(pipe, *manager.drop_mirror[pipe])
    for port in manager.ports_of(pipe):
        if None not in chosen and values.get("mirror_drop_enable", True):
            manager.queues.deflections[port] = to
        else:
            manager.queues.deflections.pop(port, None)


def _node(table: KeptTable, spot: Spot) -> Values:
    port = table.manager.node_port(*spot)
    queues = table.manager.node_queues(*spot)
    return {"action": "free" if port is None else "in_use", "dev_port": port or 0,
            "queues_count": len(queues), "pg_queues": queues}  # fmt: skip


def _node_fits(table: KeptTable, spot: Spot, values: Values) -> None:
    pipe, group, node = spot
    old, action = table.manager.node_port(*spot), values.get("action")
    if action == "free" and table.manager.node_queues(*spot):
        raise table.invalid(f"node {node} of group {group} has queues: move them first")
    if action != "in_use":
        return
    port = values.get("dev_port", old)
    ports = [table.manager.groups.port(pipe, group, i) for i in range(table.manager.groups.ports)]
    if port not in ports:
        there = ", ".join(map(str, ports))
        raise table.invalid(f"dev_port {port}: the group's ports are {there}")
    if old is not None and port != old:
        raise table.invalid(f"node {node} of group {group} is port {old}'s: free it first")


def _tell_node(table: KeptTable, spot: Spot, values: Values) -> None:
    if "action" not in values:
        table.manager.nodes.pop(_node_key(spot), None)
    elif values["action"] == "free":
        table.manager.nodes[_node_key(spot)] = None
    else:
        old = table.manager.node_port(*spot)
        table.manager.nodes[_node_key(spot)] = values.get("dev_port", old)


def _node_key(spot: Spot) -> tuple[int, int, int]:
    pipe, group, node = spot
    return pipe, group, node


def _pool_use(table: KeptTable, spot: Spot) -> Values:
    """Add up the queues that use a pool of egress; at ingress, nothing waits."""
    found = table.manager.pool_queues(spot[1])
    return {"usage_cells": sum(q.waiting for q in found),
            "watermark_cells": sum(q.most for q in found)}  # fmt: skip


def _pipe_drops(table: KeptTable, spot: Spot) -> Values:
    queues, bits = table.manager.queues, table.manager.facts.pipe_bits
    dropped = sum(q.dropped for q in queues.status() if q.port >> bits == spot[0])
    return {"eg_total_drop_packets": dropped}


_FIRST: Mapping[str, Callable[[KeptTable, Spot], Values]] = {
    "TmPoolCfg": lambda table, spot: {"size_cells": _cells(table, spot[1])},
    "TmPoolApp": _pool_colours,
    "TmPoolAppPfc": lambda table, spot: {"pfc_limit_cells": _cells(table, spot[1])},
    "TmPortFlowcontrol": lambda table, spot: {"cos_to_icos": [0] * _CLASSES},
    "TmPipeMulticastFifo": _fifos,
}
"""The first values of entries, where they are not the same for all."""
_FOLLOWS: Mapping[str, Callable[[KeptTable, Spot], Values]] = {
    "TmPortDpg": _port_classes, "TmMirrorDpg": _mirror_classes, "TmPipeCfg": _mirrored_drops,
    "TmL1NodeSchedCfg": _node, "TmCounterPool": _pool_use, "TmCounterPipe": _pipe_drops,
}  # fmt: skip
"""The values that follow from others, and counts."""
_CHECKS: Mapping[str, Callable[[KeptTable, Spot, Values], None]] = {
    "TmPipeMulticastFifo": _fifos_fit, "TmPortFlowcontrol": _classes_fit,
    "TmPipeCfg": _drop_mirror_fits, "TmL1NodeSchedCfg": _node_fits,
}  # fmt: skip
"""By the kind of table: the check of an entry's new values, which raises RpcError."""
_TELLS: Mapping[str, Callable[[KeptTable, Spot, Values], None]] = {
    "TmPipeCfg": _tell_drop_mirror, "TmL1NodeSchedCfg": _tell_node,
}  # fmt: skip
"""Those who must know what is kept."""
