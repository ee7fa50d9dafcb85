"""Commands on multicast groups and mirroring (clone) sessions."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.commands import dumps
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.commands.command_values import natural
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.replication_tree import Branch, Part

# -- multicast groups and their nodes ------------------------------------------------------------


@command("GROUP")
def mc_mgrp_create(target: CommandTarget, group: str) -> None:
    """Create a multicast group, empty at first."""
    number, groups = _group(group), target.switch.store.replication.groups
    if number not in groups.numbers[1:]:
        what = f"multicast group {number} is not within 1 to {groups.numbers[-1]}"
        raise TableError("INVALID_ARGUMENT", what)
    if not groups.has(number):  # one that exists stays as it is, as in simple_switch
        groups.insert(number)


@command("GROUP")
def mc_mgrp_destroy(target: CommandTarget, group: str) -> None:
    """Delete a multicast group."""
    target.switch.store.replication.groups.delete(_known_group(target, group))


@command("RID PORT...")
def mc_node_create(target: CommandTarget, rid: str, *ports: str) -> str:
    """Create a node: replicas through these ports, with this egress_rid."""
    number, wanted = natural(rid, "rid"), _ports(ports)
    target.switch.replicas((port, number) for port in wanted)  # refuses invalid ports
    nodes = target.switch.store.replication.nodes
    handle = nodes.free()
    nodes.insert(handle, rid=number, ports=sorted(wanted))
    return f"node was created with handle {handle}"


@command("NODE PORT...")
def mc_node_update(target: CommandTarget, node: str, *ports: str) -> None:
    """Give a node other ports."""
    wanted = _ports(ports)
    target.switch.replicas(wanted)
    number, replication = _known_node(target, node), target.switch.store.replication
    with target.switch.store.batch():
        replication.nodes.modify(number, ports=sorted(wanted))
        for group in replication.nodes.direct(number):  # its replicas become the last
            branch = next(b for b in replication.groups.branches(group) if b.number == number)
            replication.groups.modify(group, parts=[*_others(target, group, number), branch])


@command("GROUP NODE")
def mc_node_associate(target: CommandTarget, group: str, node: str) -> None:
    """Add a node to a group."""
    into, number = _known_group(target, group), _known_node(target, node)
    replication = target.switch.store.replication
    for there in replication.nodes.direct(number):
        what = f"multicast node {number} is in group {there}: dissociate it first"
        raise TableError("FAILED_PRECONDITION", what)
    parts = replication.groups.read(into)["parts"]
    replication.groups.modify(into, parts=[*parts, Branch(number)])


@command("GROUP NODE")
def mc_node_dissociate(target: CommandTarget, group: str, node: str) -> None:
    """Remove a node from its group."""
    out_of, number = _known_group(target, group), _known_node(target, node)
    replication = target.switch.store.replication
    if out_of not in replication.nodes.direct(number):
        what = f"multicast node {number} is not in group {out_of}"
        raise TableError("NOT_FOUND", what)
    replication.groups.modify(out_of, parts=_others(target, out_of, number))


@command("NODE")
def mc_node_destroy(target: CommandTarget, node: str) -> None:
    """Delete a node and remove it from its group."""
    number, replication = _known_node(target, node), target.switch.store.replication
    with target.switch.store.batch():
        for group in replication.nodes.direct(number):
            replication.groups.modify(group, parts=_others(target, group, number))
        replication.nodes.delete(number)


@command()
def mc_dump(target: CommandTarget) -> str:
    """Print the multicast groups, their nodes, and replicas that a controller gave them."""
    lines = [dumps.LINE, "MC ENTRIES"]
    replication = target.switch.store.replication
    for group in sorted(replication.groups.existing()):
        lines += [dumps.STARS, f"mgrp({group})"]
        parts = replication.groups.read(group)["parts"]
        inside = {p.number for p in parts if isinstance(p, Branch) and not p.ecmp}
        for handle in (n for n in replication.tree.nodes if n in inside):
            node = replication.nodes.read(handle)
            names = f"L1h={handle}, rid={node['rid']}"
            lines.append(_member(names, node["ports"], node["lags"]))
        rest = replication.tree.replicas(p for p in parts if isinstance(p, Replica) or p.ecmp)
        for rid in sorted({replica.instance for replica in rest}):
            of_rid = [replica for replica in rest if replica.instance == rid]
            lines.append(_member(f"rid={rid}", [replica.port for replica in of_rid]))
            lines += [_backups(replica) for replica in of_rid if replica.backups]
    return "\n".join([*lines, dumps.LINE, "LAGS", dumps.LINE])


# -- mirroring sessions --------------------------------------------------------------------------


@command("SESSION PORT")
def mirroring_add(target: CommandTarget, session: str, port: str) -> None:
    """Send clones of a session through a port."""
    target.switch.clone_session(_session(session), [natural(port, "port")])


@command("SESSION GROUP")
def mirroring_add_mc(target: CommandTarget, session: str, group: str) -> None:
    """Send clones of a session to the ports of a multicast group."""
    number, sessions = _session(session), target.switch.store.replication.sessions
    if number not in sessions.numbers:
        raise CommandError(f"clone session {number} is not within 0 to {sessions.numbers[-1]}")
    sessions.write(number, replicas=(), to_cpu=False, enabled=True, groups=(_group(group),))


@command("SESSION PORT BYTES")
def mirroring_add_truncate(target: CommandTarget, session: str, port: str, size: str) -> None:
    """Send clones of a session through a port, truncated to this many bytes."""
    ports = [natural(port, "port")]
    target.switch.clone_session(_session(session), ports, truncate=natural(size, "bytes"))


@command("SESSION")
def mirroring_delete(target: CommandTarget, session: str) -> None:
    """Delete a session: its clones are no longer made."""
    number = _session(session)
    _need_session(target, number)
    target.switch.store.replication.sessions.delete(number)


@command("SESSION")
def mirroring_get(target: CommandTarget, session: str) -> str:
    """Print the destination of a session's clones."""
    number = _session(session)
    _need_session(target, number)
    sessions = target.switch.store.replication.sessions
    session_there = sessions.read(number)
    if session_there["groups"] and not session_there["replicas"]:
        return f"MirroringSessionConfig(mgid={session_there['groups'][0]}, port=None)"
    ports = [replica.port for replica in sessions.all_replicas(number)]
    shown = ports[0] if len(ports) == 1 else ports
    return f"MirroringSessionConfig(mgid=None, port={shown})"


# -- shared by all ------------------------------------------------------------------------------


def _need_session(target: CommandTarget, session: int) -> None:
    known = list(target.switch.store.replication.sessions.existing())
    if session not in known:
        there = ", ".join(map(str, sorted(known))) or "none"
        what = f"there is no mirroring session {session}; sessions: {there}"
        raise TableError("NOT_FOUND", what)


def _member(names: str, ports: Sequence[int], lags: Sequence[int] = ()) -> str:
    shown = f"ports=[{', '.join(map(str, ports))}], lags=[{', '.join(map(str, lags))}]"
    return f"  -> ({names}) -> ({shown})"


def _backups(replica: Replica) -> str:
    backups = ", ".join(f"{backup.port} (rid={backup.instance})" for backup in replica.backups)
    return f"     backups of port {replica.port}: {backups}"


def _group(word: str) -> int:
    return natural(word, "multicast group")


def _known_group(target: CommandTarget, word: str) -> int:
    number = _group(word)
    if not target.switch.store.replication.groups.has(number):
        what = f"there is no multicast group {number}: mc_mgrp_create {number} first"
        raise TableError("NOT_FOUND", what)
    return number


def _known_node(target: CommandTarget, word: str) -> int:
    number, nodes = natural(word, "node's handle"), target.switch.store.replication.nodes
    if number not in nodes.tree.nodes:
        known = ", ".join(map(str, nodes.tree.nodes)) or "none"
        raise TableError("NOT_FOUND", f"there is no multicast node {number}; nodes: {known}")
    return number


def _others(target: CommandTarget, group: int, node: int) -> list[Part]:
    """Return the parts of a group but one of its nodes."""
    parts = target.switch.store.replication.groups.read(group)["parts"]
    return [p for p in parts if not (isinstance(p, Branch) and not p.ecmp and p.number == node)]


def _session(word: str) -> int:
    return natural(word, "session")


def _ports(words: Sequence[str]) -> list[int]:
    if "|" in words:
        ports, lags = words[: words.index("|")], words[words.index("|") + 1 :]
        if lags:
            raise CommandError(f"lags ({' '.join(lags)}) are not supported: name their ports")
        words = ports
    return [natural(word, "port") for word in words]
