"""What clients are told without asking: digests, idle and active entries, ports, selectors."""

from __future__ import annotations

from typing import Any

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.bound_program import BoundProgram
from gradplane.switch.bfruntime.clients import Clients, Delivery
from gradplane.switch.bfruntime.codec import ALL_PIPES, show_key, show_value
from gradplane.switch.bfruntime.identifiers import TableId, table_id
from gradplane.switch.bfruntime.tables.idle_times import NOTIFY
from gradplane.switch.runtime.control_messages import Digest, IdleNotice
from gradplane.switch.runtime.entries import Entry


class Notifications:
    """Makes the notifications about a program for the clients that want them.

    It keeps the last report: the idle entries by table, pipe and handle, with the time of their
    last hit; the ports that are down."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._idle: dict[tuple[str, int, int], tuple[Entry, int]] = {}
        self._down: frozenset[int] = frozenset()
        self._digests: list[Digest] = []
        self._lists = 0
        self._changes: list[Any] = []  # of selectors, to be reported

    def start(self, program: BoundProgram) -> None:
        """Begin to report on a program."""
        self._idle = {}
        self._down = program.pipeline.state.links.down
        for selector in program.selectors:
            selector.changed = self._member_changed

    def keep(self, digest: Digest) -> None:
        """Keep a digest for the next call of `due`."""
        self._digests.append(digest)

    def idle(self, program: BoundProgram, notice: IdleNotice) -> list[Delivery]:
        """Return the notifications about an entry that was not hit for long."""
        table = program.match_tables.get(notice.table)
        pipe = _pipe_of(program, notice)
        place = (notice.table, pipe, notice.entry.handle)
        if table is None or not table.idle.mode.enabled or table.idle.mode.mode != NOTIFY:
            return []
        out = self._active_again(program)
        if place in self._idle and self._idle[place][0] is notice.entry:
            return out  # reported already
        self._idle[place] = notice.entry, notice.entry.last_hit_ns
        return out + self._aged(program, notice.table, pipe, notice.entry, 1)

    def due(self, program: BoundProgram) -> list[Delivery]:
        """Return the digests that wait and what has changed since the last time."""
        out = [*self._digest_lists(program), *self._active_again(program)]
        out += self._port_changes(program)
        changes, self._changes = self._changes, []
        for change in changes:
            out += self._clients.to(change, "enable_selector_update_change_notifications")
        return out

    def _digest_lists(self, program: BoundProgram) -> list[Delivery]:
        waiting, self._digests = self._digests, []
        lists: dict[tuple[int, int | None], Any] = {}  # by filter and pipe
        for digest in waiting:
            extern = program.pipeline.catalog.digest_of(digest.name, digest.type)
            if extern is None:
                continue
            number = table_id(TableId.DIGEST, extern.id)
            found = next((f for f in program.schema.schema.learn_filters if f.id == number), None)
            if found is None:
                continue
            place = found.id, digest.pipe
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
        for response in lists.values():
            out += self._clients.to(response, "enable_learn_notifications")
        return out

    def _active_again(self, program: BoundProgram) -> list[Delivery]:
        out: list[Delivery] = []
        for (name, pipe, handle), (entry, last_hit) in list(self._idle.items()):
            if entry.last_hit_ns != last_hit:
                del self._idle[name, pipe, handle]
                out += self._aged(program, name, pipe, entry, 0)
        return out

    def _aged(
        self, program: BoundProgram, name: str, pipe: int, entry: Entry, kind: int
    ) -> list[Delivery]:
        table = program.match_tables[name]
        response = bf.StreamMessageResponse()
        notice = response.idle_timeout_notification
        notice.target.pipe_id, notice.type = pipe, kind
        notice.table_entry.table_id = table.schema.id
        show_key(table.schema, table.key(entry), notice.table_entry.key)
        wanted = "enable_idletimeout_notifications" if kind else "enable_entry_active_notifications"
        return self._clients.to(response, wanted)

    def _port_changes(self, program: BoundProgram) -> list[Delivery]:
        down, before = program.pipeline.state.links.down, self._down
        self._down = down
        out: list[Delivery] = []
        ports = program.fixed.ports
        if program.fixed.generator is not None:
            for port in sorted(down - before):
                program.fixed.generator.link_down(port, program.pipeline.state.clock())
        for port in sorted(down ^ before) if ports.notifies else ():
            response = bf.StreamMessageResponse()
            notice = response.port_status_change_notification
            notice.table_entry.table_id, notice.port_up = ports.schema.id, port not in down
            show_key(ports.schema, {"$DEV_PORT": (port,)}, notice.table_entry.key)
            out += self._clients.to(
                response, "enable_port_status_change_notifications", bound=False
            )
        return out

    def _member_changed(self, group: int, member: int, place: int, added: bool) -> None:
        response = bf.StreamMessageResponse()
        change = response.selector_update_change_notification
        change.sel_group_id, change.act_member_id = group, member
        change.logical_entry_index, change.is_add = place, added
        self._changes.append(response)


def _pipe_of(program: BoundProgram, notice: IdleNotice) -> int:
    """Return the first pipe whose table has an idle entry; ALL_PIPES if all share the table."""
    scopes = program.pipeline.state.scopes
    groups = scopes.groups(notice.table)
    if len(groups) == 1:
        return ALL_PIPES
    holders = (pipes[0] for pipes in groups)
    return next(p for p in holders if scopes.pipes[p].tables[notice.table] is notice.holder)
