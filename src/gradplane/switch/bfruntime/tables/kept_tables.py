"""Tables that keep what is written: an entry of each place is there from the start.

A chip has many settings that have no effect here: the emulated buffer has no pools, shares, flow
control or scheduling nodes. What a kind of table needs beside its schema, which has the first
values, is a row of RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.packet_generator import (
    MASKED_PORTS,
    MASKS,
    REPLAY_NONE,
    PacketGenerator,
)
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Flags, RowTable, Scope
from gradplane.switch.bfruntime.tables.port_groups import PriorityGroups, mirror_port
from gradplane.switch.bfruntime.tables.ports import FRONT_PORTS
from gradplane.switch.bfruntime.tables.traffic_manager import NO_PORT, NODES, TrafficManager
from gradplane.switch.bfruntime.traffic_schema import POOL_CELLS
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError

Spot = tuple[Any, ...]
"""An entry: its pipe, 0 for a table of the whole chip, and the values of its key."""
Values = dict[str, Any]
_CLASSES = 8


@dataclass(frozen=True, slots=True)
class Chip:
    """The facts of a chip that its tables show."""

    facts: DeviceFacts
    manager: TrafficManager
    groups: PriorityGroups
    generator: PacketGenerator


def _none(table: KeptTable, spot: Spot) -> Values:
    return {}


def _nothing(table: KeptTable, spot: Spot, values: Values) -> None:
    """Accept all values; tell nobody."""


def _there_is_no(table: KeptTable, name: str, value: Any) -> RpcError:
    return table.missing(f"there is no {name} {value}")


@dataclass(frozen=True, slots=True)
class Rules:
    """The peculiarities of a kind of table.

    first: the first values of an entry that are not the same for all. follows: those that follow
    from others, or counts. check: looks at the values that a request writes (`table.values`: those
    that the entry has) and raises RpcError. tell: called with what is kept of an entry, for those
    who must know; it notes in the journal what it changes. beyond: returns the refusal of a key's
    field that has no such value. a_pipe: whether each pipe has entries. clears: whether the table
    can be cleared. counts: whether its values are counts, which can only be set to 0. reads_only:
    whether it refuses all writes.
    """

    first: Callable[[KeptTable, Spot], Values] = _none
    follows: Callable[[KeptTable, Spot], Values] = _none
    check: Callable[[KeptTable, Spot, Values], None] = _nothing
    tell: Callable[[KeptTable, Spot, Values], None] = _nothing
    beyond: Callable[[KeptTable, str, Any], RpcError] = _there_is_no
    a_pipe: bool = True
    clears: bool = True
    counts: bool = False
    reads_only: bool = False


class KeptTable(RowTable):
    """A table of settings, or of counts, which stay as they are."""

    def __init__(self, schema: TableSchema, store: Store, chip: Chip) -> None:
        super().__init__(schema, store)
        self.chip = chip
        self.rules = RULES.get(schema.kind) or Rules()
        self._a_pipe = self.rules.a_pipe and all(f.name != "dev_port" for f in schema.keys)
        self._fields = {
            f.name: f for f in (*schema.data, *(d for a in schema.actions for d in a.data))
        }
        self._written: dict[Spot, Values] = store.kept(schema.name)
        for spot, kept in self._written.items():
            self.rules.tell(self, spot, kept)

    # -- entries --------------------------------------------------------------------------------

    def rows(self, scope: Scope) -> Iterator[Spot]:
        return self._all(scope.pipes[:1])

    def row(self, scope: Scope, key: Key) -> Spot:
        return self._spots(scope, key)[0]

    def key(self, row: Spot) -> Key:
        return {f.name: (value,) for f, value in zip(self.schema.keys, row[1:], strict=True)}

    def shown(self, scope: Scope, row: Spot) -> Data:
        values = self.values(row)
        name = values.pop("action", None)
        return Data(self.schema.action_named(name) if name else None, values)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self._modify(self._spots(scope, key), data)

    def reset(self, scope: Scope, key: Key) -> None:
        self._set({spot: {} for spot in self._spots(scope, key)})

    def clear(self, scope: Scope) -> None:
        if not self.rules.clears:
            raise self.refused("it cannot be cleared: modify its entries")
        self._set({spot: {} for spot in self._all(scope.pipes)})

    def set_default(self, scope: Scope, data: Data) -> None:
        self._keyless()
        self._modify(list(self._all(scope.pipes)), data)

    def reset_default(self, scope: Scope) -> None:
        self._keyless()
        self.clear(scope)

    def default(self, scope: Scope) -> Data | None:
        return None if self.schema.keys else self.shown(scope, next(self._all(scope.pipes)))

    def _keyless(self) -> None:
        if self.schema.keys:
            raise self.refused("it has no default entry")
        if self.rules.reads_only:
            raise self.refused("it can only be read")

    # -- places ---------------------------------------------------------------------------------

    def _values_of(self, name: str) -> Iterable[Any]:
        if name == "dev_port":
            return self.chip.manager.ports
        found = {"pg_id": self.chip.manager.groups.count, "pg_l1_node": NODES, "cos": _CLASSES}
        f = next(f for f in self.schema.keys if f.name == name)
        return range(found.get(name, self.schema.size)) if f.type.bits else f.type.choices

    def _all(self, pipes: range) -> Iterator[Spot]:
        of = pipes if self._a_pipe else (0,)
        yield from product(of, *(self._values_of(f.name) for f in self.schema.keys))

    def _spots(self, scope: Scope, key: Key) -> list[Spot]:
        values = []
        for f in self.schema.keys:
            match = key[f.name]
            assert match is not None
            if match[0] not in self._values_of(f.name):
                raise self.rules.beyond(self, f.name, match[0])
            values.append(match[0])
        return [(pipe, *values) for pipe in (scope.pipes if self._a_pipe else (0,))]

    # -- values ---------------------------------------------------------------------------------

    def values(self, spot: Spot) -> Values:
        """Return an entry's values, "action" among them where the table has actions."""
        found = {name: f.first for name, f in self._fields.items()} | self.rules.first(self, spot)
        kept, follow = self._written.get(spot, {}), self.rules.follows(self, spot)
        if self.rules.counts:
            return {**found, **{n: max(c - kept.get(n, 0), 0) for n, c in follow.items()}}
        return {**found, **kept, **follow}

    def _modify(self, spots: list[Spot], data: Data) -> None:
        for name, f in self._fields.items():
            if f.mandatory and name not in data.values:
                raise self.invalid(f"data field {name} is missing")
        if self.rules.counts:
            self.check_zeros(data)
            self._set({spot: self._counted(spot, data.values) for spot in spots})
            return
        values = dict(data.values)
        if data.action is not None:
            values["action"] = data.action.name
        for spot in spots:
            self.rules.check(self, spot, values)
        self._set({spot: {**self._written.get(spot, {}), **values} for spot in spots})

    def _counted(self, spot: Spot, names: Iterable[str]) -> Values:
        """Return what is to be taken from counts, which then begin at 0."""
        now = self.rules.follows(self, spot)
        return {**self._written.get(spot, {}), **{n: now[n] for n in names if n in now}}

    def _set(self, values: Mapping[Spot, Values]) -> None:
        cleared = [name for name, f in self._fields.items() if not f.read_only]
        for spot, kept in values.items():
            if self.rules.counts and not kept:
                kept = self._counted(spot, cleared)
            self.store.journal.put(self._written, spot, kept or None)
            self.rules.tell(self, spot, kept)


# -- the chip as a whole, and its packet generator ------------------------------------------------

_LOCAL_PORTS = 128


def _configuration(table: KeptTable, spot: Spot) -> Values:
    """Return what the chip has, and the first values of a few settings."""
    facts = table.chip.facts
    pipes = [pipe * _LOCAL_PORTS for pipe in range(facts.pipes)]
    inner = [first + port for first in pipes for port in facts.recirculation]
    front = [first + port for first in pipes for port in range(FRONT_PORTS)
             if port not in facts.recirculation and first + port != facts.cpu_port]  # fmt: skip
    return {
        "sku": facts.sku, "num_pipes": facts.pipes, "num_stages": facts.stages,
        "num_max_ports": facts.ports, "num_front_ports": len(front),
        "pcie_cpu_port": facts.cpu_port, "eth_cpu_port_list": [facts.cpu_port],
        "internal_port_list": inner, "external_port_list": front, "recirc_port_list": inner,
        "flow_learn_timeout_usec": 500,
    }  # fmt: skip


def _no_mask(table: KeptTable, name: str, number: Any) -> RpcError:
    return table.invalid(f"{name} {number} is not within 0 to {MASKS - 1}")


def _mask_given(table: KeptTable, spot: Spot, values: Values) -> None:
    if "mask" not in values:
        raise table.invalid("data field mask is missing")


def _tell_mask(table: KeptTable, spot: Spot, values: Values) -> None:
    pipe, number = spot
    table.store.journal.put(table.chip.generator.masks, (pipe, number), values.get("mask"))


def _mode_given(table: KeptTable, spot: Spot, values: Values) -> None:
    values.setdefault("replay_mode", REPLAY_NONE)


def _tell_mode(table: KeptTable, spot: Spot, values: Values) -> None:
    table.store.journal.put(table.chip.generator.replays, spot[0], values.get("replay_mode"))


# -- the traffic manager --------------------------------------------------------------------------

_COLOURED = ("IG_APP_POOL_0", "EG_APP_POOL_0")
_FIFOS = 4


def _cells(table: KeptTable, pool: str) -> int:
    return POOL_CELLS[table.chip.manager.facts.family].get(pool, 0)


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
    return table.chip.groups.classes(spot[1])


def _mirror_classes(table: KeptTable, spot: Spot) -> Values:
    return table.chip.groups.classes(mirror_port(spot[0], table.chip.manager.facts.pipe_bits))


def _mirrored_drops(table: KeptTable, spot: Spot) -> Values:
    group, number = table.chip.manager.drop_mirror.get(spot[0], (0, 0))
    port, queue = table.chip.manager.groups.locate(spot[0], group, number)
    return {"mirror_drop_dev_port": port, "mirror_drop_queue_nr": queue}


def _drop_mirror_fits(table: KeptTable, spot: Spot, values: Values) -> None:
    given = [values.get(name) for name in ("mirror_drop_pg_id", "mirror_drop_pg_queue")]
    if given == [None, None]:
        return
    if None in given:
        raise table.invalid("mirror_drop_pg_id and mirror_drop_pg_queue are set together")
    groups = table.chip.manager.groups
    group, number = int(given[0] or 0), int(given[1] or 0)
    if group >= groups.count or number >= groups.queues:
        raise table.invalid(f"there is no group {group} with a queue {number}")


def _tell_drop_mirror(table: KeptTable, spot: Spot, values: Values) -> None:
    manager, journal, pipe = table.chip.manager, table.store.journal, spot[0]
    chosen = values.get("mirror_drop_pg_id"), values.get("mirror_drop_pg_queue")
    place = chosen[0] or 0, chosen[1] or 0
    journal.put(manager.drop_mirror, pipe, place)
    wanted = None not in chosen and values.get("mirror_drop_enable", True)
    to = manager.groups.locate(pipe, *place) if wanted else None
    journal.put_all(manager.queues.deflections, ((port, to) for port in manager.ports_of(pipe)))


def _node(table: KeptTable, spot: Spot) -> Values:
    port = table.chip.manager.node_port(*spot)
    queues = table.chip.manager.node_queues(*spot)
    return {"action": "free" if port is None else "in_use", "dev_port": port or 0,
            "queues_count": len(queues), "pg_queues": queues}  # fmt: skip


def _node_fits(table: KeptTable, spot: Spot, values: Values) -> None:
    pipe, group, node = spot
    old, action = table.chip.manager.node_port(*spot), values.get("action")
    if action == "free" and table.chip.manager.node_queues(*spot):
        raise table.invalid(f"node {node} of group {group} has queues: move them first")
    if action != "in_use":
        return
    port = values.get("dev_port", old)
    ports = [
        table.chip.manager.groups.port(pipe, group, i)
        for i in range(table.chip.manager.groups.ports)
    ]
    if port not in ports:
        there = ", ".join(map(str, ports))
        raise table.invalid(f"dev_port {port}: the group's ports are {there}")
    if old is not None and port != old:
        raise table.invalid(f"node {node} of group {group} is port {old}'s: free it first")


def _tell_node(table: KeptTable, spot: Spot, values: Values) -> None:
    manager, port = table.chip.manager, None
    if "action" in values:
        old = manager.node_port(*spot)
        port = NO_PORT if values["action"] == "free" else values.get("dev_port", old)
    table.store.journal.put(manager.nodes, spot, port)


def _pool_use(table: KeptTable, spot: Spot) -> Values:
    """Add up the queues that use a pool of egress; at ingress, nothing waits."""
    found = table.chip.manager.pool_queues(spot[1])
    return {"usage_cells": sum(q.waiting for q in found),
            "watermark_cells": sum(q.most for q in found)}  # fmt: skip


def _pipe_drops(table: KeptTable, spot: Spot) -> Values:
    queues, bits = table.chip.manager.queues, table.chip.manager.facts.pipe_bits
    dropped = sum(q.dropped for q in queues.status() if q.port >> bits == spot[0])
    return {"eg_total_drop_packets": dropped}


def _action_given(table: KeptTable, spot: Spot, values: Values) -> None:
    if "action" not in values:
        raise table.invalid("an action is missing: color_drop_enable or color_drop_disable")


# -- the rules ------------------------------------------------------------------------------------

RULES: Mapping[str, Rules] = {
    "DevConfigure": Rules(_configuration, a_pipe=False),
    "PktgenPortMaskCfg": Rules(
        lambda table, spot: {"mask": (1 << MASKED_PORTS) - 1},
        check=_mask_given,
        tell=_tell_mask,
        beyond=_no_mask,
    ),
    "PktgenPortDownReplyCfg": Rules(check=_mode_given, tell=_tell_mode),
    "TmCfg": Rules(a_pipe=False),
    "TmPoolCfg": Rules(
        lambda table, spot: {"size_cells": _cells(table, spot[1])}, a_pipe=False, clears=False
    ),
    "TmPoolSkid": Rules(a_pipe=False),
    "TmPoolApp": Rules(_pool_colours, check=_action_given, a_pipe=False, clears=False),
    "TmPoolColor": Rules(a_pipe=False),
    "TmPoolAppPfc": Rules(
        lambda table, spot: {"pfc_limit_cells": _cells(table, spot[1])}, a_pipe=False
    ),
    "TmPortGroupCfg": Rules(a_pipe=False, reads_only=True),
    "TmPortFlowcontrol": Rules(
        lambda table, spot: {"cos_to_icos": [0] * _CLASSES}, check=_classes_fit
    ),
    "TmPipeMulticastFifo": Rules(_fifos, check=_fifos_fit),
    "TmPortDpg": Rules(follows=_port_classes),
    "TmMirrorDpg": Rules(follows=_mirror_classes),
    "TmPipeCfg": Rules(follows=_mirrored_drops, check=_drop_mirror_fits, tell=_tell_drop_mirror),
    "TmL1NodeSchedCfg": Rules(follows=_node, check=_node_fits, tell=_tell_node),
    "TmCounterPool": Rules(follows=_pool_use, a_pipe=False, counts=True),
    "TmCounterPipe": Rules(follows=_pipe_drops, counts=True),
    "TmCounterIgPort": Rules(counts=True),
    "TmCounterPortDpg": Rules(counts=True),
    "TmCounterMirrorPortDpg": Rules(counts=True),
}
"""The rules of each kind of table; tables of other kinds have no peculiarities."""
