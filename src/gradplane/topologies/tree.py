"""The switches that sum a job, as trees over the network's shortest paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradplane.topologies.description import Topology
from gradplane.topologies.topology_errors import TopologyError


@dataclass(frozen=True)
class TreeNode:
    """A switch of a job's trees, with the same children in all of them that it is in.

    children: hosts or switches, by their numbers. parents: in the tree of each root; None where it
    is not in that tree; empty at a root. level: 0 for a leaf, whose children are hosts, and one
    more than the highest child's above it.
    """

    switch: str
    parents: tuple[str | None, ...]
    children: tuple[str, ...]
    level: int

    @property
    def leaf(self) -> bool:
        """Whether its children are hosts."""
        return self.level == 0


@dataclass(frozen=True)
class _Tree:
    """The parent of each switch but the root, and the children of each."""

    parents: Mapping[str, str]
    children: Mapping[str, Sequence[str]]

    def fits(self, other: _Tree) -> bool:
        """Return whether each switch of both has the same place in both: its children, and whether
        it is the root."""
        return all(
            (self.children[name], name in self.parents)
            == (other.children[name], name in other.parents)
            for name in self.children.keys() & other.children.keys()
        )


def switch_trees(
    network: Topology, hosts: Sequence[str], most: int | None = None
) -> tuple[TreeNode, ...]:
    """Return the switches over these hosts, leaves first, in the hosts' order, and the roots last.

    The roots are the switches in the middle of the hosts that all leaves reach in the same way, at
    most so many; one switch alone is leaf and root. Switches that pass packets to SWITCH_IP on are
    like wires. Raises TopologyError where hosts are attached to a switch that others are below.
    """
    leaves: dict[str, list[str]] = {}
    for host in hosts:
        leaves.setdefault(network.aggregator(host), []).append(host)
    roots = list(leaves) if len(leaves) == 1 else network.centres(hosts)
    trees: list[_Tree] = []
    for root in roots:
        tree = _tree(network, leaves, root)
        if mixed := [name for name in leaves if len(tree.children[name]) > len(leaves[name])]:
            if not trees:
                raise _mixed(leaf := mixed[0], tree.children[leaf][len(leaves[leaf])])
        elif all(tree.fits(other) for other in trees):
            trees.append(tree)
        if len(trees) == most:
            break
    return tuple(_nodes(trees, list(leaves)))


def _tree(network: Topology, leaves: Mapping[str, Sequence[str]], root: str) -> _Tree:
    """Return the tree of the shortest paths from leaves, with their hosts, to a root."""
    children = {leaf: list(hosts) for leaf, hosts in leaves.items()}
    parents: dict[str, str] = {}
    for leaf in leaves:
        below = leaf
        while below != root and below not in parents:
            parents[below] = above = _towards(network, below, root)
            children.setdefault(above, []).append(below)
            below = above
    return _Tree(parents, children)


def _mixed(leaf: str, child: str) -> TopologyError:
    return TopologyError(
        f"switch {leaf} has workers and passes on what switch {child} sums: a switch sums for"
        ' workers or for switches: use kind = "leaf-spine", or a switch without workers above both'
    )


def _nodes(trees: Sequence[_Tree], leaves: Sequence[str]) -> Iterator[TreeNode]:
    """Yield the switches of all trees: leaves, those between, and roots."""
    children = {name: found for tree in trees for name, found in tree.children.items()}
    roots = [name for name in children if not any(name in tree.parents for tree in trees)]

    def level(name: str) -> int:
        return 0 if name in leaves else 1 + max(level(child) for child in children[name])

    between = [name for name in children if name not in leaves and name not in roots]
    for name in dict.fromkeys((*leaves, *between, *roots)):
        parents = () if name in roots else tuple(tree.parents.get(name) for tree in trees)
        yield TreeNode(name, parents, tuple(children[name]), level(name))


def _towards(network: Topology, switch: str, other: str) -> str:
    """Return the next switch on a shortest path to another."""
    port = network.port_to(switch, other)
    return network.ports(switch)[port].other_end(switch)[0]
