"""Ordinary forwarding in any program that has our programs' table of routes.

table `routes` in any control: key hdr.ipv4.dst_addr (lpm), action forward(mac, port)
"""

from __future__ import annotations

import finsy

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import Route

_TABLE, _ACTION, _KEY = "routes", "forward", "hdr.ipv4.dst_addr"


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


def entry(to: Route, table: str) -> finsy.P4TableEntry:
    """Return the route's entry in a table of that name."""
    block = table.rpartition(".")[0]
    action = finsy.Action(f"{block}.{_ACTION}", mac=to.mac, port=to.port)
    match = finsy.Match({_KEY: f"{to.prefix}/{to.length}"})
    return finsy.P4TableEntry(table, match=match, action=action)
