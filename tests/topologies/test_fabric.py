"""Several switches: ring and leaf-spine as data, and traffic across them on both networks."""

import fabric_cases as cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import switch_config

from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.wire.payloads import Payloads
from gradplane.runs import isolation
from gradplane.runs.run_experiment import load
from gradplane.topologies import (
    HostNode,
    Link,
    SwitchNode,
    Topology,
    TopologyError,
    build,
    description,
    kinds,
)
from gradplane.topologies.sim.sim_network import SimNetwork

LINKS = {"rate": "1Gbit", "delay": "1ms", "queue": 7}


def names(topology):
    return [link.name for link in topology.links]


def test_a_ring_is_a_circle_of_switches():
    ring = build("ring", workers=3, rate="1Gbit", fabric_rate="10Mbit", fabric_queue=[5, 6, 7])
    assert names(ring) == ["h1-s1", "h2-s2", "h3-s3", "s1-s2", "s2-s3", "s3-s1"]
    assert [link.rate for link in ring.links] == [10**9] * 3 + [10**7] * 3
    assert [link.queue for link in ring.fabric_links()] == [5, 6, 7]
    assert ring.host_ports("s2") == {1: "h2"}
    assert ring.routes("s1") == {"h1": 1, "h2": 2, "h3": 3}


def test_small_rings_have_no_double_links():
    assert names(build("ring", workers=1)) == ["h1-s1"]
    assert names(build("ring", workers=2)) == ["h1-s1", "h2-s2", "s1-s2"]
    assert names(build("ring", workers=3, hosts_per_switch=2)) == [
        "h1-s1",
        "h2-s1",
        "h3-s2",
        "s1-s2",
    ]


def test_a_leaf_spine_has_every_leaf_on_every_spine():
    fabric = build("leaf-spine", workers=3, servers=1, fabric_delay="2us")
    assert fabric == build("leaf_spine", workers=3, servers=1, fabric_delay="2us")
    assert names(fabric) == [
        *("h1-s1", "h2-s1", "h3-s2", "h4-s2"),
        *("s1-s3", "s1-s4", "s2-s3", "s2-s4"),
    ]
    assert [link.delay for link in fabric.links] == [0] * 4 + [2000] * 4
    assert fabric.host_ports("s2") == {1: "h3", 2: "h4"} and fabric.host_ports("s3") == {}
    assert fabric.routes("s3") == {"h1": 1, "h2": 1, "h3": 2, "h4": 2}


def test_any_kind_may_have_network_cards_that_are_switches():
    star = build("star", workers=2, rate="1Gbit", delay="1ms", queue=7, nics=True)
    assert names(star) == ["h1-s2", "s2-s1", "h2-s3", "s3-s1"]
    assert [(link.rate, link.delay, link.queue) for link in star.links] == [
        (None, 0, 1000),
        (10**9, 10**6, 7),
    ] * 2
    assert star.nics == {"s2", "s3"} and star.rack("h2") == "s1" != star.attachment("h2")[0]
    assert star.edge_ports("s3") == (1,) and star.edge_ports("s1") == ()
    assert star.aggregator("h1") == "s1" and star == build("star", workers=2, nics=True, **LINKS)
    with pytest.raises(TopologyError, match=r"nics = 1: true or false"):
        build("ring", workers=2, nics=1)
    with pytest.raises(TopologyError, match=r'no option "nic": did you mean "nics"'):
        build("ring", workers=2, nic=True)
    assert build("star", workers=2, nics=False) == build("star", workers=2)


def test_a_host_beside_another_has_a_link_like_that_ones(monkeypatch):
    fabric = build("leaf-spine", workers=4, rate=["1Gbit", "2Gbit", "3Gbit", "4Gbit"])
    added = fabric.with_host_beside("h2").with_host_beside()
    assert [link.name for link in added.links if link.rate == 2 * 10**9] == [
        "h2-s1",
        "h5-s1",
        "h6-s1",
    ]
    assert added.attachment("h6") == ("s1", 6)
    monkeypatch.setattr(description, "MAX_HOSTS", 6)
    with pytest.raises(TopologyError, match="7 hosts: a network has 6 at most"):
        added.with_host_beside("h1")


def test_machines_have_local_links_and_one_network_interface():
    fabric = build("machines", workers=6, gpus=3, rate="2Gbit", fabric_rate="1Gbit")
    local = [link.name for link in fabric.links if link.rate == 2 * 10**9]
    assert local == ["s1-s2", "s1-s3", "s2-s3", "s4-s5", "s4-s6", "s5-s6"]
    assert [link.name for link in fabric.links if link.rate == 10**9] == ["s7-s9", "s8-s9"]
    assert fabric.routes("s1") == {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 4, "h6": 4}
    assert fabric.routes("s7") == {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 4, "h6": 4}
    served = build("machines", workers=2, servers=1, gpus=1)
    assert names(served) == ["h1-s1", "h2-s2", "s1-s3", "s3-s5", "s2-s4", "s4-s5", "h3-s5"]
    edges = build("machines", workers=4, gpus=2, edge_rate="2Gbit", fabric_rate="1Gbit")
    assert [link.name for link in edges.links if link.rate == 2 * 10**9] == ["s5-s7", "s6-s8"]
    assert [link.name for link in edges.links if link.rate == 10**9] == ["s7-s9", "s8-s9"]
    ports = {switch.name: edges.edge_ports(switch.name) for switch in edges.switches}
    assert {name: found for name, found in ports.items() if found} == {"s7": (1,), "s8": (1,)}
    with pytest.raises(TopologyError, match="3 workers do not fill machines of 2: use a multiple"):
        build("machines", workers=3, gpus=2)


def test_hosts_are_spread_over_the_spines():
    assert build("leaf-spine", workers=4).routes("s1") == {"h1": 1, "h2": 2, "h3": 3, "h4": 4}


def test_hosts_are_spread_over_the_leaves_that_one_asks_for():
    fabric = build("leaf-spine", workers=5, leaves=3, spines=1)
    assert [len(fabric.host_ports(leaf)) for leaf in ("s1", "s2", "s3")] == [2, 2, 1]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"workers": 8, "servers": 1, "leaves": 2}, [4, 5]),
        ({"workers": 8, "servers": 1, "hosts_per_leaf": 4}, [4, 4, 1]),
        ({"workers": 7, "servers": 1, "hosts_per_leaf": 4}, [4, 4]),
        ({"workers": 4, "servers": 1, "hosts_per_leaf": 1}, [1, 1, 1, 1, 1]),
        ({"workers": 4, "servers": 1}, [2, 2, 1]),
        ({"workers": 3, "servers": 1}, [2, 2]),
        ({"workers": 4, "servers": 1, "leaves": 5}, [1, 1, 1, 1, 1]),
    ],
)
def test_workers_are_spread_evenly_and_servers_come_last(options, sizes):
    fabric = build("leaf-spine", spines=1, **options)
    leaves = [switch.name for switch in fabric.switches[:-1]]
    assert [len(fabric.host_ports(leaf)) for leaf in leaves] == sizes


@pytest.mark.parametrize(
    ("kind", "options", "hosts"),
    [
        ("leaf-spine", {"placement": "even", "leaves": 3}, ["1 2 3", "4 5 6", "7 8"]),
        ("leaf-spine", {"placement": "packed", "hosts_per_leaf": 5}, ["1 2 3 4 5", "6 7 8"]),
        ("leaf-spine", {"placement": "packed", "leaves": 3}, ["1 2 3", "4 5 6", "7 8"]),
        ("leaf-spine", {"placement": "spread", "leaves": 3}, ["1 4 7", "2 5 8", "3 6"]),
        (
            "leaf-spine",
            {"placement": [3, 3, 1, 1, 2, 1, 3, 1], "hosts_per_leaf": 4},
            ["3 4 6 8", "5", "1 2 7"],
        ),
        ("fat-tree", {}, ["1 2", "3 4", "5 6", "7 8", "", "", "", ""]),
        ("fat-tree", {"placement": "even"}, list("12345678")),
        ("fat-tree", {"placement": "spread"}, list("15263748")),
        ("fat-tree", {"placement": "spread", "workers": 5}, ["1", "5", "2", "", "3", "", "4", ""]),
        (
            "fat-tree",
            {"k": 8, "placement": "spread"},
            [name for n in "12345678" for name in (n, "", "", "")],
        ),
    ],
)
def test_workers_are_where_one_wants_them(kind, options, hosts):
    fabric = build(kind, **({"workers": 8} | options))
    leaves = [switch.name for switch in fabric.switches[: len(hosts)]]
    found = [" ".join(name[1:] for name in fabric.host_ports(leaf).values()) for leaf in leaves]
    assert found == hosts


@pytest.mark.parametrize(("k", "hosts", "switches", "links"), [(4, 16, 20, 48), (8, 128, 80, 384)])
def test_a_fat_tree_has_as_many_parts_as_its_switches_have_ports(k, hosts, switches, links):
    tree = build("fat-tree", workers=hosts, k=k)
    assert (len(tree.switches), len(tree.links)) == (switches, links)
    assert {len(tree.ports(switch.name)) for switch in tree.switches} == {k}
    assert len(tree.path("h1", f"h{hosts}", 1)) == 6
    assert len(tree.centres(tree.host)) == k * k // 4


def test_links_up_have_a_part_of_the_hosts_rates():
    options = {"workers": 8, "servers": 1, "rate": "100Mbit", "oversubscription": 4}
    leaf_spine = build("leaf-spine", leaves=2, spines=2, **options)
    assert {link.rate for link in leaf_spine.fabric_links()} == {50_000_000}
    assert {link.rate for link in build("fat-tree", **options).fabric_links()} == {25_000_000}


def test_kinds_are_named_as_one_writes_them():
    assert {"star", "ring", "leaf-spine", "fat-tree", "machines"} <= set(kinds())


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["ring", "leaf-spine", "fat-tree"]),
    st.integers(1, 12),
    st.integers(0, 2),
    st.integers(1, 3),
)
def test_routes_lead_to_every_host_from_everywhere(kind, workers, servers, size):
    options = {"ring": "hosts_per_switch", "leaf-spine": "spines"}
    option = {options[kind]: size} if kind in options else {"k": 2 * size + 2}
    topology = build(kind, workers=workers, servers=servers, **option)
    for start in topology.switches:
        for host in topology.host:
            node, hops = start.name, 0
            while node != host:
                node = topology.ports(node)[topology.routes(node)[host]].other_end(node)[0]
                hops += 1
                assert hops <= len(topology.switches) + 1


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "ring",
            {"workers": 0},
            "workers = 0, servers = 0: a ring has 1 worker or more, and 32767 hosts at most",
        ),
        (
            "ring",
            {"workers": 2, "hosts_per_switch": 0},
            "hosts_per_switch = 0: hosts on a switch, 1 or more",
        ),
        (
            "ring",
            {"workers": 4, "fabric_rate": ["1Gbit", "1Gbit"]},
            "fabric_rate has 2 values for 4 links between switches: give one for each",
        ),
        (
            "ring",
            {"workers": 3, "fabric_delay": "1 hour"},
            'fabric_delay = "1 hour": expected a number with a unit (ns, us, ms, s), such as "2ms"',
        ),
        (
            "leaf-spine",
            {"workers": 2, "spine": 1},
            'topology leaf-spine has no option "spine": did you mean "spines"? known: delay,'
            " fabric_delay, fabric_queue, fabric_rate, forwarding_leaves, hosts_per_leaf, leaves,"
            " nics, oversubscription, placement, queue, rate, servers, spines, workers",
        ),
        ("leaf-spine", {"workers": 2, "spines": 0}, "spines = 0: spine switches, 1 or more"),
        (
            "leaf-spine",
            {"workers": 2, "leaves": 3},
            "leaves = 3: there are 2 hosts, at least one for each leaf",
        ),
        (
            "leaf-spine",
            {"workers": 9, "leaves": 2, "hosts_per_leaf": 4},
            "leaves = 2, hosts_per_leaf = 4: they hold 8 hosts, and there are 9",
        ),
        (
            "leaf-spine",
            {"workers": 8, "servers": 1, "leaves": 2, "hosts_per_leaf": 4},
            "leaves = 2, hosts_per_leaf = 4: they hold 8 hosts, and there are 9, 1 of them the"
            " server",
        ),
        ("fat-tree", {"workers": 4, "k": 3}, "k = 3: ports of a switch, an even number"),
        ("fat-tree", {"workers": 17}, "k = 4: they hold 16 hosts, and there are 17"),
        (
            "fat-tree",
            {"workers": 4, "placement": [1, 1, 1, 2]},
            "k = 4: s1 holds 2 hosts, and gets 3 workers",
        ),
        (
            "leaf-spine",
            {"workers": 2, "placement": "close"},
            'placement = "close": expected "even", "packed", "spread", or a list with the number of'
            " each worker's leaf",
        ),
        (
            "leaf-spine",
            {"workers": 2, "placement": [1]},
            "placement has 1 numbers for 2 workers: give one for each",
        ),
        (
            "fat-tree",
            {"workers": 1, "placement": [9]},
            "placement has 9: a worker's edge switch is 1 to 8",
        ),
        (
            "leaf-spine",
            {"workers": 2, "oversubscription": 2},
            "oversubscription = 2 of links without a rate: give a rate",
        ),
        (
            "fat-tree",
            {"workers": 2, "oversubscription": 2, "rate": "1Mbit", "fabric_rate": "1Mbit"},
            "oversubscription beside fabric_rate: give one",
        ),
        (
            "fat-tree",
            {"workers": 2, "oversubscription": 0},
            "oversubscription = 0: a number above 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(kind, options, message):
    with pytest.raises(TopologyError) as error:
        build(kind, **options)
    assert str(error.value) == message


def test_a_switch_without_a_path_is_refused():
    hosts = (HostNode.numbered(1),)
    with pytest.raises(TopologyError) as error:
        Topology("mine", hosts, (SwitchNode("s1"), SwitchNode("s2")), (Link("h1", "s1", 0, 1),))
    assert str(error.value) == "no path leads from switch s2 to host h1: link them"


def sent_in_sim(kind, options, source, destination, count, payload):
    """Return the virtual ns at which each datagram of `count` sent at once arrives, and the
    counters."""
    with SimNetwork(build(kind, **options), switch_config()) as net:
        cases.route(net)
        arrived = []
        net._fabric.stacks[destination].listen(
            9000, lambda *_: arrived.append(net._fabric.events.now)
        )
        ip = net.topology.host[destination].ip
        for _ in range(count):
            net._fabric.stacks[source].send(Send(9000, ip, 9000, Payloads.of([bytes(payload)])))
        while net._fabric.events.step():
            pass
        return arrived, {c.link: c for c in net.link_counters()}


def test_a_fabric_link_takes_its_time_in_the_simulated_network():
    options = {"workers": 3, "fabric_rate": "10Mbit", "fabric_delay": "5us"}
    arrived, links = sent_in_sim("ring", options, "h1", "h2", 100, 958)
    # A frame of 1000 bytes is 800 us at 10 Mbit/s; both switches take 1 us.
    assert arrived == [800_000 * (n + 1) + 5_000 + 2_000 for n in range(100)]
    assert (links["s1-s2"].up_packets, links["s1-s2"].up_bytes) == (100, 100_000)
    assert links["s2-s3"].up_packets == links["s3-s1"].up_packets == 0


def test_a_fabric_links_queue_drops_in_the_simulated_network():
    options = {"workers": 2, "fabric_rate": "10Mbit", "fabric_queue": 10}
    arrived, links = sent_in_sim("ring", options, "h1", "h2", 50, 958)
    assert (len(arrived), links["s1-s2"].up_dropped) == (10, 40)


@pytest.mark.parametrize("kind", ["ring", "leaf-spine"])
def test_every_host_reaches_every_other_in_the_simulated_network(kind):
    with SimNetwork(build(kind, workers=4), switch_config()) as net:
        cases.route(net)
        arrived = set()
        for name, stack in net._fabric.stacks.items():
            stack.listen(9000, lambda *datagram, to=name: arrived.add((datagram[1], to)))
        hosts = net.topology.host
        wanted = {(hosts[a].ip, b) for a in hosts for b in hosts if a != b}
        for ip, to in wanted:
            stack = next(net._fabric.stacks[host.name] for host in hosts.values() if host.ip == ip)
            stack.send(Send(9000, hosts[to].ip, 9000, Payloads.of([b""])))
        while net._fabric.events.step():
            pass
        assert arrived == wanted


@pytest.mark.parametrize("kind", ["ring", "leaf-spine"])
def test_every_host_pings_every_other_on_real_links(kind):
    options = {"workers": 3} if kind == "ring" else {"workers": 4}
    lost, fabric = isolation.call(cases.pings, kind, options, load=load)
    assert lost == []
    assert all(fabric.values()), fabric  # both spines, and each side of the ring, are used


def test_a_fabric_link_takes_its_time_on_real_links():
    """A token bucket lets its burst through at once (2 packets), and then no more than the rate."""
    options = {"workers": 2, "fabric_rate": "10Mbit"}
    sent = "h1", "h2", 300, 958
    seconds = isolation.call(cases.transfer, "ring", options, *sent, load=load)
    assert seconds >= 0.95 * (300 - 4) * 8000 / 10e6
