"""PacketReplicationEngineEntry: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

from gradplane._p4runtime import p4r
from gradplane.switch.control.kind import Numbered, Refusal
from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.entry_rules import GROUPS, SESSIONS
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.replicas import Replica


def write_replication(p: Pipeline, kind: int, message: p4r.PacketReplicationEngineEntry) -> None:
    match message.WhichOneof("type"):
        case "multicast_group_entry":
            _write_group(p, kind, message.multicast_group_entry)
        case "clone_session_entry":
            _write_session(p, kind, message.clone_session_entry)
        case _:
            raise _neither()


def read_replication(
    p: Pipeline, query: p4r.PacketReplicationEngineEntry
) -> Iterator[p4r.PacketReplicationEngineEntry]:
    match query.WhichOneof("type"):
        case "multicast_group_entry":
            wanted = query.multicast_group_entry.multicast_group_id
            for number in _chosen(p.store.replication.groups.existing(), wanted):
                entry = _show_group(p, number)
                yield p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        case "clone_session_entry":
            for number in _chosen(_sessions(p), query.clone_session_entry.session_id):
                session = _show_session(p, number)
                yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)
        case _:
            raise _neither()


# -- multicast groups ----------------------------------------------------------------------------


def _write_group(p: Pipeline, kind: int, message: p4r.MulticastGroupEntry) -> None:
    number, groups = message.multicast_group_id, p.store.replication.groups
    if number not in groups.numbers[1:]:
        code = "OUT_OF_RANGE" if number else "INVALID_ARGUMENT"  # as in PI
        raise _outside(groups, number, code)
    if kind == p4r.Update.DELETE:
        p.rules.check_builtin_unused(GROUPS, number)
    if not _is_written(groups, kind, number):
        return
    parts = _read_replicas(p, f"multicast group {number}", message.replicas)
    groups.write(number, parts=parts, written=copy(message))


def _show_group(p: Pipeline, number: int) -> p4r.MulticastGroupEntry:
    """Return the group as it was written, unless another interface changed it since."""
    groups = p.store.replication.groups
    written = groups.read(number)["written"]
    if written is not None:
        return written  # type: ignore[no-any-return]
    return p4r.MulticastGroupEntry(
        multicast_group_id=number, replicas=[_show_replica(p, r) for r in groups.replicas(number)]
    )


# -- clone sessions ------------------------------------------------------------------------------


def _write_session(p: Pipeline, kind: int, message: p4r.CloneSessionEntry) -> None:
    number, sessions = message.session_id, p.store.replication.sessions
    if number not in sessions.numbers[0 if p.whole else 1 :]:
        raise _outside(sessions, number, "INVALID_ARGUMENT")
    if kind == p4r.Update.DELETE:
        p.rules.check_builtin_unused(SESSIONS, number)
    # Session 0 may be one that the architecture has.
    if (number or kind == p4r.Update.DELETE) and not _is_written(sessions, kind, number):
        return
    what = f"clone session {number}"
    length, service = message.packet_length_bytes, message.class_of_service
    if length < 0:
        raise invalid(f"{what}: packet_length_bytes {length} is below 0")
    replicas = _read_replicas(p, what, message.replicas)
    try:
        sessions.set_plain(number, replicas=replicas, truncate=length, class_of_service=service,
                           written=copy(message))  # fmt: skip
    except Refusal as error:
        if error.field != "class_of_service":
            raise
        text = f"{what}: class_of_service {service} is beyond 8 bits"
        raise invalid(text) from error


def _sessions(p: Pipeline) -> Iterator[int]:
    """Yield the sessions' numbers: session 0, which no controller can write, only for the switch
    itself, and only if commands changed it from what the architecture has."""
    given = p.switch.architecture.clone_sessions
    for number in p.store.replication.sessions.existing():
        if number or (p.whole and p.state.clone_sessions[0] != given.get(0)):
            yield number


def _show_session(p: Pipeline, number: int) -> p4r.CloneSessionEntry:
    """Return the session as it was written, unless another interface changed it since."""
    sessions = p.store.replication.sessions
    session = sessions.read(number)
    if session["written"] is not None:
        return session["written"]  # type: ignore[no-any-return]
    return p4r.CloneSessionEntry(
        session_id=number,
        replicas=[_show_replica(p, r) for r in sessions.all_replicas(number)],
        class_of_service=session["class_of_service"],
        packet_length_bytes=session["truncate"],
    )


# -- shared by all ------------------------------------------------------------------------------
def _read_replicas(p: Pipeline, what: str, messages: Iterable[p4r.Replica]) -> list[Replica]:
    replicas = [_read_replica(p, what, message) for message in messages]
    seen: set[tuple[int, int]] = set()
    for replica in replicas:
        if any(backup.port == replica.port for backup in replica.backups):
            raise invalid(f"{what}: port {replica.port} is its own backup; name another port")
        for one in (replica, *replica.backups):
            if (one.port, one.instance) in seen:
                raise invalid(f"{what}: port {one.port}, instance {one.instance} is given twice")
            seen.add((one.port, one.instance))
    return replicas


def _read_replica(p: Pipeline, what: str, message: p4r.Replica) -> Replica:
    backups = [
        Replica(_port(p, what, backup.port), _instance(what, backup.instance))
        for backup in message.backup_replicas
    ]
    match message.WhichOneof("port_kind"):
        case "port":
            port = _port(p, what, message.port)
        case "egress_port":
            port = from_bytes(
                to_bytes(message.egress_port, 32), p.port_bits, f"{what}: replica port"
            )
        case _:
            raise invalid(f"{what}: a replica has no port")
    return Replica(port, _instance(what, message.instance), tuple(backups))


def _port(p: Pipeline, what: str, data: bytes) -> int:
    return p.read_port(data, f"{what}: replica port")


def _instance(what: str, number: int) -> int:
    if number >> 16:
        raise invalid(f"{what}: replica instance {number} is not within 0 to 65535")
    return number


def _show_replica(p: Pipeline, replica: Replica) -> p4r.Replica:
    shown = p4r.Replica(port=p.show_port(replica.port), instance=replica.instance)
    for backup in replica.backups:
        shown.backup_replicas.add(port=p.show_port(backup.port), instance=backup.instance)
    return shown


def _is_written(objects: Numbered, kind: int, number: int) -> bool:
    """Delete an object, or return that it is to be written, if it may be."""
    if kind == p4r.Update.DELETE:
        objects.delete(number)
        return False
    if kind == p4r.Update.INSERT:
        objects.need_absent(number)
    else:
        objects.read(number)
    return True


def _outside(objects: Numbered, number: int, code: str) -> RpcError:
    what = f"{objects.name} {number}: its id is not within 1 to {objects.numbers[-1]}"
    return RpcError(code, what)


def _chosen(there: Iterable[int], number: int) -> list[int]:
    """Return `number` if it exists, or all numbers for 0."""
    return [n for n in there if number in (0, n)]


def _neither() -> RpcError:
    return invalid(
        "packet replication engine: neither a multicast group nor a clone session is given"
    )
