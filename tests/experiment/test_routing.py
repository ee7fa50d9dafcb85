"""Routes by blocks of addresses, in large networks, lead where single ones would."""

import ipaddress

from gradplane.experiment.routing import routes
from gradplane.topologies import build


def test_blocks_cover_all_hosts_and_no_others() -> None:
    network = build("leaf-spine", workers=300, leaves=5, hosts_per_leaf=60, spines=2)
    for switch in network.switches:
        found = routes(network, switch.name)
        assert len(found) < 130
        blocks = [(ipaddress.IPv4Network(f"{r.prefix}/{r.length}"), r) for r in found]
        for name, ways in network.ways(switch.name).items():
            host = network.host[name]
            (route,) = (r for block, r in blocks if ipaddress.IPv4Address(host.ip) in block)
            assert route.port in ways.ports
            assert (route.ways or ways) == ways
            if name in network.host_ports(switch.name).values():
                assert (route.length, route.mac) == (32, host.mac)
        assert sum(block.num_addresses for block, _ in blocks) == 300


def test_a_small_network_has_a_route_for_each_host() -> None:
    network = build("leaf-spine", workers=8, leaves=2)
    assert [route.length for route in routes(network, "s1")] == [32] * 8
