"""PacketReplicationEngineEntry: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import TypeVar

from finsy.proto import p4r
from google.protobuf.message import Message

from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.pipeline import Pipeline, Undo
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.replicas import CloneSession, Replica

_Message = TypeVar("_Message", bound=Message)
_Kept = TypeVar("_Kept")

_ID_BITS = 16  # of replica instances
_SERVICES = 256  # classes of service


def write_replication(p: Pipeline, kind: int, message: p4r.PacketReplicationEngineEntry) -> Undo:
    match message.WhichOneof("type"):
        case "multicast_group_entry":
            return _write_group(p, kind, message.multicast_group_entry)
        case "clone_session_entry":
            return _write_session(p, kind, message.clone_session_entry)
    raise _neither()


def read_replication(
    p: Pipeline, query: p4r.PacketReplicationEngineEntry
) -> Iterator[p4r.PacketReplicationEngineEntry]:
    match query.WhichOneof("type"):
        case "multicast_group_entry":
            for number in _chosen(
                p.state.multicast, query.multicast_group_entry.multicast_group_id
            ):
                entry = _show_group(p, number)
                yield p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        case "clone_session_entry":
            for number in _chosen(_sessions(p), query.clone_session_entry.session_id):
                session = _show_session(p, number)
                yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)
        case _:
            raise _neither()


# -- multicast groups ----------------------------------------------------------------------------


def _write_group(p: Pipeline, kind: int, message: p4r.MulticastGroupEntry) -> Undo:
    number = message.multicast_group_id
    what, ids = f"multicast group {number}", range(1, p.switch.architecture.groups)

    def read() -> list[Replica]:
        return _read_replicas(p, what, message.replicas)

    undo = _write(kind, what, number, ids, (p.state.multicast, read), (p.groups, message))
    p.state.nodes.group_changed(number)

    def undo_all() -> None:
        undo()
        p.state.nodes.group_changed(number)

    return undo_all


def _write(
    kind: int,
    what: str,
    number: int,
    ids: range,
    state: tuple[dict[int, _Kept], Callable[[], _Kept]],
    written: tuple[dict[int, _Message], _Message],
) -> Undo:
    """Insert, modify or delete a group or session: in the switch's state, with a function that
    reads it from the message, and among the messages as they were written."""
    (there, read), (messages, message) = state, written
    if number not in ids:
        group_too_high = number and isinstance(message, p4r.MulticastGroupEntry)
        code = "OUT_OF_RANGE" if group_too_high else "INVALID_ARGUMENT"  # as in PI
        raise RpcError(code, f"{what}: its id is not within 1 to {ids[-1]}")
    if number:  # session 0 may be one that the architecture has
        _check_presence(kind, what, number in there)
    former, former_message = there.get(number), messages.get(number)
    if kind == p4r.Update.DELETE:
        del there[number]
        messages.pop(number, None)
    else:
        there[number] = read()
        messages[number] = _copy(message)

    def undo() -> None:
        _put(there, number, former)
        _put(messages, number, former_message)

    return undo


def _show_group(p: Pipeline, number: int) -> p4r.MulticastGroupEntry:
    """Return the group as it was written, unless commands or Python changed it since."""
    replicas, written = p.state.multicast[number], p.groups.get(number)
    if written is not None and _read_replicas(p, "", written.replicas) == replicas:
        return written
    return p4r.MulticastGroupEntry(
        multicast_group_id=number, replicas=[_show_replica(p, r) for r in replicas]
    )


# -- clone sessions ------------------------------------------------------------------------------


def _write_session(p: Pipeline, kind: int, message: p4r.CloneSessionEntry) -> Undo:
    number = message.session_id
    what = f"clone session {number}"
    ids = range(0 if p.whole else 1, p.switch.architecture.sessions)

    def read() -> CloneSession:
        return _read_session(p, what, message)

    return _write(kind, what, number, ids, (p.state.clone_sessions, read), (p.sessions, message))


def _sessions(p: Pipeline) -> Iterator[int]:
    """Yield the sessions' numbers: session 0, which no controller can write, only for the switch
    itself, and only if commands changed it from what the architecture has."""
    given = p.switch.architecture.clone_sessions
    for number, session in p.state.clone_sessions.items():
        if number or (p.whole and session != given.get(0)):
            yield number


def _read_session(p: Pipeline, what: str, message: p4r.CloneSessionEntry) -> CloneSession:
    length, service = message.packet_length_bytes, message.class_of_service
    if length < 0:
        raise RpcError("INVALID_ARGUMENT", f"{what}: packet_length_bytes {length} is below 0")
    if not 0 <= service < _SERVICES:
        raise RpcError("INVALID_ARGUMENT", f"{what}: class_of_service {service} is beyond 8 bits")
    return CloneSession(_read_replicas(p, what, message.replicas), length, service)


def _show_session(p: Pipeline, number: int) -> p4r.CloneSessionEntry:
    session, written = p.state.clone_sessions[number], p.sessions.get(number)
    if written is not None and _read_session(p, "", written) == session:
        return written
    return p4r.CloneSessionEntry(
        session_id=number,
        replicas=[_show_replica(p, r) for r in session.replicas],
        class_of_service=session.class_of_service,
        packet_length_bytes=session.truncate,
    )


# -- shared by all ------------------------------------------------------------------------------


def _read_replicas(p: Pipeline, what: str, messages: Iterable[p4r.Replica]) -> list[Replica]:
    replicas = [_read_replica(p, what, message) for message in messages]
    seen: set[tuple[int, int]] = set()
    for replica in replicas:
        if any(backup.port == replica.port for backup in replica.backups):
            raise RpcError(
                "INVALID_ARGUMENT",
                f"{what}: port {replica.port} is its own backup; name another port",
            )
        for one in (replica, *replica.backups):
            if (one.port, one.instance) in seen:
                raise RpcError(
                    "INVALID_ARGUMENT",
                    f"{what}: port {one.port}, instance {one.instance} is given twice",
                )
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
            port = _port(p, what, to_bytes(message.egress_port, 32))
        case _:
            raise RpcError("INVALID_ARGUMENT", f"{what}: a replica has no port")
    return Replica(port, _instance(what, message.instance), tuple(backups))


def _port(p: Pipeline, what: str, data: bytes) -> int:
    return from_bytes(data, p.port_bits, f"{what}: replica port")


def _instance(what: str, number: int) -> int:
    if number >> _ID_BITS:
        raise RpcError(
            "INVALID_ARGUMENT", f"{what}: replica instance {number} is not within 0 to 65535"
        )
    return number


def _show_replica(p: Pipeline, replica: Replica) -> p4r.Replica:
    shown = p4r.Replica(port=to_bytes(replica.port, p.port_bits), instance=replica.instance)
    for backup in replica.backups:
        port = to_bytes(backup.port, p.port_bits)
        shown.backup_replicas.add(port=port, instance=backup.instance)
    return shown


def _check_presence(kind: int, what: str, present: bool) -> None:
    in_pi = "Multicast group" if what.startswith("multicast") else "Clone session id"
    if kind == p4r.Update.INSERT and present:
        raise RpcError("ALREADY_EXISTS", f"{what} exists", f"{in_pi} already exists")
    if kind != p4r.Update.INSERT and not present:
        raise RpcError("NOT_FOUND", f"{what} does not exist", f"{in_pi} does not exist")


def _chosen(there: Iterable[int], number: int) -> list[int]:
    """Return `number` if it exists, or all numbers for 0."""
    return [n for n in there if number in (0, n)]


def _copy(message: _Message) -> _Message:
    """Return a copy, since a message of a request is part of the request."""
    copied: _Message = copy(message)
    return copied


def _put(there: dict[int, _Kept], number: int, former: _Kept | None) -> None:
    if former is None:
        there.pop(number, None)
    else:
        there[number] = former


def _neither() -> RpcError:
    return RpcError(
        "INVALID_ARGUMENT",
        "packet replication engine: neither a multicast group nor a clone session is given",
    )
