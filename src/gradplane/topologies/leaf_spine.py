"""Leaf-spine: hosts on leaf switches, every leaf linked to every spine.

   s4      s5           spines
 1/ |2\\3 1/ |2\\3
 s1    s2    s3         leaves: ports 1, 2, ... to hosts, then one to each spine
h1 h2 h3 h4 h5 h6
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import LinkOptions, Quantity, check_count, check_hosts
from gradplane.topologies.topology_errors import TopologyError


def leaf_spine(
    workers: int,
    servers: int = 0,
    leaves: int | None = None,
    hosts_per_leaf: int | None = None,
    spines: int = 2,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
    fabric_rate: Quantity | Sequence[Quantity] | None = None,
    fabric_delay: Quantity | Sequence[Quantity] = 0,
    fabric_queue: int | Sequence[int] = QUEUE,
) -> Topology:
    """Return a network with the workers spread evenly and in order over the leaves.

    The servers are on the last leaf, or on leaves of their own where it is full. Leaves are s1, s2,
    ..., the spines follow. Without `leaves` there are as many as `hosts_per_leaf` (2) takes. rate,
    delay and queue are those of the hosts' links, as in `star`; fabric_rate, fabric_delay and
    fabric_queue those between switches (a list: s1's to each spine, then s2's, ...).
    """
    count = check_hosts(workers, servers, "leaf-spine")
    check_count("spines", spines, "spine switches")
    on_leaf = _hosts_of_leaves(workers, servers, leaves, hosts_per_leaf)
    options = LinkOptions.parse(count, "hosts", rate, delay, queue)
    links = [
        Link(f"h{n + 1}", f"s{leaf + 1}", 0, port, *options.of(n))
        for leaf, hosts in enumerate(on_leaf)
        for port, n in enumerate(hosts, 1)
    ]
    pairs = [(leaf, spine) for leaf in range(len(on_leaf)) for spine in range(spines)]
    fabric = LinkOptions.parse(
        len(pairs), "links between switches", fabric_rate, fabric_delay, fabric_queue, "fabric_"
    )
    for n, (leaf, spine) in enumerate(pairs):
        name, port = f"s{len(on_leaf) + spine + 1}", len(on_leaf[leaf]) + spine + 1
        links.append(Link(f"s{leaf + 1}", name, port, leaf + 1, *fabric.of(n)))
    switches = tuple(SwitchNode(f"s{n}") for n in range(1, len(on_leaf) + spines + 1))
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology("leaf-spine", hosts, switches, tuple(links))


def _hosts_of_leaves(
    workers: int, servers: int, leaves: int | None, hosts_per_leaf: int | None
) -> list[range]:
    """Return the hosts of each leaf, counted from 0; the first leaves have one more if needed."""
    count = workers + servers
    if leaves is None:
        most = check_count("hosts_per_leaf", hosts_per_leaf or 2, "hosts on a leaf")
        for_workers = -(-workers // most)
        free = most - workers // for_workers  # on the last of them
        leaves = for_workers + (-(-servers // most) if servers > free else 0)
    else:
        most = hosts_per_leaf or count
        for_workers = min(workers, check_count("leaves", leaves, "leaf switches"))
    if leaves > count:
        text = f"leaves = {leaves}: there are {count} hosts, at least one for each leaf"
        raise TopologyError(text, "leaves")
    few, more = divmod(workers, for_workers)
    sizes = [few + (leaf < more) for leaf in range(for_workers)] + [0] * (leaves - for_workers)
    rest = servers
    for leaf in range(min(for_workers, leaves - 1), leaves):
        taken = max(0, min(most - sizes[leaf], rest))
        sizes[leaf] += taken
        rest -= taken
    if rest or max(sizes) > most:
        raise TopologyError(
            f"leaves = {leaves}, hosts_per_leaf = {most}: they hold {leaves * most} hosts, and"
            f" there are {count}",
            "leaves",
        )
    ends = [sum(sizes[: leaf + 1]) for leaf in range(leaves)]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
