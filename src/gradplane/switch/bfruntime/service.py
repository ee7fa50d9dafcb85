"""The BFRuntime service: messages in, messages out. It does no I/O and has no threads.

Clients subscribe on a stream, each under an id of its own. One of them binds to the program. A
client that did not subscribe may read and write too: the requests then name the program, or it is
the only one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any

from finsy.proto import p4r

from gradplane import _bfruntime as bf
from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.bfruntime.bound_program import BoundProgram, bind, program_name
from gradplane.switch.bfruntime.clients import Clients, Delivery, Notifications, check_device
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.requests import is_error
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.bfruntime.tables.warm_init import Restart
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, code_number
from gradplane.switch.runtime.control_messages import Digest, IdleNotice, Message, ReturnedPacket

_ENTITIES_A_RESPONSE = 256
_SHARED = "$SHARED"
"""The name that clients bind to for the device's tables."""


class BfRuntimeService:
    """Serves the device's running program. The caller holds the device's turn."""

    def __init__(
        self, device: Device, ports: object = None, place: Placement | None = None
    ) -> None:
        self.device = device
        self._ports = ports
        self._place = place
        self._clients = Clients()
        self._notifications = Notifications(self._clients)
        self._program: BoundProgram | None = None
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
            self._notifications.start(self._program)
        return self._program

    def _for_client(self, number: int, name: str, device: int) -> BoundProgram:
        """Return the program that a client may read and write. Raises RpcError."""
        check_device(device)
        program = self.program
        if name and name != program.name:
            raise no_program(name, program.name)
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
        return len(self._clients) > 0

    def is_bound(self, head: Any) -> bool:
        """Return whether the start of a request names a bound client: it may send a large one."""
        client = self._clients.get(head.client_id)
        return client is not None and client.bound

    def has_client(self, stream: object) -> bool:
        """Return whether a client has subscribed on a stream."""
        return self._clients.on(stream)

    # -- unary requests -------------------------------------------------------------------------

    def write(self, request: Any, metadata: Mapping[str, str]) -> Any:
        """Carry out a write; raises BatchError with an error for each update that failed.

        metadata: "error_in_resp" puts the errors into the response, "ignore_not_found" makes it no
        error to delete an entry that does not exist.
        """
        program = self._for_client(request.client_id, request.p4_name, request.target.device_id)
        ignored = metadata.get("ignore_not_found") == "1"
        with ExitStack() as held:

            def pause() -> None:
                held.close()
                if self.device.pause() and self.program is not program:
                    what = "not applied: another program was loaded while the request was served"
                    raise RpcError("ABORTED", what)
                held.enter_context(program.pipeline.switch.lock)

            held.enter_context(program.pipeline.switch.lock)
            errors = program.requests.write(request, ignored, pause)
        response = bf.WriteResponse()
        every = metadata.get("error_in_resp") == "1"
        if not every:
            _check(errors, len(request.updates), "updates")
        for error in errors:
            if every or error is not None:
                response.status.append(error_message(error))
        return response

    def read(self, request: Any, metadata: Mapping[str, str]) -> Iterator[Any]:
        """Yield the answers to a read of all that can be read; then raise BatchError with an error
        for each entity that cannot. metadata: "error_in_resp" puts the errors into the last
        response."""
        program = self._for_client(request.client_id, request.p4_name, request.target.device_id)
        errors: list[RpcError | None] = []
        found = program.requests.read(request, errors)
        while True:
            with program.pipeline.switch.lock:
                entities = list(islice(found, _ENTITIES_A_RESPONSE))
            if len(entities) < _ENTITIES_A_RESPONSE:
                break
            yield bf.ReadResponse(entities=entities)
        response = bf.ReadResponse(entities=entities)
        if metadata.get("error_in_resp") == "1":
            response.status.extend(error_message(error) for error in errors)
        if response.entities or response.status:
            yield response
        if not response.status:
            _check(errors, len(errors), "entities" if len(errors) > 1 else "")

    def get_config(self, request: Any) -> Any:
        """Return the program's bf-rt.json and the device's."""
        check_device(request.device_id)
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
        check_device(request.device_id)
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
        pipeline = prepared(self.device, self.program, request.config)
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
        """Make the running program ready to start anew; it is the one that is written then."""
        several = scopes if len(scopes) > 1 else {}  # a single pipeline is for all pipes
        self.device.saved = anew(self.device, self.program, several)

    def _forget_saved(self) -> None:
        self.device.saved = None

    def _run_saved(self) -> None:
        saved = self.device.saved
        if saved is None:
            raise RpcError("INVALID_ARGUMENT", "there was no WARM_INIT_BEGIN")
        self.device.commit(saved)

    def _bind(self, request: Any) -> None:
        client = self._clients.known(request.client_id)
        if len(request.config) != 1:
            raise RpcError("INVALID_ARGUMENT", "BIND takes exactly one config, with a p4_name")
        name, there = request.config[0].p4_name, self.program.name
        if name not in (there, _SHARED):
            raise no_program(name, there)
        self._clients.bind(client, there)

    def _announce(self, response: Any, kind: int) -> tuple[Any, list[Delivery]]:
        response.set_forwarding_pipeline_config_response_type = kind
        out = bf.StreamMessageResponse()
        out.set_forwarding_pipeline_config_response.CopyFrom(response)
        return response, self._clients.to_all(out)

    # -- streams --------------------------------------------------------------------------------

    def stream_message(self, stream: object, request: Any) -> list[Delivery]:
        """Handle a message of a stream; return the responses."""
        if request.WhichOneof("update") != "subscribe":
            return []  # digests are not kept until they are acknowledged
        return [self._clients.subscribe(stream, request)]

    def stream_closed(self, stream: object) -> None:
        """Forget the clients of a stream."""
        self._clients.close(stream)

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
                self._notifications.keep(message)
        elif isinstance(message, ReturnedPacket):
            self._returned(message)
        elif isinstance(message, IdleNotice):
            return self._notifications.idle(self.program, message)
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
        return self._notifications.due(program)


def error_message(error: RpcError | None) -> Any:
    """Return an update's error as a message."""
    if error is None:
        return bf.Error()
    number = code_number(error.code)
    canonical = number if is_error(error) else 0
    return bf.Error(canonical_code=canonical, message=error.message, space="gradplane", code=number)


def _check(errors: list[RpcError | None], asked: int, words: str) -> None:
    """Raise BatchError with the errors of a request, if there are any."""
    failed = [error for error in errors if error is not None and is_error(error)]
    if failed:
        what = f"{len(failed)} of {asked} {words} failed: " if words else ""
        raise BatchError(f"{what}{failed[0].message}", errors)


# -- programs that clients push -------------------------------------------------------------------


def prepared(device: Device, running: BoundProgram, configs: Any) -> Pipeline:
    """Compile what a client pushes: a program of ours, or the running one anew.

    configs: of the request. Raises RpcError."""
    if len(configs) != 1:
        raise RpcError(
            "INVALID_ARGUMENT",
            f"{len(configs)} configs given: the device runs one program. Pipes may run"
            " different pipelines of one: put Switch(pipeA, pipeB) at the end of its source,"
            " and give each pipeline a profile with its pipe_scope",
        )
    (config,) = configs
    scopes = {p.profile_name: list(p.pipe_scope) for p in config.profiles if p.pipe_scope}
    if len(config.profiles) < 2:  # a single pipeline is for all pipes
        scopes = {}
    pushed = next((p.binary for p in config.profiles if p.binary), b"")
    if not pushed and config.p4_name not in ("", running.name):
        raise RpcError(
            "INVALID_ARGUMENT",
            f"{config.p4_name}: the profile has no binary; push the source that `gradplane"
            f" p4 config` makes, or name the running program ({running.name})",
        )
    if pushed.lstrip().startswith(b"{"):
        pipeline = device.prepare(p4r.ForwardingPipelineConfig(p4_device_config=pushed), scopes)
        if config.p4_name not in ("", program_name(pipeline)):
            raise no_program(config.p4_name, program_name(pipeline))
        return pipeline
    if pushed:
        _check_same(config, running)
    return anew(device, running, scopes)


def anew(device: Device, running: BoundProgram, scopes: PipeScopes) -> Pipeline:
    """Make the running program ready to start anew, with its pipelines in these pipes."""
    info = running.pipeline.catalog.p4info
    return device.prepare(p4r.ForwardingPipelineConfig(p4info=info), scopes)


def no_program(name: str, there: str) -> RpcError:
    """Return the refusal of a request for another program than the one that runs."""
    return RpcError("NOT_FOUND", f"there is no program {name!r}; the switch runs {there}")


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
