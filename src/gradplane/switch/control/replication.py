"""The kinds of the replication engine: multicast nodes and groups, clone sessions, and their like.

A group has nodes, or replicas of its own, as P4Runtime writes them. Notations that know nodes only
see the latter as a node for each replication id, whose number tells group and id; the node is made
when one of them writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy.typing as npt

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control.journal import Journal
from gradplane.switch.control.kind import Field, Kind, Numbered, Record, Refusal
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.replication_tree import (
    Branch,
    Group,
    Node,
    Part,
    ReplicationTree,
    Session,
)
from gradplane.switch.runtime.state import State

_RIDS = range(1 << 16)
_RID_BITS = 16


class _TreeKind(Numbered):
    """A kind whose objects are in the replication tree. ports: how many the switch has."""

    def __init__(
        self, journal: Journal, tree: ReplicationTree, numbers: range, ports: int,
        capacity: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(journal, numbers, capacity)
        self.tree = tree
        self.ports = range(ports)

    def _check_ports(self, number: int, ports: Iterable[int]) -> None:
        for port in ports:
            if port not in self.ports:
                what = f"port {port} is not within 0 to {self.ports[-1]}"
                raise Refusal("INVALID_ARGUMENT", what, "range", self.name, number, "port", port)

    def _check_distinct(self, number: int, ports: Sequence[int]) -> None:
        for port in ports:
            if ports.count(port) > 1:
                what = f"port {port} is given twice: a node sends one copy through a port"
                raise Refusal("INVALID_ARGUMENT", what, "twice", self.name, number, "port", port)

    def check_replicas(self, number: int, replicas: Iterable[Replica]) -> None:
        """Refuse ports and replication ids that cannot be."""
        for replica in replicas:
            self._check_ports(number, (replica.port,))
            if replica.instance not in _RIDS:
                what = f"egress_rid {replica.instance} is not within 0 to {_RIDS[-1]}"
                raise Refusal("INVALID_ARGUMENT", what, "range", self.name, number,
                              "instance", replica.instance)  # fmt: skip
            self.check_replicas(number, replica.backups)


class Nodes(_TreeKind):
    """Multicast nodes: the numbers are simple_switch's handles and BFRuntime's node ids."""

    name = "multicast node"
    fields = (Field("rid", 0, _RIDS, "egress_rid"), Field("ports", ()), Field("lags", ()))

    def existing(self) -> Iterable[int]:
        """Return the numbers of the nodes, those that stand for replicas of groups last."""
        seen = [
            _number(group, part.instance)
            for group in self.tree.multicast for part in self._parts(group)
            if isinstance(part, Replica)
        ]  # fmt: skip
        return [*self.tree.nodes, *(n for n in dict.fromkeys(seen) if n not in self.tree.nodes)]

    def get(self, number: int) -> Record | None:
        node = self.tree.nodes.get(number)
        if node is None:
            group, rid = number >> _RID_BITS, number & _RIDS[-1]
            there = [p for p in self._parts(group) if _stands_for(p, rid)]
            ports = tuple(p.port for p in there if isinstance(p, Replica))
            return {"rid": rid, "ports": ports, "lags": ()} if ports else None
        return {"rid": node.rid, "ports": node.ports, "lags": node.lags}

    def put(self, number: int, record: Record | None) -> None:
        self.make(number)
        former = self.tree.nodes.get(number)
        node = None if record is None else Node(
            record["rid"], tuple(record["ports"]), tuple(record["lags"])
        )  # fmt: skip
        self.tree.set_node(number, node)

        def step() -> None:
            if self.tree.nodes.get(number) is node:
                self.tree.set_node(number, former)

        self.journal.record(step)

    def check(self, number: int, record: Record) -> None:
        self._check_ports(number, record["ports"])
        self._check_distinct(number, record["ports"])

    def check_unused(self, number: int) -> None:
        users = [("multicast group", n) for n in self.tree.multicast if n in self.direct(number)]
        users += [("ECMP group", n) for n, nodes in self.tree.ecmp.items() if number in nodes]
        if users:
            kind, user = users[0]
            what = f"multicast node {number} is used by {kind} {user}: take it out of there first"
            raise Refusal("FAILED_PRECONDITION", what, "used", self.name, number, kind, user)

    def direct(self, number: int) -> list[int]:
        """Return the groups that a node is in, ECMP groups not counted."""
        found = [
            group for group in self.tree.groups_of(number)
            if any(_is_branch(part, number, False) for part in self._parts(group))
        ]  # fmt: skip
        if number not in self.tree.nodes and self.get(number) is not None:
            found.append(number >> _RID_BITS)
        return found

    def make(self, number: int) -> None:
        """Make a node of the replicas that the number stands for, if it is not one already."""
        there = None if number in self.tree.nodes else self.get(number)
        if there is None:
            return
        group, rid = number >> _RID_BITS, there["rid"]
        parts: list[Part] = []
        for part in self._parts(group):
            if not _stands_for(part, rid):
                parts.append(part)
            elif not any(isinstance(p, Branch) and p.number == number for p in parts):
                assert isinstance(part, Replica)
                parts.append(Branch(number, False, part.exclusion or 0, part.exclusion is not None))
        former = self.tree.group(group)
        self.tree.set_node(number, Node(rid, there["ports"]))
        self.tree.set_group(group, Group(tuple(parts)))

        def step() -> None:
            self.tree.set_group(group, former)
            self.tree.set_node(number, None)

        self.journal.record(step)

    def used(self) -> int:
        return len(self.tree.nodes)

    def free(self) -> int:
        """Return the lowest number that no node has."""
        nodes = self.tree.nodes
        return next(n for n in range(len(nodes) + 1) if n not in nodes)

    def _parts(self, group: int) -> tuple[Part, ...]:
        known = self.tree.group(group)
        return () if known is None else known.parts


class Groups(_TreeKind):
    """Multicast groups. `branches`: their parts as notations see them that know nodes only."""

    name = "multicast group"
    in_pi = "Multicast group"
    fields = (Field("parts", ()), Field("written"))
    passing: ClassVar[Record] = {"written": None}

    def __init__(self, nodes: Nodes, ecmp: EcmpGroups, groups: int) -> None:
        super().__init__(nodes.journal, nodes.tree, range(groups), len(nodes.ports))
        self._nodes, self._ecmp = nodes, ecmp

    def existing(self) -> Iterable[int]:
        return self.tree.multicast

    def get(self, number: int) -> Record | None:
        group = self.tree.group(number)
        return None if group is None else {"parts": group.parts, "written": group.written}

    def put(self, number: int, record: Record | None) -> None:
        if record is not None:
            for part in record["parts"]:
                if isinstance(part, Branch) and not part.ecmp:
                    self._nodes.make(part.number)
        former = self.tree.group(number)
        group = None if record is None else Group(tuple(record["parts"]), record["written"])
        self.tree.set_group(number, group)

        def step() -> None:
            if self.tree.group(number) is group:
                self.tree.set_group(number, former)

        self.journal.record(step)

    def check(self, number: int, record: Record) -> None:
        for part in record["parts"]:
            if isinstance(part, Replica):
                self.check_replicas(number, (part,))
                continue
            kind: Numbered = self._ecmp if part.ecmp else self._nodes
            if not kind.has(part.number):
                what = f"{self.name} {number}: there is no {kind.name} {part.number}"
                raise Refusal("NOT_FOUND", what, "reference", self.name, number,
                              kind.name, part.number)  # fmt: skip

    def replicas(self, number: int) -> list[Replica]:
        """Return the replicas of a group that is there."""
        return self.tree.multicast[number]

    def branches(self, number: int) -> list[Branch]:
        """Return the nodes of a group, with those that stand for replicas."""
        found: dict[tuple[int, bool], Branch] = {}
        for part in self.read(number)["parts"]:
            if isinstance(part, Replica):
                part = Branch(_number(number, part.instance), False, part.exclusion or 0,
                              part.exclusion is not None)  # fmt: skip
            found.setdefault((part.number, part.ecmp), part)
        return list(found.values())


class EcmpGroups(_TreeKind):
    """Groups of nodes of which each packet takes one."""

    name = "ECMP group"
    fields = (Field("nodes", ()),)

    def __init__(self, nodes: Nodes, numbers: range) -> None:
        super().__init__(nodes.journal, nodes.tree, numbers, len(nodes.ports))
        self._nodes = nodes

    def existing(self) -> Iterable[int]:
        return self.tree.ecmp

    def get(self, number: int) -> Record | None:
        nodes = self.tree.ecmp.get(number)
        return None if nodes is None else {"nodes": nodes}

    def put(self, number: int, record: Record | None) -> None:
        former = self.tree.ecmp.get(number)
        for node in record["nodes"] if record is not None else ():
            self._nodes.make(node)
        nodes = None if record is None else tuple(record["nodes"])
        self.tree.set_ecmp(number, nodes)
        self.journal.record(self.tree.set_ecmp, number, former)

    def check(self, number: int, record: Record) -> None:
        for node in record["nodes"]:
            if not self._nodes.has(node):
                what = f"{self.name} {number}: there is no {self._nodes.name} {node}"
                raise Refusal("NOT_FOUND", what, "reference", self.name, number,
                              self._nodes.name, node)  # fmt: skip

    def check_unused(self, number: int) -> None:
        for group in self.tree.multicast:
            known = self.tree.group(group)
            parts = () if known is None else known.parts
            if any(_is_branch(part, number, True) for part in parts):
                what = f"{self.name} {number} is used by multicast group {group}"
                raise Refusal("FAILED_PRECONDITION", f"{what}: take it out of there first", "used",
                              self.name, number, "multicast group", group)  # fmt: skip


class Rows(_TreeKind):
    """Rows that exist from the start, all of them: link groups, exclusion ids, ports.

    A record has what was set, under BFRuntime's names. pruned: the ports that each exclusion id
    leaves out, for packets."""

    fields = ()

    def __init__(
        self, journal: Journal, tree: ReplicationTree, name: str, ports: int,
        pruned: npt.NDArray[Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(journal, tree, range(1 << 16), ports)
        self.row, self.name = name, f"replication row of {name}"
        self._rows = tree.rows[name]
        self._pruned = pruned

    def existing(self) -> Iterable[int]:
        return self._rows

    def get(self, number: int) -> Record | None:
        return self._rows.get(number, {})

    def put(self, number: int, record: Record | None) -> None:
        former = self._rows.get(number)
        self._set(number, record)
        self.journal.record(self._set, number, former)

    def check(self, number: int, record: Record) -> None:
        ports = record.get("$DEV_PORT", [])
        self._check_ports(number, ports)
        self._check_distinct(number, ports)

    def _set(self, number: int, record: Record | None) -> None:
        if record is None:
            self._rows.pop(number, None)
        else:
            self._rows[number] = record
        if self._pruned is not None:
            self._pruned[number] = 0
            self._pruned[number, (record or {}).get("$DEV_PORT", [])] = 1
        self.tree.renew()


class Sessions(_TreeKind):
    """Clone sessions, called mirror sessions on chips."""

    name = "clone session"
    in_pi = "Clone session id"
    fields = (
        Field("replicas", ()), Field("groups", ()), Field("to_cpu", False),
        Field("truncate", 0, range(1 << 31)),
        Field("class_of_service", 0, range(1 << 8), "class of service"),
        Field("enabled", True), Field("settings", {}), Field("written"),
    )  # fmt: skip
    passing: ClassVar[Record] = {"written": None}

    def existing(self) -> Iterable[int]:
        return self.tree.sessions()

    def get(self, number: int) -> Record | None:
        session = self.tree.session(number)
        return None if session is None else {f.name: getattr(session, f.name)
                                             for f in self.fields}  # fmt: skip

    def put(self, number: int, record: Record | None) -> None:
        former = self.tree.session(number)
        session = None if record is None else session_of(record)
        self.tree.set_session(number, session)

        def step() -> None:
            if self.tree.session(number) is session:
                self.tree.set_session(number, former)

        self.journal.record(step)

    def check(self, number: int, record: Record) -> None:
        self.check_replicas(number, record["replicas"])

    def all_replicas(self, number: int) -> list[Replica]:
        """Return all replicas of a session's clones, those of its groups among them."""
        return self.tree.session_replicas(session_of(self.read(number)))

    def set_plain(self, number: int, /, **values: Any) -> None:
        """Insert or modify a session for a notation that knows replicas only: it mirrors to
        nothing else, and is enabled."""
        self.write(number, **{**_PLAIN, **values})


_PLAIN: Record = {"groups": (), "to_cpu": False, "truncate": 0, "class_of_service": 0,
                  "enabled": True}  # fmt: skip


class ReplicationSettings:
    """The settings of the engine as a whole, by name, 0 where none was made."""

    def __init__(self, journal: Journal, state: State) -> None:
        self._journal, self._state = journal, state

    def get(self, name: str, default: int = 0) -> int:
        return self._state.replication.device.get(name, default)

    def put(self, name: str, value: int | None) -> None:
        """Set one, None: as at the start."""
        device = self._state.replication.device
        former = device.get(name)
        self._set(name, value)
        self._journal.record(self._set, name, former)

    def _set(self, name: str, value: int | None) -> None:
        device = self._state.replication.device
        if value is None:
            device.pop(name, None)
        else:
            device[name] = value
        self._state.global_rid = device.get("global_rid") or None
        self._state.replication.renew()


class Replication:
    """The kinds of a switch's replication engine."""

    def __init__(self, journal: Journal, state: State, architecture: Architecture) -> None:
        tree, ports = state.replication, architecture.ports
        chip = architecture.implementation.device(state.program)
        self.tree = tree
        tree.cpu_port = (chip.cpu_port if chip else 0) if state.cpu_port is None else state.cpu_port
        self.nodes = Nodes(journal, tree, range(1 << 32), ports, 1 << 24)
        self.ecmp = EcmpGroups(self.nodes, range(1 << 32))
        self.groups = Groups(self.nodes, self.ecmp, architecture.groups)
        self.lags, self.ports = (Rows(journal, tree, name, ports) for name in ("lag", "port"))
        self.prune = Rows(journal, tree, "prune", ports, state.pruned)
        self.sessions = Sessions(journal, tree, range(architecture.sessions), ports)
        self.settings = ReplicationSettings(journal, state)
        self._journal, self._state = journal, state

    def reset(self) -> None:
        """Remove everything."""
        former = self.dump()

        def step() -> None:
            self._clear()
            self.load(former)

        self._clear()
        self._journal.record(step)

    def _clear(self) -> None:
        self.tree.clear()
        self._state.pruned.fill(0)
        self._state.global_rid = None

    def take_out(self, kind: Kind[int], number: int) -> None:
        """Take a node, or an ECMP group, out of the groups that have it, so that it can be deleted.
        An object of another kind is in no group."""
        if kind is self.nodes:
            self.nodes.make(number)
            for one, nodes in list(self.tree.ecmp.items()):
                if number in nodes:
                    self.ecmp.modify(one, nodes=tuple(n for n in nodes if n != number))
        if kind is self.nodes or kind is self.ecmp:
            for group in list(self.tree.multicast):
                parts = self.groups.read(group)["parts"]
                others = tuple(p for p in parts if not _is_branch(p, number, kind is self.ecmp))
                if len(others) < len(parts):
                    self.groups.modify(group, parts=others)

    # -- as plain records -----------------------------------------------------------------------

    def dump(self) -> Record:
        """Return everything as plain records."""
        tree = self.tree
        return {
            "nodes": {n: _plain(tree.nodes[n]) for n in tree.nodes},
            "ecmp": {n: list(nodes) for n, nodes in tree.ecmp.items()},
            "rows": {name: {n: dict(row) for n, row in rows.items()}
                     for name, rows in tree.rows.items()},
            "settings": dict(tree.device),
            "groups": {n: [_plain(part) for part in record["parts"]]
                       for n, record in self.groups.records()},
            "sessions": {n: _plain(session_of(record)) for n, record in self.sessions.records()},
        }  # fmt: skip

    def load(self, records: Record) -> None:
        """Write what `dump` returned, also by way of JSON. Raises Refusal."""
        for name, value in records["settings"].items():
            self.settings.put(name, value)
        for rows in (self.lags, self.ports, self.prune):
            for number, row in _numbered(records["rows"][rows.row]):
                rows.write(number, **row)
        for number, node in _numbered(records["nodes"]):
            self.nodes.write(number, **node)
        for number, nodes in _numbered(records["ecmp"]):
            self.ecmp.write(number, nodes=nodes)
        for number, parts in _numbered(records["groups"]):
            self.groups.write(number, parts=[_part(part) for part in parts])
        for number, session in _numbered(records["sessions"]):
            replicas = tuple(_part(replica) for replica in session["replicas"])
            groups = tuple(session["groups"])
            self.sessions.write(number, **{**session, "replicas": replicas, "groups": groups})


def _plain(value: Node | Part | Session) -> Record:
    """Return the fields of a record as numbers, texts, lists and mappings."""
    found: Record = {}
    for f in fields(value):
        item = getattr(value, f.name)
        if isinstance(item, tuple):
            found[f.name] = [_plain(one) if isinstance(one, Replica) else one for one in item]
        elif f.name != "written":
            found[f.name] = dict(item) if isinstance(item, Mapping) else item
    return found


def _part(record: Record) -> Any:
    """Return the part of a group, or the replica, that a plain record is of."""
    if "number" in record:
        return Branch(**record)
    return Replica(**{**record, "backups": tuple(map(_part, record["backups"]))})


def _numbered(records: Mapping[Any, Any]) -> Iterator[tuple[int, Any]]:
    """Iterate over records by number; JSON has made texts of the numbers."""
    return ((int(number), record) for number, record in records.items())


def session_of(record: Record) -> Session:
    """Return the session that a record describes."""
    values = {**record, "replicas": tuple(record["replicas"])}
    return Session(**values)


def _number(group: int, rid: int) -> int:
    """Return the number of the node that stands for a group's replicas with a replication id."""
    return group << _RID_BITS | rid


def _is_branch(part: Part, number: int, ecmp: bool) -> bool:
    """Return whether a part of a group is a node or an ECMP group of a number."""
    return isinstance(part, Branch) and (part.number, part.ecmp) == (number, ecmp)


def _stands_for(part: Part, rid: int) -> bool:
    return isinstance(part, Replica) and part.instance == rid
