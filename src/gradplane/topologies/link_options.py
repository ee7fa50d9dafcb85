"""The options of links as the topologies' functions take them: one value or a list.

Rates and times have units: `10Mbit`, `2ms`; a plain number is bit/s, or ns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane._suggestions import quoted
from gradplane.topologies.description import MAX_HOSTS, QUEUE
from gradplane.topologies.topology_errors import TopologyError

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_LEAST_BARE = 1000  # bit/s; a smaller number without a unit is one of Mbit/s, for example
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")

Quantity = int | str


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
        """Parse the options of `count` links: `PREFIXrate` and so on, a value or a list.

        what: the things that a list has a value for, in plural. Raises TopologyError.
        """
        rates: Sequence[int | None] = [None] * count
        if rate is not None:
            rates = _each(rate, count, what, f"{prefix}rate", parse_rate)
        delays = _each(delay, count, what, f"{prefix}delay", parse_time)
        queues = _each(queue, count, what, f"{prefix}queue", _parse_queue)
        return cls(rates, delays, queues)

    def of(self, link: int) -> tuple[int | None, int, int]:
        """Return rate, delay and queue, in the order of `Link`."""
        return self.rates[link], self.delays[link], self.queues[link]


def check_hosts(workers: int, servers: int, kind: str) -> int:
    """Return the number of hosts. Raises TopologyError where it is zero, or too large."""
    count = workers + servers
    if workers < 1 or servers < 0 or count > MAX_HOSTS:
        raise TopologyError(
            f"workers = {workers}, servers = {servers}: a {kind} has 1 worker or more, and"
            f" {MAX_HOSTS} hosts at most",
            "workers",
        )
    return count


def check_count(name: str, value: Any, what: str) -> int:
    """Return `value` if it is a whole number of 1 or more. Raises TopologyError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TopologyError(f"{name} = {quoted(value)}: {what}, 1 or more", name)
    return value


def _each(
    value: Any, count: int, what: str, where: str, parse: Callable[[Any, str], int]
) -> list[int]:
    """Parse `value` for each of `count` links; a list has one value for each already."""
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
        raise TopologyError(f"{where} = {quoted(value)}: a queue holds 1 packet or more", option)
    return value


def bare_rate(name: str, value: int) -> str:
    """Return what is said of a rate without a unit that is probably meant otherwise."""
    return (
        f'{name} = {value} is {value} bit/s: write the unit, such as {name} = "{value}Mbit", or'
        f' "{value}bit" if bits are meant'
    )


def parse_rate(value: Quantity, where: str) -> int:
    """Return `value` in bits per second; `where` names the option in a TopologyError."""
    if isinstance(value, int) and 0 < value < _LEAST_BARE:
        raise TopologyError(bare_rate(where, value), where.partition("[")[0])
    rate = _parse(value, _RATES, where, "100Mbit")
    if rate <= 0:
        raise TopologyError(
            f"{where} = {quoted(value)}: a rate is more than 0 bit/s; leave it out for no limit",
            where.partition("[")[0],
        )
    return rate


def parse_time(value: Quantity, where: str) -> int:
    """Return `value` in nanoseconds; `where` names the option in a TopologyError."""
    return _parse(value, _TIMES, where, "2ms")


def _parse(value: Quantity, units: Mapping[str, int], where: str, example: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in units:
        raise TopologyError(
            f"{where} = {quoted(value)}: expected a number with a unit ({', '.join(units)}),"
            f" such as {quoted(example)}",
            where.partition("[")[0],
        )
    return round(float(match[1]) * units[match[2].lower()])
