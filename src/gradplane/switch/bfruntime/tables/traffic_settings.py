"""The traffic manager's tables that only keep what is written: the emulated buffer has no pools,
shares, flow control or scheduling nodes."""

from __future__ import annotations

from collections.abc import Mapping

from gradplane.switch.bfruntime.tables.kept_table import CLASSES, KeptTable, Rules, Spot, Values
from gradplane.switch.bfruntime.tables.port_groups import mirror_port
from gradplane.switch.bfruntime.tables.traffic_manager import NO_PORT
from gradplane.switch.bfruntime.traffic_schema import POOL_CELLS

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
    given = values.get("cos_to_icos", range(CLASSES))
    if len(given) != CLASSES or max(given) >= CLASSES:
        raise table.invalid(f"cos_to_icos takes {CLASSES} items of 0 to {CLASSES - 1}")


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


TRAFFIC_RULES: Mapping[str, Rules] = {
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
        lambda table, spot: {"cos_to_icos": [0] * CLASSES}, check=_classes_fit
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
"""By the kind of table; the other tables differ in nothing."""
