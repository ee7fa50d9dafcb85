"""Topologies: one description each (`star`, ...), built by Mininet or in the simulated network.

A file with a function of its name is a topology: adding one touches one file. May import: switch,
hosts, controller. `P4Switch` is the embedded switch for any Mininet script:

    from gradplane.topologies import P4Switch
    net = Mininet(topo, switch=partial(P4Switch, program="prog.p4"), controller=None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradplane.topologies.description import HostNode, Link, SwitchNode, Topology, build, kinds
from gradplane.topologies.topology_errors import NetworkError, TopologyError

if TYPE_CHECKING:
    from gradplane.topologies.mininet.p4switch import P4Switch

__all__ = [
    "HostNode",
    "Link",
    "NetworkError",
    "P4Switch",
    "SwitchNode",
    "Topology",
    "TopologyError",
    "build",
    "kinds",
]


def __getattr__(name: str) -> Any:
    if name == "P4Switch":  # imports mininet
        from gradplane.topologies.mininet.p4switch import P4Switch

        return P4Switch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
