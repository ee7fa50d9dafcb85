"""Commands on multicast groups and mirroring (clone) sessions."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.commands import dumps
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.commands.command_values import natural
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.replicas import Replica

# -- multicast groups and their nodes ------------------------------------------------------------


@command("GROUP")
def mc_mgrp_create(target: CommandTarget, group: str) -> None:
    """Create a multicast group, empty at first."""
    target.switch.state.nodes.create_group(_group(group))


@command("GROUP")
def mc_mgrp_destroy(target: CommandTarget, group: str) -> None:
    """Delete a multicast group."""
    target.switch.state.nodes.destroy_group(_group(group))


@command("RID PORT...")
def mc_node_create(target: CommandTarget, rid: str, *ports: str) -> str:
    """Create a node: replicas through these ports, with this egress_rid."""
    number, wanted = natural(rid, "rid"), _ports(ports)
    target.switch.replicas((port, number) for port in wanted)  # refuses invalid ports
    return f"node was created with handle {target.switch.state.nodes.create(number, wanted)}"


@command("NODE PORT...")
def mc_node_update(target: CommandTarget, node: str, *ports: str) -> None:
    """Give a node other ports."""
    wanted = _ports(ports)
    target.switch.replicas(wanted)
    target.switch.state.nodes.update(_node(node), wanted)


@command("GROUP NODE")
def mc_node_associate(target: CommandTarget, group: str, node: str) -> None:
    """Add a node to a group."""
    target.switch.state.nodes.associate(_group(group), _node(node))


@command("GROUP NODE")
def mc_node_dissociate(target: CommandTarget, group: str, node: str) -> None:
    """Remove a node from its group."""
    target.switch.state.nodes.dissociate(_group(group), _node(node))


@command("NODE")
def mc_node_destroy(target: CommandTarget, node: str) -> None:
    """Delete a node and remove it from its group."""
    target.switch.state.nodes.destroy(_node(node))


@command()
def mc_dump(target: CommandTarget) -> str:
    """Print the multicast groups, their nodes, and replicas that a controller gave them."""
    lines = [dumps.LINE, "MC ENTRIES"]
    for group in sorted(target.switch.state.multicast):
        lines += [dumps.STARS, f"mgrp({group})"]
        nodes, rest = target.switch.state.nodes.members(group)
        lines += [_member(f"L1h={handle}, rid={node.rid}", node.ports) for handle, node in nodes]
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
    number, state = _session(session), target.switch.state
    most = target.switch.clone_sessions - 1
    if number > most:
        raise CommandError(f"clone session {number} is not within 0 to {most}")
    state.nodes.mirror_to_group(number, _group(group))


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
    del target.switch.state.clone_sessions[number]


@command("SESSION")
def mirroring_get(target: CommandTarget, session: str) -> str:
    """Print the destination of a session's clones."""
    number = _session(session)
    _need_session(target, number)
    group = target.switch.state.nodes.mirrored(number)
    if group is not None:
        return f"MirroringSessionConfig(mgid={group}, port=None)"
    ports = [replica.port for replica in target.switch.state.clone_sessions[number].replicas]
    shown = ports[0] if len(ports) == 1 else ports
    return f"MirroringSessionConfig(mgid=None, port={shown})"


# -- shared by all ------------------------------------------------------------------------------


def _need_session(target: CommandTarget, session: int) -> None:
    known = target.switch.state.clone_sessions
    if session not in known:
        there = ", ".join(map(str, sorted(known))) or "none"
        what = f"there is no mirroring session {session}; sessions: {there}"
        raise TableError("NOT_FOUND", what)


def _member(names: str, ports: Sequence[int]) -> str:
    return f"  -> ({names}) -> (ports=[{', '.join(map(str, ports))}], lags=[])"


def _backups(replica: Replica) -> str:
    backups = ", ".join(f"{backup.port} (rid={backup.instance})" for backup in replica.backups)
    return f"     backups of port {replica.port}: {backups}"


def _group(word: str) -> int:
    return natural(word, "multicast group")


def _node(word: str) -> int:
    return natural(word, "node's handle")


def _session(word: str) -> int:
    return natural(word, "session")


def _ports(words: Sequence[str]) -> list[int]:
    if "|" in words:
        ports, lags = words[: words.index("|")], words[words.index("|") + 1 :]
        if lags:
            raise CommandError(f"lags ({' '.join(lags)}) are not supported: name their ports")
        words = ports
    return [natural(word, "port") for word in words]
