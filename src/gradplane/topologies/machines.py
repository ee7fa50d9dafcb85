"""Machines with several GPUs, each GPU a host: fast local links, one network interface a machine.

    s1===s2   s3===s4     GPUs' switches: port 1 to the host, then one to each GPU of the machine
     \\   /     \\   /      (local links), the last to the machine's network interface
      s5        s6        machines' network interfaces
        \\      /
         \\    /          links between machines
           s7             spine

With an edge_rate, an edge switch is between each machine's network interface and the spine; the
links between edge switches and the spine are then those of fabric_rate.

What GPUs of one machine send each other crosses their local link alone, everything else the
machine's link, which its GPUs share: the two networks do not delay each other. Aggregation packets
go to the spine: the other switches have addresses of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.topologies.description import QUEUE, HostNode, Link, SwitchNode, Topology
from gradplane.topologies.link_options import (
    LinkOptions,
    Quantity,
    check_count,
    check_hosts,
    parse_rate,
)
from gradplane.topologies.topology_errors import TopologyError


def machines(
    workers: int,
    servers: int = 0,
    gpus: int = 2,
    rate: Quantity | None = None,
    delay: Quantity = 0,
    queue: int = QUEUE,
    fabric_rate: Quantity | None = None,
    fabric_delay: Quantity = 0,
    fabric_queue: int = QUEUE,
    edge_rate: Quantity | None = None,
) -> Topology:
    """Return a network with the workers in order on machines of `gpus` each, servers at the spine.

    rate, delay and queue are those of the links inside a machine, of which every two GPUs have one;
    fabric_rate, fabric_delay and fabric_queue those of a machine's and a server's link to the
    spine. The links between hosts and switches, and those to a machine's interface, have no limit.
    edge_rate: of each machine's link to an edge switch of its own, which marked packets are
    compressed by; without it there are none.
    Raises TopologyError where the workers do not fill the machines.
    """
    count = check_hosts(workers, servers, "machines")
    each = check_count("gpus", gpus, "GPUs of a machine")
    if workers % each:
        raise TopologyError(
            f"gpus = {each}: {workers} workers do not fill machines of {each}: use a multiple",
            "gpus",
        )
    number, own = workers // each, workers + workers // each
    local = LinkOptions.parse(1, "local links", rate, delay, queue).of(0)
    outer = LinkOptions.parse(
        1, "links to the spine", fabric_rate, fabric_delay, fabric_queue, "fabric_"
    ).of(0)
    edges = 0 if edge_rate is None else number
    edge = parse_rate(edge_rate, "edge_rate") if edge_rate is not None else None
    spine = f"s{own + edges + 1}"
    links = [Link(f"h{n + 1}", f"s{n + 1}", 0, 1) for n in range(workers)]
    for machine in range(number):
        links += _machine(machine, each, workers + machine + 1, local)
        up, port = f"s{workers + machine + 1}", each + 1
        if edges:
            links.append(Link(up, f"s{own + machine + 1}", port, 1, edge, queue=outer[2]))
            up, port = f"s{own + machine + 1}", 2
        links.append(Link(up, spine, port, machine + 1, *outer))
    links += [Link(f"h{workers + n + 1}", spine, 0, number + n + 1, *outer) for n in range(servers)]
    switches = tuple(SwitchNode.forwarding(n) for n in range(1, own + edges + 1))
    inside = frozenset(switch.name for switch in switches[:own]) if edges else frozenset()
    hosts = tuple(HostNode.numbered(n) for n in range(1, count + 1))
    return Topology("machines", hosts, (*switches, SwitchNode(spine)), tuple(links), inside)


def _machine(
    machine: int, gpus: int, interface: int, local: tuple[int | None, int, int]
) -> Iterator[Link]:
    """Yield the links of a machine: between every two GPUs, and to its network interface."""
    first = machine * gpus + 1
    for a in range(gpus):
        for b in range(a + 1, gpus):
            yield Link(f"s{first + a}", f"s{first + b}", 1 + b, 2 + a, *local)
        yield Link(f"s{first + a}", f"s{interface}", gpus + 1, a + 1, queue=local[2])
