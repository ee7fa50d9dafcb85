"""The replication tree: nodes, the groups made of them, and the sessions of clones.

It is the memory of what control planes set. What packets use follows from it: a group's and a
session's replicas (`State.multicast`, `State.clone_sessions`). Where those were set directly they
count, as if they had been set without nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.runtime.replicas import CloneSession, Replica


@dataclass(frozen=True, slots=True)
class Node:
    """Replicas with one replication id: one through each port and each link group (lag)."""

    rid: int
    ports: tuple[int, ...] = ()
    lags: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a group, or an ECMP group, which stands for one of its nodes.

    exclusion: the id of packets that leave it out, which holds where it is `valid`."""

    number: int
    ecmp: bool = False
    exclusion: int = 0
    valid: bool = False


Part = Branch | Replica
"""A group has nodes, and replicas that are of no node."""


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group. written: the message of a notation that shows it as it was written."""

    parts: tuple[Part, ...] = ()
    written: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Session:
    """The clones of a session: to replicas, to all of some multicast groups, to the CPU port.

    settings: what clients of BFRuntime set and packets do not see, by its names there. written: as
    in Group.
    """

    replicas: tuple[Replica, ...] = ()
    groups: tuple[int, ...] = ()
    to_cpu: bool = False
    truncate: int = 0
    class_of_service: int = 0
    enabled: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    written: Any = field(default=None, compare=False)


class ReplicationTree:
    """The tree, from which it makes the replicas in `multicast` and `clone_sessions`.

    rows: link groups ("lag"), what level 2 exclusion ids leave out ("prune"), ports ("port"), as
    BFRuntime names their fields. device: the settings of the engine as a whole. cpu_port: of
    sessions that have clones there.
    """

    def __init__(
        self,
        multicast: MutableMapping[int, list[Replica]],
        clone_sessions: MutableMapping[int, CloneSession],
    ) -> None:
        self.multicast = multicast
        self.clone_sessions = clone_sessions
        self.nodes: dict[int, Node] = {}
        self.ecmp: dict[int, tuple[int, ...]] = {}
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"lag": {}, "prune": {}, "port": {}}
        self.device: dict[str, int] = {}
        self.cpu_port = 0
        self._groups: dict[int, Group] = {}
        self._sessions: dict[int, tuple[Session, CloneSession | None]] = {}

    # -- groups ---------------------------------------------------------------------------------

    def group(self, number: int) -> Group | None:
        """Return a group; None if there is none."""
        replicas, known = self.multicast.get(number), self._groups.get(number)
        if replicas is None or (known is not None and self.replicas(known.parts) == replicas):
            return None if replicas is None else known
        return Group(tuple(replicas))

    def set_group(self, number: int, group: Group | None) -> None:
        """Set a group, None: remove it; sessions that mirror to it follow."""
        if group is None:
            self._groups.pop(number, None)
            self.multicast.pop(number, None)
        else:
            self._groups[number] = group
            self.multicast[number] = self.replicas(group.parts)
        self.group_changed(number)

    def group_changed(self, number: int) -> None:
        """Make the replicas of the sessions that mirror to a group anew."""
        for session, (known, _) in list(self._sessions.items()):
            if number in known.groups and self.session(session) is known:
                self.set_session(session, known)

    def renew(self, numbers: Iterable[int] | None = None) -> None:
        """Make the replicas of groups anew, without numbers of all that have nodes."""
        for number in list(self._groups if numbers is None else numbers):
            known = self._groups.get(number)
            if known is not None and number in self.multicast:
                replicas = self.replicas(known.parts)
                if self.multicast[number] != replicas:
                    self.multicast[number] = replicas
                    self.group_changed(number)

    def groups_of(self, node: int) -> list[int]:
        """Return the groups that a node is in, by itself or in an ECMP group."""
        ecmp = {number for number, nodes in self.ecmp.items() if node in nodes}
        return [
            number for number, known in self._groups.items()
            if any(
                isinstance(part, Branch)
                and (part.number in ecmp if part.ecmp else part.number == node)
                for part in known.parts
            )
        ]  # fmt: skip

    def replicas(self, parts: Iterable[Part]) -> list[Replica]:
        """Return the replicas of a group's parts, in order."""
        found: list[Replica] = []
        for part in parts:
            if isinstance(part, Replica):
                found.append(part)
                continue
            number = self._member(part)
            if number in self.nodes:
                exclusion = part.exclusion if part.valid else None
                found += self._of_node(self.nodes[number], exclusion)
        return found

    def _member(self, branch: Branch) -> int | None:
        if not branch.ecmp:
            return branch.number
        return next(iter(self.ecmp.get(branch.number, ())), None)

    def _of_node(self, node: Node, exclusion: int | None) -> list[Replica]:
        ports = list(node.ports)
        for lag in node.lags:
            ports += self.rows["lag"].get(lag, {}).get("$DEV_PORT", [])[:1]
        return [Replica(p, node.rid, self._backups(p, node.rid), exclusion) for p in ports]

    def _backups(self, port: int, rid: int) -> tuple[Replica, ...]:
        if not self.device.get("fast_failover"):
            return ()
        backup = self.rows["port"].get(port, {}).get("$MULTICAST_BACKUP_PORT")
        return () if backup is None else (Replica(backup, rid),)

    # -- nodes ----------------------------------------------------------------------------------

    def set_node(self, number: int, node: Node | None) -> None:
        """Set a node, None: remove it; the groups that it is in follow."""
        new = number not in self.nodes  # and in no group
        if node is None:
            self.nodes.pop(number, None)
        else:
            self.nodes[number] = node
        if not new:
            self.renew(self.groups_of(number))

    def set_ecmp(self, number: int, nodes: tuple[int, ...] | None) -> None:
        """Set an ECMP group, None: remove it; the groups that it is in follow."""
        if nodes is None:
            self.ecmp.pop(number, None)
        else:
            self.ecmp[number] = nodes
        self.renew()

    # -- sessions -------------------------------------------------------------------------------

    def sessions(self) -> Iterator[int]:
        """Iterate over the numbers of the sessions that there are."""
        yield from (n for n in list(self._sessions) if self.session(n) is not None)
        yield from (n for n in list(self.clone_sessions) if n not in self._sessions)

    def session(self, number: int) -> Session | None:
        """Return a session; None if there is none."""
        acts, (known, made) = self.clone_sessions.get(number), self._sessions.get(number, _NONE)
        if known is not None and acts is made:
            return known
        if acts is None:
            return None
        return Session(
            tuple(acts.replicas), truncate=acts.truncate, class_of_service=acts.class_of_service
        )

    def set_session(self, number: int, session: Session | None) -> None:
        """Set a session, None: remove it. One that is not enabled makes no clones."""
        made = None
        if session is not None and session.enabled:
            replicas = self.session_replicas(session)
            made = CloneSession(replicas, session.truncate, session.class_of_service)
        if made is None:
            self.clone_sessions.pop(number, None)
        else:
            self.clone_sessions[number] = made
        if session is None:
            self._sessions.pop(number, None)
        else:
            self._sessions[number] = session, made

    def session_replicas(self, session: Session) -> list[Replica]:
        """Return all replicas of a session's clones."""
        found = list(session.replicas)
        for group in session.groups:
            found += self.multicast.get(group, [])
        return [*found, Replica(self.cpu_port)] if session.to_cpu else found

    def clear(self) -> None:
        """Remove everything."""
        memory: list[MutableMapping[Any, Any]] = [
            self.nodes, self.ecmp, self._groups, self._sessions, self.device, self.multicast,
            self.clone_sessions, *self.rows.values(),
        ]  # fmt: skip
        for items in memory:
            items.clear()


_NONE: tuple[None, None] = (None, None)
