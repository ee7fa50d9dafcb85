"""The BFRuntime service: messages in, messages out. It does no I/O and has no threads.

Clients subscribe on a stream, each under an id of its own. One of them binds to the program. A
client that did not subscribe may read and write too: the requests then name the program, or it is
the only one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from finsy.proto import p4r

from gradplane import _bfruntime as bf
from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.bfruntime.bound_program import BoundProgram, bind, program_name
from gradplane.switch.bfruntime.codec import ALL_PIPES, show_key, show_value
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.bfruntime.tables.idle_times import NOTIFY
from gradplane.switch.bfruntime.tables.warm_init import Restart
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, code_number
from gradplane.switch.runtime.control_messages import Digest, IdleNotice, Message, ReturnedPacket
from gradplane.switch.runtime.entries import Entry

log = logging.getLogger(__name__)

DEVICE_ID = 0
"""The number of the only device."""

_ENTITIES_A_RESPONSE = 256


@dataclass(slots=True, eq=False)
class Client:
    """A subscribed client. `stream`: what its responses are sent to; only its owner knows it."""

    id: int
    stream: object
    notifications: Any
    bound: bool = False


Delivery = tuple[object, Any]
"""A stream, and the response to send there."""


@dataclass(slots=True)
class _Watch:
    """The last report: the idle entries by table, pipe and handle, with the time of their last hit;
    the ports that are down."""

    idle: dict[tuple[str, int, int], tuple[Entry, int]] = field(default_factory=dict)
    down: frozenset[int] = frozenset()


class BfRuntimeService:
    """Serves the device's running program. The caller holds the device's turn."""

    def __init__(
        self, device: Device, ports: object = None, place: Placement | None = None
    ) -> None:
        self.device = device
        self._ports = ports
        self._place = place
        self._clients: dict[int, Client] = {}
        self._program: BoundProgram | None = None
        self._watch = _Watch()
        self._digests: list[Digest] = []
        self._changes: list[Any] = []  # of selectors, to be reported
        self._lists = 0
        self._restart = Restart(
            self._begin_anew, self._run_saved, self._forget_saved,
            lambda: self.program.name, lambda: self.program.schema.facts,
        )  # fmt: skip

    # -- the program ----------------------------------------------------------------------------

    @property
    def program(self) -> BoundProgram:
        """The program under control. Raises RpcError while there is none."""
        pipeline = self.device.target
        if self._program is None or self._program.pipeline is not pipeline:
            self._program = bind(pipeline, self._ports, self._place, self._restart)
            self._watch = _Watch(down=pipeline.state.links.down)
            for selector in self._program.selectors:
                selector.changed = self._member_changed
        return self._program

    def _for_client(self, number: int, name: str, device: int) -> BoundProgram:
        """Return the program that a client may read and write. Raises RpcError."""
        _check_device(device)
        program = self.program
        if name and name != program.name:
            raise _no_program(name, program.name)
        client = self._clients.get(number)
        if client is not None and not client.bound and not name:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"client {number} is bound to no program: bind to {program.name} first"
                " (SetForwardingPipelineConfig, BIND)",
            )
        return program

    @property
    def subscribed(self) -> bool:
        """Whether a client waits for notifications."""
        return bool(self._clients)

    # -- unary requests -------------------------------------------------------------------------

    def write(self, request: Any, metadata: Mapping[str, str]) -> Any:
        """Carry out a write; raises BatchError with an error for each update that failed.

        metadata: "error_in_resp" puts the errors into the response, "ignore_not_found" makes it no
        error to delete an entry that does not exist.
        """
        program = self._for_client(request.client_id, request.p4_name, request.target.device_id)
        with program.pipeline.switch.lock:
            errors = program.requests.write(request)
        response = bf.WriteResponse()
        if metadata.get("ignore_not_found") == "1":
            for i, (error, update) in enumerate(zip(errors, request.updates, strict=True)):
                deleted = update.type == bf.Update.DELETE
                if error is not None and error.code == "NOT_FOUND" and deleted:
                    errors[i] = None
        if metadata.get("error_in_resp") == "1":
            for error in errors:
                response.status.append(error_message(error))
        elif any(errors):
            failed = sum(error is not None for error in errors)
            raise BatchError(f"{failed} of {len(errors)} updates failed: {_first(errors)}", errors)
        return response

    def read(self, request: Any) -> Iterator[Any]:
        """Yield the answers to a read. Raises RpcError after those that could be given."""
        program = self._for_client(request.client_id, request.p4_name, request.target.device_id)
        with program.pipeline.switch.lock:
            response = bf.ReadResponse()
            try:
                for entity in program.requests.read(request):
                    response.entities.append(entity)
                    if len(response.entities) == _ENTITIES_A_RESPONSE:
                        yield response
                        response = bf.ReadResponse()
            except RpcError as error:
                if response.entities:
                    yield response
                raise BatchError(error.message, [error]) from error
        if response.entities:
            yield response

    def get_config(self, request: Any) -> Any:
        """Return the program's bf-rt.json and the device's."""
        _check_device(request.device_id)
        program = self.program
        response = bf.GetForwardingPipelineConfigResponse()
        config = response.config.add(p4_name=program.name, bfruntime_info=program.json())
        facts = program.schema.facts
        for pipeline in facts.pipelines if facts is not None else ():
            config.profiles.add(
                profile_name=pipeline.name,
                binary=program.pipeline.config.p4_device_config,
                pipe_scope=pipeline.pipes,
            )
        response.non_p4_config.bfruntime_info = program.fixed_json()
        return response

    def set_config(self, request: Any) -> tuple[Any, list[Delivery]]:
        """Bind a client, or verify or start a program; return the messages for others."""
        _check_device(request.device_id)
        actions = bf.SetForwardingPipelineConfigRequest
        response = bf.SetForwardingPipelineConfigResponse()
        if request.action == actions.BIND:
            self._bind(request)
            return response, []
        if request.action == actions.RECONCILE_AND_WARM_INIT_END:
            raise RpcError(
                "UNIMPLEMENTED",
                "RECONCILE_AND_WARM_INIT_END is not supported, as by the chip's driver: write the"
                " entries after VERIFY_AND_WARM_INIT_BEGIN, then WARM_INIT_END",
            )
        if request.action == actions.WARM_INIT_END:
            if request.config:
                raise RpcError("INVALID_ARGUMENT", "WARM_INIT_END takes no config")
            self._run_saved()
            return self._announce(response, 1)
        pipeline = self._prepared(request)
        if request.action == actions.VERIFY:
            return response, []
        if request.action == actions.VERIFY_AND_WARM_INIT_BEGIN:
            self.device.saved = pipeline
            return self._announce(response, 0)
        self.device.commit(pipeline)
        started = self._announce(response, 0)[1]
        response, finished = self._announce(response, 1)
        return response, started + finished

    def _begin_anew(self, scopes: PipeScopes) -> None:
        """Make the running program ready to start anew, with its pipelines in these pipes; it is
        the one that is written then."""
        info = self.program.pipeline.catalog.p4info
        several = scopes if len(scopes) > 1 else {}  # a single pipeline is for all pipes
        self.device.saved = self.device.prepare(p4r.ForwardingPipelineConfig(p4info=info), several)

    def _forget_saved(self) -> None:
        self.device.saved = None

    def _run_saved(self) -> None:
        saved = self.device.saved
        if saved is None:
            raise RpcError("INVALID_ARGUMENT", "there was no WARM_INIT_BEGIN")
        self.device.commit(saved)

    def _bind(self, request: Any) -> None:
        client = self._clients.get(request.client_id)
        if client is None:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"client {request.client_id} is unknown: subscribe on a StreamChannel first",
            )
        if len(request.config) != 1:
            raise RpcError("INVALID_ARGUMENT", "BIND takes exactly one config, with a p4_name")
        name, there = request.config[0].p4_name, self.program.name
        if name not in (there, "$SHARED"):
            raise _no_program(name, there)
        owner = next((c for c in self._clients.values() if c.bound and c is not client), None)
        if owner is not None:
            raise RpcError(
                "ALREADY_EXISTS", f"client {owner.id} is bound to {there}: it must leave first"
            )
        client.bound = True

    def _prepared(self, request: Any) -> Pipeline:
        """Compile what a client pushes: a program of ours, or the running one anew."""
        if len(request.config) != 1:
            raise RpcError(
                "INVALID_ARGUMENT",
                f"{len(request.config)} configs given: the device runs one program. Pipes may run"
                " different pipelines of one: put Switch(pipeA, pipeB) at the end of its source,"
                " and give each pipeline a profile with its pipe_scope",
            )
        config = request.config[0]
        scopes = {p.profile_name: list(p.pipe_scope) for p in config.profiles if p.pipe_scope}
        if len(config.profiles) < 2:  # as for `_begin_anew`
            scopes = {}
        pushed = next((p.binary for p in config.profiles if p.binary), b"")
        running = self.program
        if not pushed:
            if config.p4_name not in ("", running.name):
                raise RpcError(
                    "INVALID_ARGUMENT",
                    f"{config.p4_name}: the profile has no binary; push the source that `gradplane"
                    f" p4 config` makes, or name the running program ({running.name})",
                )
            return self.device.prepare(
                p4r.ForwardingPipelineConfig(p4info=running.pipeline.catalog.p4info), scopes
            )
        if not pushed.lstrip().startswith(b"{"):
            _check_same(config, running)
            return self.device.prepare(
                p4r.ForwardingPipelineConfig(p4info=running.pipeline.catalog.p4info), scopes
            )
        pushed_config = p4r.ForwardingPipelineConfig(p4_device_config=pushed)
        pipeline = self.device.prepare(pushed_config, scopes)
        if config.p4_name not in ("", program_name(pipeline)):
            raise _no_program(config.p4_name, program_name(pipeline))
        return pipeline

    def _announce(self, response: Any, kind: int) -> tuple[Any, list[Delivery]]:
        response.set_forwarding_pipeline_config_response_type = kind
        out = bf.StreamMessageResponse()
        out.set_forwarding_pipeline_config_response.CopyFrom(response)
        return response, [(client.stream, out) for client in self._clients.values()]

    # -- streams --------------------------------------------------------------------------------

    def stream_message(self, stream: object, request: Any) -> list[Delivery]:
        """Handle a message of a stream; return the responses."""
        if request.WhichOneof("update") != "subscribe":
            return []  # digests are not kept until they are acknowledged
        response = bf.StreamMessageResponse()
        response.subscribe.CopyFrom(request.subscribe)
        known = self._clients.get(request.client_id)
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
            self._clients[request.client_id] = Client(
                request.client_id, stream, wanted, known is not None and known.bound
            )
        return [(stream, response)]

    def stream_closed(self, stream: object) -> None:
        """Forget the clients of a stream."""
        for client in [c for c in self._clients.values() if c.stream is stream]:
            del self._clients[client.id]

    # -- the packet generator -------------------------------------------------------------------

    def generated(self) -> tuple[list[tuple[int, bytes]], int | None]:
        """Return the generated packets that are due, and when, in ns from now, the next one is.

        None: none is to come. Only tables that clients have written make packets.
        """
        program, generator = self._program, self._generator()
        if program is None or generator is None:
            return [], None
        now = program.pipeline.state.clock()
        found = list(generator.packets(now))
        due = generator.next_due()
        return found, None if due is None else max(due - now, 0)

    # -- notifications --------------------------------------------------------------------------

    def switch_message(self, message: Message) -> list[Delivery]:
        """Take a message of the switch; return what is to be sent at once."""
        if isinstance(message, Digest):
            if not self._requested(message):
                self._digests.append(message)
        elif isinstance(message, ReturnedPacket):
            self._returned(message)
        elif isinstance(message, IdleNotice):
            return self._idle(message)
        return []

    def _generator(self) -> PacketGenerator | None:
        """Return the packet generator of the running program, if clients have used its tables."""
        program = self._program
        if program is None or program.pipeline is not self.device.pipeline:
            return None
        return program.fixed.generator

    def _returned(self, message: ReturnedPacket) -> None:
        program, generator = self._program, self._generator()
        if program is not None and generator is not None:
            now = program.pipeline.state.clock()
            generator.returned(message.port, message.head, now)

    def _requested(self, message: Digest) -> bool:
        """Trigger the packet generator, if the message is a deparser's request for packets."""
        program, generator = self._program, self._generator()
        if program is None or generator is None or message.name not in program.packet_requests:
            return False
        prefix, address, size = message.data
        now = program.pipeline.state.clock()
        generator.requested(prefix.to_bytes(16, "big"), address, size, now)
        return True

    def tick(self) -> list[Delivery]:
        """Return the digests that wait and what has changed since the last time.

        It must be called from time to time.
        """
        if self.device.pipeline is None:
            return []
        program = self.program
        with program.pipeline.switch.lock:
            program.pipeline.state.check_idle()
        out = [*self._digest_lists(program), *self._active_again(program)]
        out += self._port_changes(program)
        changes, self._changes = self._changes, []
        for change in changes:
            out += self._to(change, "enable_selector_update_change_notifications")
        return out

    def _to(self, response: Any, wanted: str, bound: bool = True) -> list[Delivery]:
        return [
            (client.stream, response)
            for client in self._clients.values()
            if getattr(client.notifications, wanted) and (client.bound or not bound)
        ]

    def _digest_lists(self, program: BoundProgram) -> list[Delivery]:
        waiting, self._digests = self._digests, []
        lists: dict[tuple[int, int | None], Any] = {}  # by filter and pipe
        for digest in waiting:
            extern = program.pipeline.catalog.digest_of(digest.name, digest.type)
            found = extern and next(
                (f for f in program.schema.schema.learn_filters if f.id == extern.id), None
            )
            if not found:
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
            out += self._to(response, "enable_learn_notifications")
        return out

    def _idle(self, notice: IdleNotice) -> list[Delivery]:
        program = self.program
        table = program.match_tables.get(notice.table)
        pipe = _pipe_of(program, notice)
        place = (notice.table, pipe, notice.entry.handle)
        if table is None or not table.idle.mode.enabled or table.idle.mode.mode != NOTIFY:
            return []
        out = self._active_again(program)
        if place in self._watch.idle and self._watch.idle[place][0] is notice.entry:
            return out  # reported already
        self._watch.idle[place] = notice.entry, notice.entry.last_hit_ns
        return out + self._aged(program, notice.table, pipe, notice.entry, 1)

    def _active_again(self, program: BoundProgram) -> list[Delivery]:
        out: list[Delivery] = []
        for (name, pipe, handle), (entry, last_hit) in list(self._watch.idle.items()):
            if entry.last_hit_ns != last_hit:
                del self._watch.idle[name, pipe, handle]
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
        return self._to(response, wanted)

    def _port_changes(self, program: BoundProgram) -> list[Delivery]:
        down, before = program.pipeline.state.links.down, self._watch.down
        self._watch.down = down
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
            out += self._to(response, "enable_port_status_change_notifications", bound=False)
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


def error_message(error: RpcError | None) -> Any:
    """Return an update's error as a message."""
    if error is None:
        return bf.Error()
    number = code_number(error.code)
    return bf.Error(canonical_code=number, message=error.message, space="gradplane", code=number)


def _first(errors: list[RpcError | None]) -> str:
    return next(error.message for error in errors if error is not None)


def _check_same(config: Any, running: BoundProgram) -> None:
    """Accept a binary for the chip only if it comes with the running program's name and tables."""
    what = (
        "the binary is not a program for this switch: it runs P4 source, which `gradplane p4"
        " config FILE.p4` makes a binary of"
    )
    if config.p4_name != running.name:
        raise RpcError("INVALID_ARGUMENT", what)
    try:
        there = {t["name"]: t["table_type"] for t in json.loads(config.bfruntime_info)["tables"]}
    except (ValueError, KeyError, TypeError) as error:
        raise RpcError("INVALID_ARGUMENT", f"{what}; its bf-rt.json is wrong: {error}") from error
    missing = [t.name for t in running.schema.schema.tables if there.get(t.name) != t.kind]
    if missing:
        names = ", ".join(missing)
        raise RpcError("INVALID_ARGUMENT", f"{what}; its bf-rt.json lacks what runs: {names}")


def _check_device(number: int) -> None:
    if number != DEVICE_ID:
        raise RpcError("NOT_FOUND", f"there is no device {number}: use {DEVICE_ID}")


def _no_program(name: str, there: str) -> RpcError:
    return RpcError("NOT_FOUND", f"there is no program {name!r}; the switch runs {there}")
