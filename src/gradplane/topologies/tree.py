"""The switches that sum a job, as a tree over the network's shortest paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.topologies.description import Topology
from gradplane.topologies.topology_errors import TopologyError


@dataclass(frozen=True)
class TreeNode:
    """A switch of a tree. children: hosts or switches, by their numbers; parent: None at the root.

    level: 0 for a leaf, whose children are hosts, and one more than the highest child's above it.
    """

    switch: str
    parent: str | None
    children: tuple[str, ...]
    level: int

    @property
    def leaf(self) -> bool:
        """Whether its children are hosts."""
        return self.level == 0


def switch_tree(network: Topology, hosts: Sequence[str]) -> tuple[TreeNode, ...]:
    """Return the switches over these hosts, leaves first, in the hosts' order, and the root last.

    The root is the first switch in the middle of the hosts; one switch alone is leaf and root.
    Raises TopologyError where hosts are attached to a switch that others are below.
    """
    children: dict[str, list[str]] = {}
    for host in hosts:
        children.setdefault(network.attachment(host)[0], []).append(host)
    leaves = list(children)
    root = leaves[0] if len(leaves) == 1 else network.centre(hosts)
    parents: dict[str, str] = {}
    for leaf in leaves:
        below = leaf
        while below != root and below not in parents:
            parents[below] = above = _towards(network, below, root)
            children.setdefault(above, []).append(below)
            below = above
    for leaf in leaves:
        if mixed := [child for child in children[leaf] if child in parents]:
            raise TopologyError(
                f"switch {leaf} has workers and passes on what switch {mixed[0]} sums: a switch"
                ' sums for workers or for switches: use kind = "leaf-spine"'
            )
    order = [*leaves, *(name for name in children if name not in leaves and name != root)]
    order += [root] if root not in leaves else []

    def level(name: str) -> int:
        return 0 if name in leaves else 1 + max(level(child) for child in children[name])

    return tuple(
        TreeNode(name, parents.get(name), tuple(children[name]), level(name)) for name in order
    )


def _towards(network: Topology, switch: str, other: str) -> str:
    """Return the next switch on a shortest path to another."""
    port = network.port_to(switch, other)
    return network.ports(switch)[port].other_end(switch)[0]
