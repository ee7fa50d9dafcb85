"""The options of links, as the functions that describe networks take them: one value or a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.topologies.description import MAX_HOSTS, QUEUE
from gradplane.topologies.topology_errors import TopologyError
from gradplane.topologies.units import Quantity, parse_rate, parse_time


@dataclass(frozen=True)
class LinkOptions:
    """Rate (bit/s, None: no limit), delay (ns) and queue (packets) of link 0, 1, ..."""

    rates: Sequence[int | None]
    delays: Sequence[int]
    queues: Sequence[int]

    @classmethod
    def parse(
        cls,
        count: int,
        what: str,
        rate: Quantity | Sequence[Quantity] | None = None,
        delay: Quantity | Sequence[Quantity] = 0,
        queue: int | Sequence[int] = QUEUE,
        prefix: str = "",
    ) -> LinkOptions:
        """Of `count` links, from `PREFIXrate` and so on: a value for all, or a list with one each.

        what: whom a list has a value for, in plural. Raises TopologyError.
        """
        rates: Sequence[int | None] = [None] * count
        if rate is not None:
            rates = _each(rate, count, what, f"{prefix}rate", parse_rate)
        delays = _each(delay, count, what, f"{prefix}delay", parse_time)
        queues = _each(queue, count, what, f"{prefix}queue", _parse_queue)
        return cls(rates, delays, queues)

    def of(self, link: int) -> tuple[int | None, int, int]:
        """Rate, delay and queue, as `Link` takes them."""
        return self.rates[link], self.delays[link], self.queues[link]


def check_hosts(workers: int, servers: int, kind: str) -> int:
    """How many hosts there are. Raises TopologyError where that is none, or too many."""
    count = workers + servers
    if workers < 1 or servers < 0 or count > MAX_HOSTS:
        raise TopologyError(
            f"workers = {workers}, servers = {servers}: a {kind} has 1 worker or more, and"
            f" {MAX_HOSTS} hosts at most",
            "workers",
        )
    return count


def check_count(name: str, value: Any, what: str) -> int:
    """`value` if it is a whole number of 1 or more. Raises TopologyError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TopologyError(f"{name} = {value!r}: {what}, 1 or more", name)
    return value


def _each(
    value: Any, count: int, what: str, where: str, parse: Callable[[Any, str], int]
) -> list[int]:
    """`value` parsed, once for each of `count` links; a list has one value for each already."""
    if not isinstance(value, (list, tuple)):
        return [parse(value, where)] * count
    if len(value) != count:
        raise TopologyError(
            f"{where} has {len(value)} values for {count} {what}: give one for each", where
        )
    return [parse(item, f"{where}[{index}]") for index, item in enumerate(value)]


def _parse_queue(value: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        option = where.partition("[")[0]
        raise TopologyError(f"{where} = {value!r}: a queue holds 1 packet or more", option)
    return value
