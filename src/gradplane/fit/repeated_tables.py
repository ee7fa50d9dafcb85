"""Tables that are applied in several branches: the chip has one, before all that follow any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from gradplane.fit.dependencies import Dependency
from gradplane.fit.logical_tables import LogicalTable


def merged(
    tables: Sequence[LogicalTable], edges: Iterable[Dependency]
) -> tuple[list[LogicalTable], list[Dependency]]:
    """Return the tables of a control, each once, in an order of their dependencies, and these."""
    applied: dict[str, list[LogicalTable]] = {}
    for table in tables:
        if table.table is not None:
            applied.setdefault(table.name, []).append(table)
    one: dict[LogicalTable, LogicalTable] = {}
    for same in applied.values():
        if len(same) > 1:
            one |= dict.fromkeys(same, _union(same))
    if not one:
        return list(tables), list(edges)
    strongest: dict[tuple[LogicalTable, LogicalTable], Dependency] = {}
    for edge in edges:
        pair = one.get(edge.before, edge.before), one.get(edge.after, edge.after)
        known = strongest.get(pair)
        if pair[0] is not pair[1] and (known is None or known.distance < edge.distance):
            strongest[pair] = replace(edge, before=pair[0], after=pair[1])
    nodes = list(dict.fromkeys(one.get(table, table) for table in tables))
    return _in_order(nodes, strongest), list(strongest.values())


def _union(same: Sequence[LogicalTable]) -> LogicalTable:
    """Return the table that several applications are: in the branches that all of them are in."""
    arms = tuple(arm for arm in same[0].arms if all(arm in other.arms for other in same))
    deciders = tuple(dict.fromkeys(decider for table in same for decider in table.deciders))
    return replace(same[0], arms=arms, deciders=deciders)


def _in_order(
    tables: Sequence[LogicalTable], pairs: Iterable[tuple[LogicalTable, LogicalTable]]
) -> list[LogicalTable]:
    """Return tables with each behind those that it depends on; those in a circle come last."""
    after: dict[LogicalTable, list[LogicalTable]] = {}
    waits = dict.fromkeys(tables, 0)
    for before, table in pairs:
        after.setdefault(before, []).append(table)
        waits[table] += 1
    place = {table: n for n, table in enumerate(tables)}
    free = [n for n, table in enumerate(tables) if not waits[table]]
    heapify(free)
    found: list[LogicalTable] = []
    while free:
        table = tables[heappop(free)]
        found.append(table)
        for follower in after.get(table, ()):
            waits[follower] -= 1
            if not waits[follower]:
                heappush(free, place[follower])
    return [*found, *(table for table in tables if waits[table])]
