"""Shortest paths between nodes, and the ports that lead to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

Neighbours = Mapping[str, Mapping[int, str]]
"""For each node, the node at the other end of each of its ports."""


def distances(neighbours: Neighbours, to: str, through: frozenset[str]) -> dict[str, int]:
    """Return the number of links from each node to `to`, on paths through nodes of `through`
    only.
    """
    found, waiting = {to: 0}, deque([to])
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node].values():
            if other not in found:
                found[other] = found[node] + 1
                if other in through:
                    waiting.append(other)
    return found


def nearer(neighbours: Neighbours, node: str, distance: Mapping[str, int]) -> list[int]:
    """Return the ports of `node` whose other end is one link nearer, in order."""
    ports = neighbours[node].items()
    return sorted(p for p, other in ports if distance.get(other) == distance[node] - 1)
