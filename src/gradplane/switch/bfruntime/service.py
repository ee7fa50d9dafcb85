"""The BFRuntime service: messages in, messages out. It does no I/O and has no threads.

Clients subscribe on a stream, each under an id of its own. One of them binds to each program that
the device runs, and sees that one only. A client that did not subscribe may read and write too: the
requests then name the program, or it is the only one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any

from gradplane import _bfruntime as bf
from gradplane._p4runtime import p4r
from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.arch.registry import program_name
from gradplane.switch.bfruntime.bound_program import BoundDevice, BoundProgram, bind
from gradplane.switch.bfruntime.clients import Clients, Delivery, Notifications, check_device
from gradplane.switch.bfruntime.packet_generator import PacketGenerator
from gradplane.switch.bfruntime.requests import is_error
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.bfruntime.tables.warm_init import Restart
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, code_number, invalid
from gradplane.switch.runtime.control_messages import Digest, IdleNotice, Message, ReturnedPacket

_ENTITIES_A_RESPONSE = 64  # read under one hold of the lock, in 2 to 3 ms
_SHARED = "$SHARED"
"""The name that clients bind to for the device's tables, which come with the only program's."""


class BfRuntimeService:
    """Serves the device's running programs. The caller holds the device's turn."""

    def __init__(
        self, device: Device, ports: object = None, place: Placement | None = None
    ) -> None:
        self.device = device
        self._ports = ports
        self._place = place
        self._clients = Clients()
        self._notifications = Notifications(self._clients)
        self._running: BoundDevice | None = None
        self._restart = Restart(
            self._begin_anew, self._run_saved, self._forget_saved,
            lambda: {p.name: p.schema.facts for p in self.running.programs.values()},
        )  # fmt: skip

    # -- the programs ---------------------------------------------------------------------------

    @property
    def running(self) -> BoundDevice:
        """The programs under control. Raises RpcError while there is none."""
        pipeline = self.device.target
        if self._running is None or self._running.pipeline is not pipeline:
            self._running = bind(pipeline, self._ports, self._place, self._restart)
            self._notifications.start(self._running)
            self._clients.follow(list(self._running.programs))
        return self._running

    def _for_client(self, number: int, name: str, device: int) -> BoundProgram:
        """Return the program that a client may read and write. Raises RpcError."""
        check_device(device)
        running, client = self.running, self._clients.get(number)
        bound = None if client is None else client.bound
        if client is not None and bound is None and not name:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"client {number} is bound to no program: bind to {running.names} first"
                " (SetForwardingPipelineConfig, BIND)",
            )
        if bound is not None and bound in running.programs and name not in ("", bound):
            named(running, name)
            raise RpcError(
                "PERMISSION_DENIED",
                f"client {number} is bound to {bound}: to read and write {name}, subscribe another"
                " client and bind it to that",
            )
        if bound is not None or name:
            return named(running, name or bound or "")
        if running.only is None:
            raise invalid(
                f"the switch runs {running.names}: name the program (p4_name), or bind to it"
            )
        return running.only

    @property
    def subscribed(self) -> bool:
        """Whether a client waits for notifications."""
        return len(self._clients) > 0

    def is_bound(self, head: Any) -> bool:
        """Return whether the start of a request names a bound client: it may send a large one."""
        client = self._clients.get(head.client_id)
        return client is not None and client.bound is not None

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
                if self.device.pause() and self.running.pipeline is not program.pipeline:
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
        """Return the bf-rt.json of each program, and the device's."""
        check_device(request.device_id)
        running = self.running
        response = bf.GetForwardingPipelineConfigResponse()
        for program in running.programs.values():
            config = response.config.add(p4_name=program.name, bfruntime_info=program.json())
            facts = program.schema.facts
            for pipeline in facts.pipelines if facts is not None else ():
                config.profiles.add(
                    profile_name=pipeline.name.removeprefix(facts.label if facts else ""),
                    binary=program.binary,
                    pipe_scope=pipeline.pipes,
                )
        response.non_p4_config.bfruntime_info = running.fixed_json()
        return response

    def set_config(self, request: Any) -> tuple[Any, list[Delivery]]:
        """Bind a client, or verify or start programs; return the messages for others."""
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
                raise invalid("WARM_INIT_END takes no config")
            self._run_saved()
            return self._announce(response, 1)
        pipeline = prepared(self.device, self.running, request.config)
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
        """Make the running programs ready to start anew; they are those that are written then."""
        several = scopes if len(scopes) > 1 else {}  # a single pipeline is for all pipes
        self.device.saved = anew(self.device, several)

    def _forget_saved(self) -> None:
        self.device.saved = None

    def _run_saved(self) -> None:
        saved = self.device.saved
        if saved is None:
            raise invalid("there was no WARM_INIT_BEGIN")
        self.device.commit(saved)

    def _bind(self, request: Any) -> None:
        client = self._clients.known(request.client_id)
        if len(request.config) != 1:
            raise invalid("BIND takes exactly one config, with a p4_name")
        name, running = request.config[0].p4_name, self.running
        if name == _SHARED and running.only is not None:
            name = running.only.name
        self._clients.bind(client, named(running, name).name)

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
        running, generator = self._running, self._generator()
        if running is None or generator is None:
            return [], None
        now = running.pipeline.state.clock()
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
            return self._notifications.idle(self.running, message)
        return []

    def _generator(self) -> PacketGenerator | None:
        """Return the packet generator of the running chip, if clients have used its tables."""
        running = self._running
        if running is None or running.pipeline is not self.device.pipeline:
            return None
        return running.fixed.generator

    def _returned(self, message: ReturnedPacket) -> None:
        running, generator = self._running, self._generator()
        if running is not None and generator is not None:
            now = running.pipeline.state.clock()
            generator.returned(message.port, message.head, now)

    def _requested(self, message: Digest) -> bool:
        """Trigger the packet generator, if the message is a deparser's request for packets."""
        running, generator = self._running, self._generator()
        if running is None or generator is None:
            return False
        if not any(message.name in p.packet_requests for p in running.programs.values()):
            return False
        prefix, address, size = message.data
        now = running.pipeline.state.clock()
        generator.requested(prefix.to_bytes(16, "big"), address, size, now)
        return True

    def tick(self) -> list[Delivery]:
        """Return the digests that wait and what has changed since the last time.

        It must be called from time to time.
        """
        if self.device.pipeline is None:
            return []
        running = self.running
        with running.pipeline.switch.lock:
            running.pipeline.state.check_idle()
        return self._notifications.due(running)


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


def prepared(device: Device, running: BoundDevice, configs: Any) -> Pipeline:
    """Compile what a client pushes: programs of ours, or running ones anew.

    configs: of the request. Raises RpcError."""
    if not configs:
        raise invalid("no config is given: give one for each program")
    pushed = {config.p4_name: _binary(running, config) for config in configs}
    if len(pushed) < len(configs):
        names = ", ".join(config.p4_name for config in configs)
        raise invalid(f"programs are known by their names: {names}")
    if len(configs) > 1 or (not all(pushed.values()) and len(running.programs) > 1):
        scopes = {name: pipes for config in configs for name, pipes in _scopes(config)}
        return device.prepare_several(pushed, scopes if len(configs) > 1 else None)
    (config,) = configs
    profiles = {p.profile_name: list(p.pipe_scope) for p in config.profiles if p.pipe_scope}
    if len(config.profiles) < 2:  # a single pipeline is for all pipes
        profiles = {}
    if not pushed[config.p4_name]:
        return anew(device, profiles)
    what = p4r.ForwardingPipelineConfig(p4_device_config=pushed[config.p4_name])
    pipeline = device.prepare(what, profiles)
    name = program_name(pipeline.catalog.program)
    if config.p4_name not in ("", name):
        raise no_program(config.p4_name, name)
    return pipeline


def anew(device: Device, scopes: PipeScopes) -> Pipeline:
    """Make the running programs ready to start anew, with their pipelines in these pipes."""
    info = device.target.catalog.p4info
    made = device.prepare(p4r.ForwardingPipelineConfig(p4info=info), scopes)
    made.binaries = device.target.binaries
    return made


def named(running: BoundDevice, name: str) -> BoundProgram:
    """Return a program by its name. Raises RpcError."""
    found = running.programs.get(name)
    if found is None:
        raise no_program(name, running.names)
    return found


def no_program(name: str, there: str) -> RpcError:
    """Return the refusal of a request for another program than those that run."""
    return RpcError("NOT_FOUND", f"there is no program {name!r}; the switch runs {there}")


def _binary(running: BoundDevice, config: Any) -> bytes:
    """Return the device config that is pushed for a program, empty if it is one that runs."""
    pushed: bytes = next((p.binary for p in config.profiles if p.binary), b"")
    there = running.programs.get(config.p4_name) or (None if config.p4_name else running.only)
    if pushed.lstrip().startswith(b"{"):
        return pushed
    if pushed:
        _check_same(config, there)
    elif there is None:
        which = "the running program" if running.only else "one of the running programs"
        raise invalid(
            f"{config.p4_name}: the profile has no binary; push the source that `gradplane"
            f" p4 config` makes, or name {which} ({running.names})"
        )
    return b""


def _scopes(config: Any) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of a program's pipelines beside others, with their pipes."""
    for profile in config.profiles:
        if profile.pipe_scope:
            alone = len(config.profiles) == 1
            name = config.p4_name if alone else f"{config.p4_name}.{profile.profile_name}"
            yield name, list(profile.pipe_scope)


def _check_same(config: Any, running: BoundProgram | None) -> None:
    """Accept a binary for the chip only if it comes with the running program's name and tables."""
    what = (
        "the binary is not a program for this switch: it runs P4 source, which `gradplane p4"
        " config FILE.p4` makes a binary of"
    )
    if running is None or config.p4_name != running.name:
        raise invalid(what)
    try:
        there = {t["name"]: t["table_type"] for t in json.loads(config.bfruntime_info)["tables"]}
    except (ValueError, KeyError, TypeError) as error:
        raise invalid(f"{what}; its bf-rt.json is wrong: {error}") from error
    missing = [t.name for t in running.schema.schema.tables if there.get(t.name) != t.kind]
    if missing:
        names = ", ".join(missing)
        raise invalid(f"{what}; its bf-rt.json lacks what runs: {names}")
