"""The ring: switches in a circle, with hosts on each.

h1      h2      h3      h4
│1      │1      │1      │1
s1──2─3─s2──2─3─s3──2─3─s4      port 2 to the next switch, port 3 to the one before
3└───────────────────────┘2     (with more hosts a switch: the two ports after theirs)
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import LinkOptions, Quantity, check_count, check_hosts


def ring(
    workers: int,
    servers: int = 0,
    hosts_per_switch: int = 1,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
    fabric_rate: Quantity | Sequence[Quantity] | None = None,
    fabric_delay: Quantity | Sequence[Quantity] = 0,
    fabric_queue: int | Sequence[int] = QUEUE,
) -> Topology:
    """Build `workers` + `servers` hosts, `hosts_per_switch` of them on each switch of a circle.

    Two switches have one link between them, a single switch has none. rate, delay and queue are
    those of the hosts' links, as in `star`; fabric_rate, fabric_delay and fabric_queue those of the
    links between switches (a list: s1-s2, s2-s3, ...).
    """
    count = check_hosts(workers, servers, "ring")
    each = check_count("hosts_per_switch", hosts_per_switch, "hosts on a switch")
    switches = -(-count // each)
    options = LinkOptions.parse(count, "hosts", rate, delay, queue)
    links = [
        Link(f"h{n + 1}", f"s{n // each + 1}", 0, n % each + 1, *options.of(n))
        for n in range(count)
    ]
    around = switches if switches > 2 else switches - 1
    fabric = LinkOptions.parse(
        around, "links between switches", fabric_rate, fabric_delay, fabric_queue, "fabric_"
    )
    for n in range(around):
        after = (n + 1) % switches
        links.append(Link(f"s{n + 1}", f"s{after + 1}", each + 1, each + 2, *fabric.of(n)))
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology(
        "ring", hosts, tuple(SwitchNode(f"s{n}") for n in range(1, switches + 1)), tuple(links)
    )
