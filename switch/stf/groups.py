"""Multicast groups and mirroring sessions as simple_switch's command line builds them.

A node has a replication id and ports; groups are made of nodes, which are numbered from 0 in
order of creation. A mirroring session leads to a port or to a group.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.runtime.errors import TableError
from gradplane.switch.switch import Switch


class Groups:
    """Keeps a switch's groups and sessions as the commands have them. Raises TableError."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._nodes: list[list[tuple[int, int]]] = []  # (port, rid) each
        self._groups: dict[int, list[int]] = {}
        self._mirrored: dict[int, int] = {}  # sessions that lead to a group

    def create_group(self, group: int) -> None:
        if group in self._groups:
            raise TableError("ALREADY_EXISTS", f"there is already a multicast group {group}")
        self._groups[group] = []

    def create_node(self, rid: int, ports: Iterable[int]) -> None:
        self._nodes.append([(port, rid) for port in sorted(set(ports))])

    def associate(self, group: int, node: int) -> None:
        if group not in self._groups:
            what = f"there is no multicast group {group}: mc_mgrp_create {group} first"
            raise TableError("NOT_FOUND", what)
        if node >= len(self._nodes):
            known = f"nodes are numbered from 0, {len(self._nodes)} were created"
            raise TableError("NOT_FOUND", f"there is no multicast node {node}; {known}")
        self._groups[group].append(node)
        self._switch.multicast(group, self._members(group))
        for session, target in self._mirrored.items():
            if target == group:
                self._switch.clone_session(session, self._members(group))

    def mirror_to_port(self, session: int, port: int) -> None:
        self._mirrored.pop(session, None)
        self._switch.clone_session(session, [port])

    def mirror_to_group(self, session: int, group: int) -> None:
        self._mirrored[session] = group
        self._switch.clone_session(session, self._members(group))

    def check_session(self, session: int) -> None:
        if session not in self._switch.state.clone_sessions:
            raise TableError("NOT_FOUND", f"there is no mirroring session {session}")

    def _members(self, group: int) -> list[tuple[int, int]]:
        return [member for node in self._groups.get(group, []) for member in self._nodes[node]]
