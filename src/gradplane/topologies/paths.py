"""Shortest paths between nodes: which ports lead nearer to one."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

Neighbours = Mapping[str, Mapping[int, str]]
"""By node: what is at the other end of each of its ports."""


def distances(neighbours: Neighbours, to: str, through: frozenset[str]) -> dict[str, int]:
    """Links between each node and `to`, by way of nodes of `through`; without whom none leads."""
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
    """The ports of `node` whose other end is one link nearer, in order."""
    ports = neighbours[node].items()
    return sorted(p for p, other in ports if distance.get(other) == distance[node] - 1)
