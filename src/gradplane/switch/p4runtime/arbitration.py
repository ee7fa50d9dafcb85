"""The election of a primary controller for each role, which alone may write. No I/O.

A stream announces (role, election id). The stream whose election id equals the highest one ever
seen for its role is the primary; all others are backups. The highest id outlives the stream that
brought it: after the primary has left, only an id at least as high makes a new one.
    event                                       notified
    first announcement, becomes primary         every stream of the role
    first announcement, stays backup            this stream
    primary announces a lower id (steps down)   every stream of the role
    primary leaves                              every other stream of the role
    backup leaves                               no stream

A role is remembered, with its highest id and its configuration, when its controllers have left.

P4Runtime specification, section "Client Arbitration and Controller Replication".
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass, field

from google.protobuf.any_pb2 import Any

from gradplane._p4runtime import U128, p4r
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import too_many_streams
from gradplane.switch.p4runtime.roles import FULL_ACCESS, RoleConfig
from gradplane.switch.p4runtime.status_errors import RpcError, code_number, invalid

log = logging.getLogger(__name__)

Stream = Hashable
Notice = tuple[Stream, p4r.MasterArbitrationUpdate]


@dataclass(slots=True)
class Client:
    """A live stream that has announced itself."""

    stream: Stream
    role: str
    election_id: int | None


@dataclass(slots=True)
class Role:
    """The state of a role, beyond the streams that have it."""

    message: p4r.Role | None  # as first announced, for the notices; None: the default role
    highest: int | None = None
    primary: Stream | None = None
    config: RoleConfig = FULL_ACCESS
    config_message: Any | None = None


@dataclass(slots=True)
class Arbitration:
    """The streams and roles of one device."""

    device_id: int
    limits: Limits = DEFAULT_LIMITS
    clients: dict[Stream, Client] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)

    def announce(self, stream: Stream, update: p4r.MasterArbitrationUpdate) -> list[Notice]:
        """Handle a stream's MasterArbitrationUpdate and return the notices to send.

        Raises RpcError when the stream is to be ended with that code.
        """
        name = role_name(update.role)
        self._check(stream, update, name)
        config = RoleConfig.parse(update.role.config if update.role.HasField("config") else None)
        election_id = U128.decode(update.election_id) if update.HasField("election_id") else None
        known = self.clients.get(stream)
        self._make_room(name)
        self.clients[stream] = Client(stream, name, election_id)
        role = self.roles.setdefault(name, Role(_role_message(update)))
        was_primary = role.primary == stream and known is not None
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.primary, role.highest, role.config = stream, election_id, config
            role.config_message = update.role.config if update.role.HasField("config") else None
            return self._notices(name)
        if was_primary:
            role.primary = None
            return self._notices(name)
        return [(stream, self._notice(name, stream))]

    def leave(self, stream: Stream) -> list[Notice]:
        """Remove a stream that has ended and return the notices to send.

        Unknown streams are no error.
        """
        client = self.clients.pop(stream, None)
        if client is None:
            return []
        role = self.roles.pop(client.role)
        if role.highest is not None or any(c.role == client.role for c in self.clients.values()):
            self.roles[client.role] = role  # the last one that was left by a controller
        if role.primary != stream:
            return []
        role.primary = None
        return self._notices(client.role)

    def check_primary(self, role: str, election_id: int | None) -> RoleConfig:
        """Return the rights of a role.

        Raises RpcError for a request that is not from its primary.
        """
        rights = self.rights(role)
        primary = self.primary(role)
        if primary is None:
            highest = self.roles[role].highest if role in self.roles else None
            least = "" if highest is None else f" with an election id of {highest} or more"
            raise RpcError(
                "PERMISSION_DENIED",
                f"{_role_text(role)} has no primary controller: open a StreamChannel and send a"
                f" MasterArbitrationUpdate{least} first",
            )
        if primary.election_id != election_id:
            raise RpcError(
                "PERMISSION_DENIED",
                f"election id {election_id if election_id is not None else 'unset'} is not the"
                f" primary's of {_role_text(role)}, which is {primary.election_id}",
            )
        return rights

    def rights(self, role: str) -> RoleConfig:
        """Return what a role may access; raise RpcError for a role that was never announced."""
        if role and role not in self.roles:
            raise RpcError("NOT_FOUND", f'role "{role}" is not known on device {self.device_id}')
        return self.roles[role].config if role in self.roles else FULL_ACCESS

    def primary(self, role: str) -> Client | None:
        known = self.roles.get(role)
        return None if known is None or known.primary is None else self.clients[known.primary]

    def primaries(self) -> list[tuple[Client, RoleConfig]]:
        """Return the primary of each role that has one, with its rights."""
        return [
            (self.clients[role.primary], role.config)
            for role in self.roles.values()
            if role.primary is not None
        ]

    # -- the rules -------------------------------------------------------------------------------

    def _check(self, stream: Stream, update: p4r.MasterArbitrationUpdate, role: str) -> None:
        known = self.clients.get(stream)
        if update.device_id != self.device_id:
            raise RpcError(
                "FAILED_PRECONDITION" if known else "NOT_FOUND",
                f"device id {update.device_id} is not served here, only {self.device_id}",
            )
        if known is None and len(self.clients) >= self.limits.streams:
            raise too_many_streams(self.limits.streams)
        self._check_role(update, role)
        if known is not None and known.role != role:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"this stream has {_role_text(known.role)}; for {_role_text(role)} open another",
            )
        if not update.HasField("election_id"):
            return
        election_id = U128.decode(update.election_id)
        for other in self.clients.values():
            if (other.role, other.election_id) == (role, election_id) and other.stream != stream:
                raise invalid(
                    f"election id {election_id} is already used by another live controller of"
                    f" {_role_text(role)}"
                )

    def _check_role(self, update: p4r.MasterArbitrationUpdate, role: str) -> None:
        name, config = len(role.encode()), update.role.config.ByteSize()
        for what, size, most in (
            ("name", name, self.limits.role_name), ("config", config, self.limits.role_config)
        ):  # fmt: skip
            if size > most:
                text = f"the role's {what} has {size} bytes, the limit is {most}"
                raise RpcError("RESOURCE_EXHAUSTED", f"{text} (--limit role-{what}=N)")
        live = {client.role for client in self.clients.values()}
        if role not in self.roles and len(self.roles.keys() & live) >= self.limits.roles:
            text = f"{self.limits.roles} roles have controllers, the limit (--limit roles=N)"
            raise RpcError("RESOURCE_EXHAUSTED", text)

    def _make_room(self, role: str) -> None:
        """Forget the role that has had no controller for longest, if there are too many.

        The specification has roles remembered until the switch starts anew: their highest election
        id and their configuration. Only the limit forgets one, and one without a primary ever.
        """
        if role in self.roles or len(self.roles) < self.limits.roles:
            return
        live = {client.role for client in self.clients.values()}
        forgotten = next(name for name in self.roles if name not in live)
        del self.roles[forgotten]
        log.info("%s is forgotten: there are %d others", _role_text(forgotten), len(self.roles))

    def _notices(self, role: str) -> list[Notice]:
        """Return a notice for every stream of the role, the primary last."""
        streams = [c.stream for c in self.clients.values() if c.role == role]
        streams.sort(key=lambda s: s == self.roles[role].primary)
        return [(s, self._notice(role, s)) for s in streams]

    def _notice(self, name: str, stream: Stream) -> p4r.MasterArbitrationUpdate:
        role = self.roles[name]
        notice = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        if role.message is not None:
            notice.role.CopyFrom(role.message)
        if role.config_message is not None:
            notice.role.config.CopyFrom(role.config_message)
        if role.highest is not None:
            notice.election_id.CopyFrom(U128.encode(role.highest))
        if role.primary == stream:
            notice.status.code, notice.status.message = code_number("OK"), "is primary"
        elif role.primary is not None:
            notice.status.code = code_number("ALREADY_EXISTS")
            notice.status.message = "another controller is primary"
        else:
            notice.status.code = code_number("NOT_FOUND")
            notice.status.message = "no controller is primary"
        return notice


def role_name(role: p4r.Role) -> str:
    """Return a role's key: its name, or "#id" for older clients' numbered roles.

    "" is the default role.
    """
    return request_role(role.name, role.id)


def request_role(name: str, number: int) -> str:
    """Return the same key from a request's role and role_id fields."""
    return name or (f"#{number}" if number else "")


def _role_message(update: p4r.MasterArbitrationUpdate) -> p4r.Role | None:
    if not update.HasField("role"):
        return None
    return p4r.Role(name=update.role.name, id=update.role.id)


def _role_text(role: str) -> str:
    return f'role "{role}"' if role else "the default role"
