"""Rates and times as people write them: `10Mbit`, `2ms`; a plain number is bit/s, or ns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gradplane.topologies.topology_errors import TopologyError

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")

Quantity = int | str


def parse_rate(value: Quantity, where: str) -> int:
    """Bits per second of `value`; `where` names the option in the TopologyError of a wrong one."""
    rate = _parse(value, _RATES, where, "100Mbit")
    if rate <= 0:
        raise TopologyError(
            f"{where} = {value!r}: a rate is more than 0 bit/s; leave it out for no limit",
            where.partition("[")[0],
        )
    return rate


def parse_time(value: Quantity, where: str) -> int:
    """Nanoseconds of `value`; `where` names the option in the TopologyError of a wrong one."""
    return _parse(value, _TIMES, where, "2ms")


def _parse(value: Quantity, units: Mapping[str, int], where: str, example: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in units:
        raise TopologyError(
            f"{where} = {value!r}: expected a number with a unit ({', '.join(units)}),"
            f" such as {example!r}",
            where.partition("[")[0],
        )
    return round(float(match[1]) * units[match[2].lower()])
