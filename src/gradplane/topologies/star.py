"""The star: every host on a port of one switch.

h1 ──1┐
h2 ──2┤
...   s1        workers first, then servers
hN ──N┘
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import LinkOptions, Quantity, check_hosts


def star(
    workers: int,
    servers: int = 0,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
) -> Topology:
    """Build `workers` + `servers` hosts around switch s1, host N on port N.

    rate (bit/s or "10Mbit"; None: no limit), delay (ns or "1ms", one way) and queue (packets, each
    way) apply to every link, or are lists with a value for each host.
    """
    count = check_hosts(workers, servers, "star")
    options = LinkOptions.parse(count, "hosts", rate, delay, queue)
    links = tuple(Link(f"h{n}", "s1", 0, n, *options.of(n - 1)) for n in range(1, count + 1))
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology("star", hosts, (SwitchNode("s1"),), links)
