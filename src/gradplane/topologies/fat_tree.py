"""The fat-tree of switches with k ports: k pods, (k/2)^2 core switches above them.

  s17    s18    s19    s20      core: port p to pod p                                      (k = 4)
   s9 s10   s11 s12  ...        aggregation: ports 1 to k/2 to the pod's edge switches, then core
   s1  s2    s3  s4  ...        edge: ports 1 to k/2 to hosts, then the pod's aggregation switches
  h1h2 h3h4 h5h6 h7h8

Core switch c (from 0) is linked to the aggregation switch c modulo k/2 of each pod, so that cores
that follow each other are reached by different links.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane._suggestions import quoted
from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import LinkOptions, Quantity, check_count, check_hosts
from gradplane.topologies.placing import Placement, racks_of, seats, uplink_rate
from gradplane.topologies.topology_errors import TopologyError


def fat_tree(
    workers: int,
    servers: int = 0,
    k: int = 4,
    placement: Placement = "packed",
    oversubscription: float | None = None,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
    fabric_rate: Quantity | Sequence[Quantity] | None = None,
    fabric_delay: Quantity | Sequence[Quantity] = 0,
    fabric_queue: int | Sequence[int] = QUEUE,
) -> Topology:
    """Return the fat-tree with the workers on edge switches as `placement` says.

    k/2 hosts are on an edge switch at most, k^3/4 in all; the servers are behind the last worker.
    "spread" (`placing.racks_of`) takes an edge switch of each pod, then the next of each. The
    switches are all there, also those that no host needs: edge switches s1, s2, ..., k/2 a pod, the
    pods' aggregation switches likewise, then the cores. rate, delay and queue are those of the
    hosts' links, fabric_rate, fabric_delay and fabric_queue those between switches (a list: the
    edge switches' in order, then the aggregation switches' to cores). oversubscription: how many
    times the rate of an edge switch's k/2 hosts is that of its links up, which those to the cores
    have as well. Raises TopologyError.
    """
    count = check_hosts(workers, servers, "fat-tree")
    if check_count("k", k, "ports of a switch") % 2:
        raise TopologyError(f"k = {quoted(k)}: ports of a switch, an even number", "k")
    half = k // 2
    edges = half * k
    order = [pod * half + edge for edge in range(half) for pod in range(k)]
    places = racks_of(workers, placement, half, order, "edge switch")
    on_edge = seats(places, servers, edges, half, places[-1], f"k = {k}")
    options = LinkOptions.parse(count, "hosts", rate, delay, queue)
    links = [
        Link(f"h{n + 1}", f"s{edge + 1}", 0, port, *options.of(n))
        for edge, hosts in enumerate(on_edge)
        for port, n in enumerate(hosts, 1)
    ]
    pairs = _fabric(half)
    rates = [one for one in options.rates if one is not None]
    hosts_rate = half * max(rates) if len(rates) == count else None
    up = uplink_rate(oversubscription, fabric_rate, hosts_rate, half)
    fabric = LinkOptions.parse(
        len(pairs), "links between switches", up, fabric_delay, fabric_queue, "fabric_"
    )
    links += [
        Link(f"s{a + 1}", f"s{b + 1}", a_port, b_port, *fabric.of(n))
        for n, (a, b, a_port, b_port) in enumerate(pairs)
    ]
    switches = tuple(SwitchNode(f"s{n}") for n in range(1, 2 * edges + half * half + 1))
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology("fat-tree", hosts, switches, tuple(links))


def _fabric(half: int) -> list[tuple[int, int, int, int]]:
    """Return the links between switches: two switches, counted from 0, and the port of each."""
    pods, edges = 2 * half, 2 * half * half
    found = [
        (pod * half + edge, edges + pod * half + above, half + above + 1, edge + 1)
        for pod in range(pods)
        for edge in range(half)
        for above in range(half)
    ]
    found += [
        (edges + pod * half + below, 2 * edges + group * half + below, half + group + 1, pod + 1)
        for pod in range(pods)
        for below in range(half)
        for group in range(half)
    ]
    return found
