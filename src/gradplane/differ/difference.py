"""The first difference between the embedded switch and BMv2, with a trace of the packet."""

from __future__ import annotations

import queue
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from gradplane._shipped_programs import INCLUDE_DIRS
from gradplane.controller import targets
from gradplane.controller.targets import Start
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.inputs import Inputs
from gradplane.experiment import p4_programs
from gradplane.switch import backends
from gradplane.switch.compiler import Compiled
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.write import write
from gradplane.switch.switch import Switch

TARGETS = ("embedded", "bmv2")
Outputs = list[tuple[int, bytes]]


@dataclass(frozen=True)
class DiffResult:
    """The result. packets: how many were equal. refused: BMv2's messages about refused entries."""

    packets: int
    entries: int
    refused: tuple[str, ...]
    difference: str = ""

    def text(self) -> str:
        """Return the result in words."""
        lines = [self.difference] if self.difference else []
        how = "equal" if not self.difference else "different, after"
        lines.append(f"{how}: {self.packets} packets, {self.entries} entries")
        if self.refused:
            number = len(self.refused)
            lines.append(f"{number} entries that bmv2 refuses were left out: {self.refused[0]}")
        return "\n".join(lines)


def diff(
    program: Path,
    entries: Path | None = None,
    packets: int = 200,
    seed: int = 0,
    folders: Sequence[Path] = (),
    macros: Mapping[str, str] | Sequence[str] = (),
    compiler: str = "gradplane",
) -> DiffResult:
    """Give random packets to the embedded switch and to simple_switch_grpc; both have the same
    entries: those of a file of commands (or runtime JSON), else random ones.

    The order of what leaves for one packet does not count. compiler: of BMv2's JSON, "gradplane" or
    "p4c". Raises DiffError where BMv2 or p4c is not there, ControllerError where p4c refuses the
    program, and CompileError, also for programs of another architecture than v1model.
    """
    target = targets.get("bmv2", compiler=compiler)
    assert isinstance(target, Bmv2)
    if missing := target.missing():
        raise DiffError(missing)
    given = macros if isinstance(macros, Mapping) else dict(_macro(text) for text in macros)
    defines = {**backends.macros("bmv2"), **given}
    found = p4_programs.compiled(program, folders, defines)
    p4_programs.check(found, "v1model")
    p4info, config = target.pipeline(_Loadable(program, folders, defines, found))
    devices = [_device(found.program), _device(found.program)]  # the second one chooses packets
    (ours, guide), inputs = map(_switch, devices), Inputs(found.program, seed)
    in_source = {e.SerializeToString(deterministic=True) for e in transferable(devices[0])}
    _populate(ours, entries, inputs)
    with Bmv2Switch(target) as theirs:
        theirs.load(p4info, config)
        added = [
            e
            for e in transferable(devices[0])
            if e.SerializeToString(deterministic=True) not in in_source
        ]
        count, refused = _transfer(added, devices[0], devices[1], theirs)
        compared = 0
        for port, packet in inputs.packets(guide, packets):
            expected = ours.process(port, packet)
            if there := _differs(theirs, port, packet, expected):
                text = _difference(ours, port, packet, expected, there)
                return DiffResult(compared, count, refused, text)
            compared += 1
    return DiffResult(compared, count, refused)


def _differs(theirs: Bmv2Switch, port: int, packet: bytes, expected: Outputs) -> str:
    """Return what the packet becomes in BMv2, as lines; "" if that is what is expected."""
    try:
        got = theirs.process(port, packet)
    except DiffError as error:
        return str(error)
    if sorted(got) == sorted(expected):
        return ""
    return "\n".join(["bmv2 sends:", *_shown(got)])


@dataclass(frozen=True)
class _Loadable:
    """A program as targets take it."""

    path: Path
    folders: Sequence[Path]
    defines: Mapping[str, str]
    compiled: Compiled

    @property
    def include_dirs(self) -> Sequence[Path]:
        return (*self.folders, *INCLUDE_DIRS)

    def p4info(self, switch: str = "") -> bytes:
        return p4_programs.p4info(self.compiled.program, switch).encode()

    def packed_source(self) -> bytes:
        return device_config(self.path, self.include_dirs, self.defines)

    def compiled_for(self, switch: str) -> bytes:
        if self.path.suffix == ".json":
            return self.path.read_bytes()
        return p4_programs.compiled_for(switch, self.compiled).encode()


def _macro(text: str) -> tuple[str, str]:
    """Return name and value of NAME[=VALUE]."""
    name, _, value = text.partition("=")
    return name, value or "1"


def _device(program: Any) -> Device:
    def compile(source: object) -> Any:
        raise AssertionError("nothing is pushed")

    start: Callable[[Any], Switch] = lambda p: Switch(p, engine="interpreter")  # noqa: E731
    device = Device(compile, start)
    device.load(program)
    return device


def _switch(device: Device) -> Switch:
    assert device.pipeline is not None and isinstance(device.pipeline.switch, Switch)
    return device.pipeline.switch


def _populate(switch: Switch, file: Path | None, inputs: Inputs) -> None:
    if file is None:
        inputs.populate(switch)
    else:
        switch.run_commands(file.read_text("utf-8-sig", errors="replace"), str(file))


def _transfer(
    entities: Sequence[Any], ours: Device, guide: Device, theirs: Bmv2Switch
) -> tuple[int, tuple[str, ...]]:
    """Copy entities of our switch; those that BMv2 refuses are removed from ours."""
    refused, count = list[tuple[Any, str]](), 0
    for entity in entities:
        said = theirs.insert(entity)
        if said:
            refused.append((entity, said))
        else:
            count += 1
            update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
            write(guide.target, [update], p4r.WriteRequest.CONTINUE_ON_ERROR)
    for entity, _ in reversed(refused):  # entries before the groups and members that they use
        update = p4r.Update(type=p4r.Update.DELETE, entity=entity)
        write(ours.target, [update], p4r.WriteRequest.CONTINUE_ON_ERROR)
    return count, tuple(said for _, said in refused)


def transferable(device: Device) -> list[Any]:
    """Return everything that a controller could have inserted, in an order in which it could."""
    queries = [p4r.Entity() for _ in range(5)]
    queries[0].action_profile_member.SetInParent()
    queries[1].action_profile_group.SetInParent()
    queries[2].table_entry.SetInParent()
    queries[3].packet_replication_engine_entry.multicast_group_entry.SetInParent()
    queries[4].packet_replication_engine_entry.clone_session_entry.SetInParent()
    found = [entity for answer in read(device.target, queries) for entity in answer.entities]
    return [e for e in found if not (e.table_entry.is_const or e.table_entry.is_default_action)]


def _difference(ours: Switch, port: int, packet: bytes, expected: Outputs, there: str) -> str:
    """Return the packet, what became of it in both, and our trace (of its second pass)."""
    lines = [f"first difference: port {port}, packet {packet.hex()}"]
    lines += ["embedded sends:", *_shown(expected), there]
    lines += ["trace of the embedded switch, given the packet again:"]
    return "\n".join([*lines, ours.trace(port, packet).text().rstrip("\n")])


def _shown(outputs: Outputs) -> list[str]:
    return [f"  port {port}: {packet.hex()}" for port, packet in sorted(outputs)] or ["  nothing"]


_SERVICE = "/p4.v1.P4Runtime/"
_START_TIME = 60.0
_NOT_READY = "not ready"  # the service's answer until the first program runs
_LONGEST = 120.0  # seconds in the switch, after which a packet is said to go round for ever


def _packet_message() -> type[Any]:
    """Return the message of the data-plane service: id, device_id, port, packet."""
    file = descriptor_pb2.FileDescriptorProto(name="gradplane_dataplane", package="p4.bm")
    message = file.message_type.add(name="PacketStream")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = (field.TYPE_UINT64, field.TYPE_UINT64, field.TYPE_UINT32, field.TYPE_BYTES)
    names = ("id", "device_id", "port", "packet")
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: type[Any] = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("p4.bm.PacketStream")
    )
    return found


def _is_ready(channel: grpc.Future) -> bool:
    """Wait a moment for a channel's future."""
    try:
        channel.result(0.2)
    except grpc.FutureTimeoutError:
        return False
    return True


class DiffError(Exception):
    """The switches cannot be compared."""


class Bmv2Switch:
    """The real simple_switch_grpc as a function from packets to packets.

    A context manager: a process, without a program until one is loaded. It is configured over
    P4Runtime. Packets go over its data-plane service (behavioral-model, targets/simple_switch_grpc,
    --dp-grpc-server-addr), so no interfaces and no root are needed. That service answers the end of
    a stream when no packet is left in the switch (switch_runner.cpp,
    block_until_all_packets_processed): a stream for each packet has all that leaves for it, however
    slow the machine is.
    """

    def __init__(self, target: Bmv2) -> None:
        self._target = target
        self._packet = _packet_message()
        self._exit = ExitStack()

    def __enter__(self) -> Bmv2Switch:
        with ExitStack() as stack:
            self._start(stack)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _start(self, stack: ExitStack) -> None:
        control, data = _address(), _address()
        command = self._target.command(Start(Path(), {}, control))
        command += ["--dp-grpc-server-addr", data]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        stack.callback(process.wait)
        stack.callback(process.kill)
        self._process = process
        channels = [stack.enter_context(grpc.insecure_channel(a)) for a in (control, data)]
        end = time.monotonic() + _START_TIME
        for ready in map(grpc.channel_ready_future, channels):
            while not _is_ready(ready):
                if process.poll() is not None:
                    raise DiffError(f"{' '.join(command)} ends with status {process.returncode}")
                if time.monotonic() > end:
                    raise DiffError(f"{command[0]} does not answer after {_START_TIME:g} s")
        self._control, (_, data_channel) = channels[0], channels
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stack.callback(requests.put, None)
        requests.put(_arbitration())
        self._session = self._control.stream_stream(
            f"{_SERVICE}StreamChannel",
            p4r.StreamMessageRequest.SerializeToString,
            p4r.StreamMessageResponse.FromString,
        )(iter(requests.get, None))
        next(self._session)
        self._stream = data_channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            lambda message: message.SerializeToString(),
            self._packet.FromString,
        )

    @property
    def pid(self) -> int:
        """The process id of simple_switch_grpc."""
        return self._process.pid

    def load(self, p4info: bytes, config: bytes) -> None:
        """Load a program in place of the one before. p4info: text; config: BMv2's JSON.

        Raises DiffError if the switch refuses it.
        """
        pipeline = p4r.ForwardingPipelineConfig(p4_device_config=config)
        text_format.Parse(p4info.decode(), pipeline.p4info)
        commit = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request = p4r.SetForwardingPipelineConfigRequest(action=commit, config=pipeline)
        request.election_id.low = 1
        try:
            self._call("SetForwardingPipelineConfig", request, _LONGEST)
        except grpc.RpcError as error:
            ended = "" if self._process.poll() is None else "; it has crashed"
            raise DiffError(f"bmv2 refuses the program: {error.details()}{ended}") from error

    def _call(self, name: str, request: Any, seconds: float = 60.0) -> None:
        call: Callable[..., bytes] = self._control.unary_unary(
            f"{_SERVICE}{name}", type(request).SerializeToString
        )
        call(request, timeout=seconds)

    def insert(self, entity: Any) -> str:
        """Insert an entity; return the switch's message if it refuses, else ""."""
        request = p4r.WriteRequest()
        request.election_id.low = 1
        request.updates.add(type=p4r.Update.INSERT, entity=entity)
        try:
            self._call("Write", request)
        except grpc.RpcError as error:
            return str(error.details()) or str(error.code())
        return ""

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Return the packets that leave, when no packet is left in the switch.

        Raises DiffError if the switch has ended, or keeps the packet for ever.
        """
        message, end = self._packet(id=1, port=port, packet=packet), time.monotonic() + _START_TIME
        while True:
            try:
                answers = self._stream(iter((message,)), timeout=_LONGEST)
                return [(answer.port, answer.packet) for answer in answers]
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    text = f"the packet is still in bmv2 after {_LONGEST:g} s"
                    raise DiffError(text) from error
                # The first program is accepted before its service takes packets.
                if error.details() != _NOT_READY or time.monotonic() > end:
                    raise DiffError("bmv2 has crashed") from error
            time.sleep(0.02)


def _arbitration() -> Any:
    request = p4r.StreamMessageRequest()
    request.arbitration.election_id.low = 1
    return request


def _address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
