"""The subscribed clients, and what they are told without asking: digests, idle and active entries,
ports, selectors. Each client has an id of its own on a stream; one is bound to each program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.bound_program import BoundDevice
from gradplane.switch.bfruntime.codec import ALL_PIPES, show_key, show_value
from gradplane.switch.bfruntime.schema import LearnFilter
from gradplane.switch.bfruntime.tables.match_table import NOTIFY
from gradplane.switch.control.names import TableId, table_id
from gradplane.switch.p4runtime.status_errors import RpcError, code_number
from gradplane.switch.runtime.control_messages import Digest, IdleNotice
from gradplane.switch.runtime.entries import Entry

DEVICE_ID = 0
"""The number of the only device."""

Delivery = tuple[object, Any]
"""A stream, and the response to send there."""


@dataclass(slots=True, eq=False)
class Client:
    """A subscribed client. `stream`: what its responses are sent to; only its owner knows it.
    bound: the name of its program, None without."""

    id: int
    stream: object
    notifications: Any
    bound: str | None = None


class Clients:
    """The clients by their ids."""

    def __init__(self) -> None:
        self._known: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, number: int) -> Client | None:
        return self._known.get(number)

    def subscribe(self, stream: object, request: Any) -> Delivery:
        """Subscribe the client of a message, or change its subscription; return the response."""
        response = bf.StreamMessageResponse()
        response.subscribe.CopyFrom(request.subscribe)
        known = self._known.get(request.client_id)
        status = response.subscribe.status
        if request.subscribe.device_id != DEVICE_ID:
            status.code = code_number("NOT_FOUND")
            status.message = f"there is no device {request.subscribe.device_id}: use {DEVICE_ID}"
        elif known is not None and known.stream is not stream:
            status.code = code_number("ALREADY_EXISTS")
            status.message = f"another client has the id {request.client_id}: choose another"
        else:
            status.SetInParent()
            wanted = request.subscribe.notifications
            self._known[request.client_id] = Client(
                request.client_id, stream, wanted, None if known is None else known.bound
            )
        return stream, response

    def known(self, number: int) -> Client:
        """Return a client. Raises RpcError for one that did not subscribe."""
        client = self._known.get(number)
        if client is None:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"client {number} is unknown: subscribe on a StreamChannel first",
            )
        return client

    def bind(self, client: Client, program: str) -> None:
        """Bind a client to a program. Raises RpcError while another one is bound to it."""
        bound = (c for c in self._known.values() if c.bound == program and c is not client)
        owner = next(bound, None)
        if owner is not None:
            raise RpcError(
                "ALREADY_EXISTS", f"client {owner.id} is bound to {program}: it must leave first"
            )
        client.bound = program

    def follow(self, programs: Sequence[str]) -> None:
        """Bind the client of a program that another one has replaced to that, if it is the only
        one."""
        bound = [client for client in self._known.values() if client.bound is not None]
        if len(programs) == len(bound) == 1:
            bound[0].bound = programs[0]

    def on(self, stream: object) -> bool:
        """Return whether a client has subscribed on a stream."""
        return any(client.stream is stream for client in self._known.values())

    def close(self, stream: object) -> None:
        """Forget the clients of a stream."""
        for client in [c for c in self._known.values() if c.stream is stream]:
            del self._known[client.id]

    def to_all(self, response: Any) -> list[Delivery]:
        """Return a response for each client."""
        return [(client.stream, response) for client in self._known.values()]

    def to(self, response: Any, wanted: str, program: str | None = None) -> list[Delivery]:
        """Return a response for the clients that asked for such: that of a program, or all."""
        return [
            (client.stream, response)
            for client in self._known.values()
            if getattr(client.notifications, wanted) and program in (None, client.bound)
        ]


def check_device(number: int) -> None:
    """Raise RpcError for any other device."""
    if number != DEVICE_ID:
        raise RpcError("NOT_FOUND", f"there is no device {number}: use {DEVICE_ID}")


# -- what they are told ---------------------------------------------------------------------------


class Notifications:
    """Makes the notifications about a device's programs for the clients that want them.

    It keeps the last report: the idle entries by table, pipe and handle, with the time of their
    last hit; the ports that are down."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._idle: dict[tuple[str, int, int], tuple[Entry, int]] = {}
        self._down: frozenset[int] = frozenset()
        self._digests: list[Digest] = []
        self._lists = 0
        self._changes: list[tuple[str, Any]] = []  # of a program's selectors, to be reported

    def start(self, device: BoundDevice) -> None:
        """Begin to report on a device's programs."""
        self._idle = {}
        self._down = device.pipeline.state.links.down
        for program in device.programs.values():
            for selector in program.selectors:
                selector.changed = partial(self._member_changed, program.name)

    def keep(self, digest: Digest) -> None:
        """Keep a digest for the next call of `due`."""
        self._digests.append(digest)

    def idle(self, device: BoundDevice, notice: IdleNotice) -> list[Delivery]:
        """Return the notifications about an entry that was not hit for long."""
        program = device.program_of(notice.table)
        pipe = _pipe_of(device, notice)
        place = (notice.table, pipe, notice.entry.handle)
        mode = None if program is None else program.match_tables[notice.table].idle.mode
        if mode is None or not mode.enabled or mode.mode != NOTIFY:
            return []
        out = self._active_again(device)
        if place in self._idle and self._idle[place][0] is notice.entry:
            return out  # reported already
        self._idle[place] = notice.entry, notice.entry.last_hit_ns
        return out + self._aged(device, notice.table, pipe, notice.entry, 1)

    def due(self, device: BoundDevice) -> list[Delivery]:
        """Return the digests that wait and what has changed since the last time."""
        out = [*self._digest_lists(device), *self._active_again(device)]
        out += self._port_changes(device)
        changes, self._changes = self._changes, []
        for program, change in changes:
            out += self._clients.to(change, "enable_selector_update_change_notifications", program)
        return out

    def _digest_lists(self, device: BoundDevice) -> list[Delivery]:
        waiting, self._digests = self._digests, []
        lists: dict[tuple[str, int, int | None], Any] = {}  # by program, filter and pipe
        for digest in waiting:
            program, found = _filter_of(device, digest)
            if found is None:
                continue
            place = program, found.id, digest.pipe
            if place not in lists:
                self._lists += 1
                response = lists[place] = bf.StreamMessageResponse()
                response.digest.digest_id, response.digest.list_id = found.id, self._lists
                pipe = ALL_PIPES if digest.pipe is None else digest.pipe
                response.digest.target.pipe_id = pipe
            data = lists[place].digest.data.add()
            values = digest.data if isinstance(digest.data, list) else [digest.data]
            for f, value in zip(found.fields, values, strict=True):
                show_value(f, value, data.fields.add())
        out: list[Delivery] = []
        for (program, *_), response in lists.items():
            out += self._clients.to(response, "enable_learn_notifications", program)
        return out

    def _active_again(self, device: BoundDevice) -> list[Delivery]:
        out: list[Delivery] = []
        for (name, pipe, handle), (entry, last_hit) in list(self._idle.items()):
            if entry.last_hit_ns != last_hit:
                del self._idle[name, pipe, handle]
                out += self._aged(device, name, pipe, entry, 0)
        return out

    def _aged(
        self, device: BoundDevice, name: str, pipe: int, entry: Entry, kind: int
    ) -> list[Delivery]:
        program = device.program_of(name)
        assert program is not None, name
        table = program.match_tables[name]
        response = bf.StreamMessageResponse()
        notice = response.idle_timeout_notification
        notice.target.pipe_id, notice.type = pipe, kind
        notice.table_entry.table_id = table.schema.id
        show_key(table.schema, table.key(entry), notice.table_entry.key)
        wanted = "enable_idletimeout_notifications" if kind else "enable_entry_active_notifications"
        return self._clients.to(response, wanted, program.name)

    def _port_changes(self, device: BoundDevice) -> list[Delivery]:
        down, before = device.pipeline.state.links.down, self._down
        self._down = down
        out: list[Delivery] = []
        ports = device.fixed.ports
        if device.fixed.generator is not None:
            for port in sorted(down - before):
                device.fixed.generator.link_down(port, device.pipeline.state.clock())
        for port in sorted(down ^ before) if ports.notifies else ():
            response = bf.StreamMessageResponse()
            notice = response.port_status_change_notification
            notice.table_entry.table_id, notice.port_up = ports.schema.id, port not in down
            show_key(ports.schema, {"$DEV_PORT": (port,)}, notice.table_entry.key)
            out += self._clients.to(response, "enable_port_status_change_notifications")
        return out

    def _member_changed(
        self, program: str, group: int, member: int, place: int, added: bool
    ) -> None:
        response = bf.StreamMessageResponse()
        change = response.selector_update_change_notification
        change.sel_group_id, change.act_member_id = group, member
        change.logical_entry_index, change.is_add = place, added
        self._changes.append((program, response))


def _filter_of(device: BoundDevice, digest: Digest) -> tuple[str, LearnFilter | None]:
    """Return the program that sends a digest, and the digest as its clients know it."""
    for program in device.programs.values():
        extern = program.schema.catalog.digest_of(digest.name, digest.type)
        if extern is not None and (len(device.programs) < 2 or extern.name == digest.name):
            number = table_id(TableId.DIGEST, extern.id)
            filters = program.schema.schema.learn_filters
            return program.name, next((f for f in filters if f.id == number), None)
    return "", None


def _pipe_of(device: BoundDevice, notice: IdleNotice) -> int:
    """Return the first pipe whose table has an idle entry; ALL_PIPES if all share the table."""
    scopes = device.pipeline.state.scopes
    groups = scopes.groups(notice.table)
    if len(groups) == 1:
        return ALL_PIPES
    holders = (pipes[0] for pipes in groups)
    return next(p for p in holders if scopes.pipes[p].tables[notice.table] is notice.holder)
