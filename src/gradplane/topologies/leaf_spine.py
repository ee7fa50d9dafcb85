"""Leaf-spine: hosts on leaf switches, every leaf linked to every spine.

   s4      s5           spines
 1/ |2\\3 1/ |2\\3
 s1    s2    s3         leaves: ports 1, 2, ... to hosts, then one to each spine
h1 h2 h3 h4 h5 h6
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane._suggestions import quoted
from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import LinkOptions, Quantity, check_count, check_hosts
from gradplane.topologies.placing import Placement, rack_rate, racks_of, seats, uplink_rate
from gradplane.topologies.topology_errors import TopologyError


def leaf_spine(
    workers: int,
    servers: int = 0,
    leaves: int | None = None,
    hosts_per_leaf: int | None = None,
    spines: int = 2,
    placement: Placement = "even",
    oversubscription: float | None = None,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
    fabric_rate: Quantity | Sequence[Quantity] | None = None,
    fabric_delay: Quantity | Sequence[Quantity] = 0,
    fabric_queue: int | Sequence[int] = QUEUE,
    forwarding_leaves: bool = False,
) -> Topology:
    """Return a network with the workers on leaves as `placement` says (`placing.racks_of`).

    The servers are on the last leaf, or on leaves of their own where it is full. Leaves are s1, s2,
    ..., the spines follow. Without `leaves` there are as many as `hosts_per_leaf` (2) takes. rate,
    delay and queue are those of the hosts' links, as in `star`; fabric_rate, fabric_delay and
    fabric_queue those between switches (a list: s1's to each spine, then s2's, ...); instead of
    fabric_rate, `oversubscription` (`placing.uplink_rate`). forwarding_leaves: leaves sum nothing,
    and pass on what is for the switch that does, a spine.
    """
    if not isinstance(forwarding_leaves, bool):
        text = f"forwarding_leaves = {quoted(forwarding_leaves)}: true or false"
        raise TopologyError(text, "forwarding_leaves")
    count = check_hosts(workers, servers, "leaf-spine")
    check_count("spines", spines, "spine switches")
    on_leaf = _hosts_of_leaves(workers, servers, leaves, hosts_per_leaf, placement)
    options = LinkOptions.parse(count, "hosts", rate, delay, queue)
    links = [
        Link(f"h{n + 1}", f"s{leaf + 1}", 0, port, *options.of(n))
        for leaf, hosts in enumerate(on_leaf)
        for port, n in enumerate(hosts, 1)
    ]
    pairs = [(leaf, spine) for leaf in range(len(on_leaf)) for spine in range(spines)]
    up = uplink_rate(
        oversubscription, fabric_rate, rack_rate(on_leaf, options.rates[:workers]), spines
    )
    fabric = LinkOptions.parse(
        len(pairs), "links between switches", up, fabric_delay, fabric_queue, "fabric_"
    )
    for n, (leaf, spine) in enumerate(pairs):
        name, port = f"s{len(on_leaf) + spine + 1}", len(on_leaf[leaf]) + spine + 1
        links.append(Link(f"s{leaf + 1}", name, port, leaf + 1, *fabric.of(n)))
    numbers = range(1, len(on_leaf) + spines + 1)
    passing = len(on_leaf) if forwarding_leaves else 0
    switches = tuple(
        SwitchNode.forwarding(n) if n <= passing else SwitchNode(f"s{n}") for n in numbers
    )
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology("leaf-spine", hosts, switches, tuple(links))


def _hosts_of_leaves(
    workers: int, servers: int, leaves: int | None, hosts_per_leaf: int | None, placement: Placement
) -> list[list[int]]:
    """Return the hosts of each leaf, counted from 0."""
    count = workers + servers
    if leaves is None:
        most = check_count("hosts_per_leaf", hosts_per_leaf or 2, "hosts on a leaf")
        for_workers = -(-workers // most)
        if not isinstance(placement, str):
            for_workers = max([for_workers, *(n for n in placement if type(n) is int)])
    else:
        check_count("leaves", leaves, "leaf switches")
        most = hosts_per_leaf or (-(-workers // leaves) if placement == "packed" else count)
        for_workers = min(workers, leaves) if isinstance(placement, str) else leaves
        if leaves > count:
            text = f"leaves = {leaves}: there are {count} hosts, at least one for each leaf"
            raise TopologyError(text, "leaves")
    places = racks_of(workers, placement, most, range(for_workers), "leaf")
    if leaves is None:
        full = servers > most - places.count(for_workers - 1)  # the last of them
        leaves = for_workers + (-(-servers // most) if full else 0)
    limits = f"leaves = {leaves}, hosts_per_leaf = {most}"
    return seats(places, servers, leaves, most, min(for_workers, leaves - 1), limits)
