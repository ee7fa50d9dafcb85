"""The routes that a switch of an experiment gets: one a host or, in a large network, one for all
hosts of a block of addresses that are reached in the same way."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from gradplane.controller.plan import EqualWays, Route
from gradplane.topologies.description import HostNode, Topology


def routes(network: Topology, switch: str) -> list[Route]:
    """Return a switch's routes to all hosts."""
    ports, ways = network.routes(switch), network.ways(switch)
    near = {host for host in network.host_ports(switch).values()}
    if network.prefix_length == 24:
        near = set(network.host)
    found = [
        Route(host.ip, 32, ports[name], host.mac, _several(ways[name]))
        for name, host in network.host.items()
        if name in near
    ]
    far: dict[EqualWays, list[HostNode]] = {}
    for name, host in network.host.items():
        if name not in near:
            far.setdefault(ways[name], []).append(host)
    return [*found, *(route for way, hosts in far.items() for route in _blocks(way, hosts))]


def _several(ways: EqualWays) -> EqualWays | None:
    return ways if len(ways.ports) > 1 else None


def _blocks(ways: EqualWays, hosts: Iterable[HostNode]) -> Iterator[Route]:
    """Yield routes to hosts behind other switches, which set the last MAC address: here any is
    right."""
    macs = {ipaddress.IPv4Address(host.ip): host.mac for host in hosts}
    blocks = ipaddress.collapse_addresses(map(ipaddress.IPv4Network, macs))
    for number, block in enumerate(blocks):
        port = ways.ports[number % len(ways.ports)]
        mac = macs[block.network_address]
        yield Route(str(block.network_address), block.prefixlen, port, mac, _several(ways))
