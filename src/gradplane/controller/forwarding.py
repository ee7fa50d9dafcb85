"""Ordinary forwarding in any program that has our programs' table of routes.

table `routes` in any control: key hdr.ipv4.dst_addr (lpm), action forward(mac, port)

Where there are equal ways, a program's own choice by flow, if it has one, as in
p4/include/equal_ways.p4; else the route's port:

action `forward_by_flow` of `routes`: (mac, group, count, factor)
table `equal_ways.ways`, in the same control: key group, way (exact), action leave(port)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import finsy

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import Route

_TABLE, _ACTION, _KEY = "routes", "forward", "hdr.ipv4.dst_addr"
_BY_FLOW, _WAYS = "forward_by_flow", "equal_ways.ways"


def table(schema: finsy.P4Schema) -> str:
    """Return the name of the program's table of routes.

    Raises ControllerError where it has none.
    """
    for found in schema.tables:
        if found.name.rpartition(".")[2] == _TABLE:
            return str(found.name)
    raise ControllerError(
        f'the program on the switch has no table "{_TABLE}" (key {_KEY}: lpm, action'
        f" {_ACTION}(mac, port)) to install routes in"
    )


def by_flow(entry: finsy.P4TableEntry) -> bool:
    """Return whether an entry is a route of which flows decide the way."""
    return isinstance(entry.action, finsy.Action) and entry.action.name.endswith(_BY_FLOW)


def entries(routes: Iterable[Route], schema: finsy.P4Schema) -> Iterator[finsy.P4TableEntry]:
    """Yield the entries of routes, those of equal ways first. Raises ControllerError without a
    table of routes."""
    name, wanted = table(schema), list(routes)
    block = name.rpartition(".")[0]
    can = any(action.name == f"{block}.{_BY_FLOW}" for action in schema.actions)
    groups = {to.ways.group: to.ways.ports for to in wanted if can and to.ways is not None}
    for group, ports in groups.items():
        for way, port in enumerate(ports):
            leave = finsy.Action(f"{block}.equal_ways.leave", port=port)
            match = finsy.Match(group=group, way=way)
            yield finsy.P4TableEntry(f"{block}.{_WAYS}", match=match, action=leave)
    for to in wanted:
        if can and (ways := to.ways) is not None:
            count = len(ways.ports)
            action = finsy.Action(
                f"{block}.{_BY_FLOW}", mac=to.mac, group=ways.group, count=count, factor=ways.factor
            )
        else:
            action = finsy.Action(f"{block}.{_ACTION}", mac=to.mac, port=to.port)
        match = finsy.Match({_KEY: f"{to.prefix}/{to.length}"})
        yield finsy.P4TableEntry(name, match=match, action=action)
