"""Topologies: one description each (`star`, ...), built by Mininet or in the simulated network.

A file with a function of its name is a topology: adding one touches one file. May import: switch,
hosts, controller. `P4Switch` is the embedded switch for any Mininet script:

    from gradplane.topologies import P4Switch
    net = Mininet(topo, switch=partial(P4Switch, program="prog.p4"), controller=None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names
from gradplane.topologies.description import HostNode, Link, SwitchNode, Topology, build, kinds
from gradplane.topologies.link_options import Quantity, check_hosts, parse_rate, parse_time
from gradplane.topologies.topology_errors import NetworkError, TopologyError

if TYPE_CHECKING:
    from gradplane.topologies.mininet.p4switch import P4Switch

__all__ = [
    "HostNode", "Link", "NetworkError", "P4Switch", "Quantity", "SwitchNode", "Topology",
    "TopologyError", "build", "check_hosts", "kinds", "parse_rate", "parse_time",
]  # fmt: skip

__getattr__ = lazy_names(__name__, {"P4Switch": "mininet.p4switch"})  # imports mininet
