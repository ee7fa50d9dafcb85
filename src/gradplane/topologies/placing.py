"""Where the hosts of a topology with racks are: the rack of each worker, then the servers.

Racks are numbered from 1 in options and messages, as their switches are, and from 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradplane._suggestions import quoted
from gradplane.topologies.link_options import Quantity
from gradplane.topologies.topology_errors import NoPlaceError, TopologyError

WAYS = ("even", "packed", "spread")
Placement = str | Sequence[int]


def racks_of(
    workers: int, placement: Placement, size: int, order: Sequence[int], what: str
) -> list[int]:
    """Return the rack of each worker.

    placement: "even" (blocks of equal sizes, the first ones larger), "packed" (full racks of `size`
    first), "spread" (one after the other, in `order`), or a list with the number of each worker's
    rack. what: the racks' switches, for a message. Raises TopologyError.
    """
    count = len(order)
    if placement == "packed":
        return [worker // size for worker in range(workers)]
    if placement == "spread":
        return [order[worker % count] for worker in range(workers)]
    if placement == "even":
        few, more = divmod(workers, count)
        return [rack for rack in range(count) for _ in range(few + (rack < more))]
    _check_list(placement, workers, count, what)
    return [int(number) - 1 for number in placement]


def _check_list(placement: Any, workers: int, racks: int, what: str) -> None:
    if isinstance(placement, str) or not isinstance(placement, (list, tuple)):
        ways = ", ".join(map(quoted, WAYS))
        raise TopologyError(
            f"placement = {quoted(placement)}: expected {ways}, or a list with the number of each"
            f" worker's {what}",
            "placement",
        )
    if len(placement) != workers:
        raise TopologyError(
            f"placement has {len(placement)} numbers for {workers} workers: give one for each",
            "placement",
        )
    for number in placement:
        if type(number) is not int or not 1 <= number <= racks:
            text = f"placement has {quoted(number)}: a worker's {what} is 1 to {racks}"
            raise TopologyError(text, "placement")


def seats(
    places: Sequence[int], servers: int, racks: int, size: int, first: int, limits: str
) -> list[list[int]]:
    """Return the hosts of each rack, counted from 0: the workers, then servers where there is room.

    places: the rack of each worker. first: the rack that servers look for room in first, then the
    ones after it, and last those before it. limits: the options that say how many hosts there may
    be, for a message. Raises NoPlaceError where there is no room for one.
    """
    count, found = len(places) + servers, [list[int]() for _ in range(racks)]
    if count > racks * size:
        text = f"{limits}: they hold {racks * size} hosts, and there are {count}"
        if servers:
            text += f", {servers} of them the server{'s' * (servers > 1)}"
        raise NoPlaceError(text, limits.partition(" ")[0])
    for worker, rack in enumerate(places):
        found[rack].append(worker)
    for rack, hosts in enumerate(found):
        if len(hosts) > size:
            text = f"{limits}: s{rack + 1} holds {size} hosts, and gets {len(hosts)} workers"
            raise TopologyError(text, "placement")
    turn = (*range(first, racks), *range(first))
    for server in range(len(places), count):
        found[next(rack for rack in turn if len(found[rack]) < size)].append(server)
    return found


def rack_rate(racks: Sequence[Sequence[int]], rates: Sequence[int | None]) -> int | None:
    """Return the largest sum of the rates of a rack's workers; None where one has no limit.

    racks: the hosts of each; rates: of workers' links, in bit/s.
    """
    limits = [rate for rate in rates if rate is not None]
    if len(limits) < len(rates):
        return None
    return max(sum(limits[host] for host in rack if host < len(limits)) for rack in racks)


def uplink_rate(
    oversubscription: float | None,
    fabric_rate: Quantity | Sequence[Quantity] | None,
    rate: int | None,
    uplinks: int,
) -> Quantity | Sequence[Quantity] | None:
    """Return the rate of links between switches: the one given, or the one that follows.

    oversubscription: how many times the rate of a rack's workers, `rate` bit/s in all, is that of
    its switch's links up; None where it is not asked for. Raises TopologyError.
    """
    if oversubscription is None:
        return fabric_rate
    if isinstance(oversubscription, (str, bool)) or not oversubscription > 0:
        text = f"oversubscription = {quoted(oversubscription)}: a number above 0"
        raise TopologyError(text, "oversubscription")
    if fabric_rate is not None:
        raise TopologyError("oversubscription beside fabric_rate: give one", "oversubscription")
    if rate is None:
        text = f"oversubscription = {oversubscription:g} of links without a rate: give a rate"
        raise TopologyError(text, "oversubscription")
    return max(1, round(rate / (uplinks * oversubscription)))
