"""The star: every host on a switch of its own port.

h1 ──1┐
h2 ──2┤
...   s1        workers first, then servers
hN ──N┘
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.topologies.description import MAX_HOSTS, QUEUE, Host, Link, Switch, Topology
from gradplane.topologies.errors import TopologyError
from gradplane.topologies.units import Quantity, parse_rate, parse_time


def star(
    workers: int,
    servers: int = 0,
    rate: Quantity | Sequence[Quantity] | None = None,
    delay: Quantity | Sequence[Quantity] = 0,
    queue: int | Sequence[int] = QUEUE,
) -> Topology:
    """`workers` + `servers` hosts around switch s1, host N on port N.

    rate (bit/s or "10Mbit"; None: no limit), delay (ns or "1ms", one way) and queue (packets, each
    way) hold for every link, or are lists with one value a host.
    """
    count = workers + servers
    if workers < 1 or servers < 0 or count > MAX_HOSTS:
        raise TopologyError(
            f"workers = {workers}, servers = {servers}: a star has 1 worker or more, and"
            f" {MAX_HOSTS} hosts at most"
        )
    rates: Sequence[int | None]
    rates = [None] * count if rate is None else _each(rate, count, "rate", parse_rate)
    delays = _each(delay, count, "delay", parse_time)
    queues = _each(queue, count, "queue", _parse_queue)
    links = tuple(
        Link(f"h{n}", "s1", 0, n, rates[n - 1], delays[n - 1], queues[n - 1])
        for n in range(1, count + 1)
    )
    hosts = tuple(Host.numbered(n) for n in range(1, count + 1))
    return Topology("star", hosts, (Switch("s1"),), links)


def _each(value: Any, count: int, where: str, parse: Callable[[Any, str], int]) -> list[int]:
    """`value` parsed, once for each of `count` hosts; a list has one value for each already."""
    if not isinstance(value, (list, tuple)):
        return [parse(value, where)] * count
    if len(value) != count:
        raise TopologyError(f"{where} has {len(value)} values for {count} hosts: give one for each")
    return [parse(item, f"{where}[{index}]") for index, item in enumerate(value)]


def _parse_queue(value: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TopologyError(f"{where} = {value!r}: a queue holds 1 packet or more")
    return value
