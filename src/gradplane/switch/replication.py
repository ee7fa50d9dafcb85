"""Multicast groups and clone sessions, within the limits of an architecture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control_handles import ReplicaSpec
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import State


class Replication:
    """Sets the groups and sessions of a state; callers hold the switch's lock.

    The methods raise SwitchError for what is not within the architecture's limits."""

    def __init__(self, architecture: Architecture, state: State) -> None:
        self._architecture, self._state = architecture, state

    def set_group(self, group: int, ports: Iterable[ReplicaSpec]) -> None:
        """Set a multicast group's ports; without ports, delete the group."""
        most = self._architecture.groups - 1
        if not 0 < group <= most:
            raise SwitchError(f"multicast group {group} is not within 1 to {most}")
        _set(self._state.multicast, group, self.replicas(ports))
        self._state.nodes.group_changed(group)

    def set_session(
        self, session: int, ports: Iterable[ReplicaSpec], truncate: int, class_of_service: int
    ) -> None:
        """Set a clone session; without ports, delete it."""
        most = self._architecture.sessions - 1
        if not 0 <= session <= most:
            raise SwitchError(f"clone session {session} is not within 0 to {most}")
        if not 0 <= truncate < 1 << 31:
            raise SwitchError(f"clone session {session}: truncate {truncate} is not within 31 bits")
        if not 0 <= class_of_service < 1 << 8:
            what = f"class of service {class_of_service} is not within 0 to 255"
            raise SwitchError(f"clone session {session}: {what}")
        replicas = self.replicas(ports)
        whole = CloneSession(replicas, truncate, class_of_service) if replicas else None
        _set(self._state.clone_sessions, session, whole)

    def replicas(self, ports: Iterable[ReplicaSpec]) -> list[Replica]:
        """Make replicas through ports."""
        return [
            self._replica(*port) if isinstance(port, tuple) else self._replica(port)
            for port in ports
        ]

    def _replica(
        self, port: int, instance: int = 0, backups: Iterable[ReplicaSpec] = ()
    ) -> Replica:
        self._architecture.check_port(port)
        if not 0 <= instance < 1 << 16:
            raise SwitchError(f"egress_rid {instance} is not within 0 to 65535")
        return Replica(port, instance, tuple(self.replicas(backups)))


def _set(groups: dict[int, Any], id: int, value: Any) -> None:
    if value:
        groups[id] = value
    else:
        groups.pop(id, None)
