"""Multicast groups made of nodes, and mirroring sessions, as in simple_switch's commands.

A node has a replication id and ports; it is in at most one group. The groups themselves are those
of the switch's state, which P4Runtime writes too: a node adds its replicas to a group or removes
them; the other replicas stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, replace

from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.replicas import GROUPS, CloneSession, Replica


@dataclass(slots=True)
class Node:
    """Replicas through `ports`, all with one replication id. `group`: the one that it is in."""

    rid: int
    ports: tuple[int, ...]
    group: int | None = None

    @property
    def replicas(self) -> list[Replica]:
        return [Replica(port, self.rid) for port in self.ports]


class MulticastNodes:
    """The nodes by handle, which is the lowest free number; raises TableError.

    followers: called with the number of a group that has changed."""

    def __init__(
        self,
        groups: MutableMapping[int, list[Replica]],
        sessions: MutableMapping[int, CloneSession],
    ) -> None:
        self.nodes: dict[int, Node] = {}
        self._groups = groups
        self._sessions = sessions
        # Sessions that mirror to a group, and the replicas last made of it.
        self._mirrored: dict[int, tuple[int, CloneSession]] = {}
        self.followers: list[Callable[[int], None]] = []

    # -- nodes ----------------------------------------------------------------------------------

    def create(self, rid: int, ports: Iterable[int]) -> int:
        """Create a node that is in no group; return its handle."""
        handle = next(n for n in range(len(self.nodes) + 1) if n not in self.nodes)
        self.nodes[handle] = Node(rid, _ports(ports))
        return handle

    def update(self, handle: int, ports: Iterable[int]) -> None:
        """Set a node's ports."""
        node, wanted = self._node(handle), _ports(ports)
        group = node.group
        self._leave(node)
        node.ports = wanted
        if group is not None:
            self._join(node, group)

    def destroy(self, handle: int) -> None:
        self._leave(self._node(handle))
        del self.nodes[handle]

    def associate(self, group: int, handle: int) -> None:
        """Put a node into a group."""
        self._need_group(group)
        node = self._node(handle)
        if node.group is not None:
            what = f"multicast node {handle} is in group {node.group}: dissociate it first"
            raise TableError("FAILED_PRECONDITION", what)
        self._join(node, group)

    def dissociate(self, group: int, handle: int) -> None:
        """Take a node out of its group."""
        self._need_group(group)
        node = self._node(handle)
        if node.group != group:
            what = f"multicast node {handle} is not in group {group}"
            raise TableError("NOT_FOUND", what)
        self._leave(node)

    # -- groups ---------------------------------------------------------------------------------

    def create_group(self, group: int) -> None:
        """Create an empty group; one that exists stays as it is, as in simple_switch."""
        if not 0 < group < GROUPS:
            what = f"multicast group {group} is not within 1 to {GROUPS - 1}"
            raise TableError("INVALID_ARGUMENT", what)
        if group not in self._groups:
            self._groups[group] = []

    def destroy_group(self, group: int) -> None:
        """Remove a group; its nodes are in none then."""
        self._need_group(group)
        for node in self.nodes.values():
            if node.group == group:
                node.group = None
        del self._groups[group]
        self.group_changed(group)

    def members(self, group: int) -> tuple[list[tuple[int, Node]], list[Replica]]:
        """Return a group's nodes with their handles, and the replicas that are of no node."""
        rest = list(self._groups[group])
        there: list[tuple[int, Node]] = []
        for handle, node in self.nodes.items():
            if node.group == group and all(replica in rest for replica in node.replicas):
                there.append((handle, node))
                for replica in node.replicas:
                    rest.remove(replica)
        return there, rest

    def group_changed(self, group: int) -> None:
        """Update the sessions that mirror to a group; to be called when it was written."""
        for session, target in list(self._live_mirrors()):
            if target == group:
                self._mirror(session, group)
        for follow in self.followers:
            follow(group)

    def clear(self) -> None:
        """Remove all nodes, groups and sessions."""
        self.nodes.clear()
        self._groups.clear()
        self._sessions.clear()

    def _join(self, node: Node, group: int) -> None:
        node.group = group
        self._groups[group] = [*self._groups.get(group, []), *node.replicas]
        self.group_changed(group)

    def _leave(self, node: Node) -> None:
        group, node.group = node.group, None
        if group is None or group not in self._groups:
            return
        left = list(self._groups[group])
        for replica in node.replicas:
            if replica in left:
                left.remove(replica)
        self._groups[group] = left
        self.group_changed(group)

    def _node(self, handle: int) -> Node:
        if handle not in self.nodes:
            known = ", ".join(map(str, self.nodes)) or "none"
            what = f"there is no multicast node {handle}; nodes: {known}"
            raise TableError("NOT_FOUND", what)
        return self.nodes[handle]

    def _need_group(self, group: int) -> None:
        if group not in self._groups:
            what = f"there is no multicast group {group}: mc_mgrp_create {group} first"
            raise TableError("NOT_FOUND", what)

    # -- mirroring sessions ---------------------------------------------------------------------

    def mirror_to_group(self, session: int, group: int) -> None:
        """Mirror a session to a group's ports, also to those that it gets later."""
        self._mirror(session, group)

    def mirrored(self, session: int) -> int | None:
        """Return the group that a session mirrors to; None for one that mirrors to ports."""
        return dict(self._live_mirrors()).get(session)

    def _mirror(self, session: int, group: int) -> None:
        former = self._sessions.get(session, CloneSession([]))
        now = replace(former, replicas=list(self._groups.get(group, [])))
        self._sessions[session] = now
        self._mirrored[session] = group, now

    def _live_mirrors(self) -> Iterator[tuple[int, int]]:
        """Return the sessions that still mirror to a group, and their groups."""
        for session, (group, made) in self._mirrored.items():
            if self._sessions.get(session) is made:
                yield session, group


def _ports(ports: Iterable[int]) -> tuple[int, ...]:
    wanted = list(ports)
    for port in wanted:
        if wanted.count(port) > 1:
            what = f"port {port} is given twice: a node sends one copy through a port"
            raise TableError("INVALID_ARGUMENT", what)
    return tuple(sorted(wanted))
