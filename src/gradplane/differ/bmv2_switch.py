"""The real simple_switch_grpc, as a function from packets and requests to answers."""

from __future__ import annotations

import queue
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gradplane._p4runtime import p4i, p4r, rpc_code, rpc_status
from gradplane.controller.targets import Start
from gradplane.controller.targets.bmv2 import Bmv2

Refusal = tuple[str, str]
"""A code's name and a text."""

_SERVICE = "/p4.v1.P4Runtime/"
_START_TIME = 60.0
_NOT_READY = "not ready"  # the service's answer until the first program runs
_PATIENCE = 10.0  # seconds for a message that is expected, however slow the machine is
_DYING = 10.0  # seconds after a connection's end in which a process ends that has crashed
_LONGEST = 120.0  # seconds in the switch, after which a packet is said to go round for ever
_STAYS = f"the packet is still in bmv2 after {_LONGEST:g} s: it may go round for ever there"


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


def _taken(source: queue.Queue[Any], count: int, quiet: float) -> list[Any]:
    found = list[Any]()
    while True:
        try:
            found.append(source.get(timeout=max(quiet, 1e-3) if len(found) >= count else _PATIENCE))
        except queue.Empty:
            return found


def _gather(session: Any, messages: queue.Queue[p4r.StreamMessageResponse]) -> None:
    """Put what comes on a stream into a queue, until the stream ends."""
    with suppress(grpc.RpcError):
        for message in session:
            messages.put(message)


def _refusal(error: grpc.RpcError) -> Refusal:
    """Return code and text of the request's first update that failed, or of the request."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in rpc_status.Status.FromString(value).details:
                one = p4r.Error()
                if detail.Unpack(one) and one.canonical_code:
                    return rpc_code.Code.Name(one.canonical_code), one.message
    return error.code().name, error.details() or ""


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

    def __init__(self, target: Bmv2, cpu_port: int | None = None) -> None:
        self._target, self._cpu_port = target, cpu_port
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
        if self._cpu_port is not None:
            command += ["--cpu-port", str(self._cpu_port)]
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
        self.channel, (_, data_channel) = channels[0], channels
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stack.callback(self._requests.put, None)
        self.send(_arbitration())
        session = self.channel.stream_stream(
            f"{_SERVICE}StreamChannel",
            p4r.StreamMessageRequest.SerializeToString,
            p4r.StreamMessageResponse.FromString,
        )(iter(self._requests.get, None))
        next(session)
        self._messages: queue.Queue[p4r.StreamMessageResponse] = queue.Queue()
        threading.Thread(target=_gather, args=(session, self._messages), daemon=True).start()
        self._stream = data_channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            lambda message: message.SerializeToString(),
            self._packet.FromString,
        )

    @property
    def pid(self) -> int:
        """The process id of simple_switch_grpc."""
        return self._process.pid

    def load(self, p4info: p4i.P4Info, config: bytes) -> None:
        """Load a program in place of the one before. config: BMv2's JSON.

        Raises DiffError if the switch refuses it.
        """
        pipeline = p4r.ForwardingPipelineConfig(p4_device_config=config, p4info=p4info)
        commit = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request = p4r.SetForwardingPipelineConfigRequest(action=commit, config=pipeline)
        request.election_id.low = 1
        try:
            self._call("SetForwardingPipelineConfig", request, _LONGEST)
        except grpc.RpcError as error:
            self._check_running(error)
            raise DiffError(f"bmv2 refuses the program: {error.details()}") from error

    def _call(self, name: str, request: Any, seconds: float = 60.0) -> None:
        self.channel.unary_unary(f"{_SERVICE}{name}", type(request).SerializeToString)(
            request, timeout=seconds
        )

    def insert(self, entity: Any) -> str:
        """Insert an entity; return the switch's message if it refuses, else ""."""
        code, text = self.write(p4r.Update.INSERT, entity)
        return "" if code == "OK" else text or code

    def write(self, kind: int, entity: Any) -> Refusal:
        """Write one update; return the code's name, and PI's text."""
        request = p4r.WriteRequest()
        request.election_id.low = 1
        request.updates.add(type=kind, entity=entity)
        try:
            self._call("Write", request)
        except grpc.RpcError as error:
            self._check_running(error)
            return _refusal(error)
        return "OK", ""

    def _check_running(self, failure: grpc.RpcError | None = None) -> None:
        """Raise DiffError if the switch has ended, or ends now: a call that failed lost it."""
        lost = failure is not None and failure.code() == grpc.StatusCode.UNAVAILABLE
        seconds = _DYING if lost else 0
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(seconds)
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise DiffError(f"bmv2 has crashed: simple_switch_grpc ended with {how}")

    def read(self, query: Any) -> tuple[str, list[Any]]:
        """Read what fits an entity; return the code's name, and the entities."""
        request = p4r.ReadRequest(entities=[query])
        call = self.channel.unary_stream(
            f"{_SERVICE}Read", p4r.ReadRequest.SerializeToString, p4r.ReadResponse.FromString
        )
        try:
            return "OK", [e for answer in call(request, timeout=60) for e in answer.entities]
        except grpc.RpcError as error:
            self._check_running(error)
            return _refusal(error)[0], []

    def send_packet(
        self, message: p4r.StreamMessageRequest, count: int, quiet: float
    ) -> list[tuple[int, bytes]]:
        """Send a PacketOut; return what leaves because of it, as received() does."""
        ended, found = threading.Event(), queue.Queue[Any]()

        def nothing() -> Iterator[Any]:
            ended.wait()
            yield from ()

        answers = self._stream(nothing(), timeout=_LONGEST)
        reader = threading.Thread(target=_gather, args=(answers, found), daemon=True)
        reader.start()
        time.sleep(quiet)  # the stream must be there before the packet
        self.send(message)
        left = _taken(found, count, quiet)
        ended.set()
        reader.join()
        if answers.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise DiffError(_STAYS)
        self._check_running()
        return [(answer.port, answer.packet) for answer in left + _taken(found, 0, 0)]

    def send(self, message: p4r.StreamMessageRequest) -> None:
        """Send a message on the primary's stream."""
        self._requests.put(message)

    def received(self, quiet: float, count: int = 0) -> list[p4r.StreamMessageResponse]:
        """Return the stream's messages: `count` are waited for, then those until none comes for
        `quiet` seconds."""
        return _taken(self._messages, count, quiet)

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
                    raise DiffError(_STAYS) from error
                # The first program is accepted before its service takes packets.
                if error.details() != _NOT_READY or time.monotonic() > end:
                    self._check_running(error)
                    raise DiffError(f"bmv2 does not take the packet: {error.details()}") from error
            time.sleep(0.02)


def _arbitration() -> Any:
    request = p4r.StreamMessageRequest()
    request.arbitration.election_id.low = 1
    return request


def _address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
