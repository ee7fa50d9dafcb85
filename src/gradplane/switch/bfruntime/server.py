"""The gRPC server around the service: threads, streams and statuses."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc

from gradplane import _bfruntime as bf
from gradplane._p4runtime import rpc_status
from gradplane.switch.bfruntime.service import BfRuntimeService, error_message
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import RpcMethod, service_handler
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import ResponseStream, deliver
from gradplane.switch.p4runtime.server import DeviceServer, ServerTls
from gradplane.switch.p4runtime.status_errors import (
    BatchError,
    RpcError,
    code_number,
    internal_error,
)
from gradplane.switch.runtime.control_messages import Message, PacketIn, kind_of_message

_TICK = 0.02  # seconds between looks for digests, idle entries and changes of links
_UPDATES, _CONFIG = 3, 6  # numbers of fields: those before say who sends a request
_TYPE_URL = f"type.googleapis.com/{bf.PACKAGE}.Error"

log = logging.getLogger(__name__)


class BfRuntimeServer(DeviceServer):
    """Serves BFRuntime.

    The device may have other servers: messages of the switch reach them, too. ports: the network
    interfaces of the switch's ports, if it has any. place: places a program's tables in stages, for
    snapshots.
    """

    name = "bfruntime"
    option = "--bfrt-addr HOST:PORT (port 0: any free one)"

    def __init__(
        self,
        device: Device,
        address: str,
        ports: object = None,
        tls: ServerTls | None = None,
        place: Placement | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(device, address, tls, limits)
        self.service = BfRuntimeService(device, ports, place)
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._notifier = threading.Thread(target=self._notify, name="bfruntime notifier")
        self._generator = threading.Thread(target=self._generate, name="bfruntime generator")
        self._server.add_generic_rpc_handlers((self._handler(),))

    def _handler(self) -> grpc.GenericRpcHandler:
        handlers = {
            "Write": self._write,
            "Read": self._read,
            "SetForwardingPipelineConfig": self._in_turn(self._set_config),
            "GetForwardingPipelineConfig": self._in_turn(self.service.get_config),
            "StreamChannel": self._stream,
        }
        bulk = {"Write": _UPDATES, "SetForwardingPipelineConfig": _CONFIG}
        methods = {}
        for name, method in bf.METHODS.items():
            request, response = bf.message(method.request), bf.message(method.response)
            streams = method.requests, method.responses
            methods[name] = RpcMethod(
                handlers[name], request, response, *streams,
                bulk=bulk.get(name, 0), large=self.service.is_bound,
            )  # fmt: skip
        return service_handler(bf.SERVICE, methods, self._gate, _details)

    def _listener(self) -> Callable[[Message], None]:
        other = self.device.listener

        def listen(message: Message) -> None:
            other(message)
            if self._messages.qsize() < self._gate.limits.waiting:
                self._messages.put(message)
            elif not isinstance(message, PacketIn):  # those are P4Runtime's
                self.device.losses.add(kind_of_message(message))

        return listen

    def _begin(self) -> None:
        self._notifier.start()
        self._generator.start()

    def _end(self) -> None:
        self._stopped.set()
        self._notifier.join()
        self._generator.join()

    # -- the RPCs -------------------------------------------------------------------------------

    def _write(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self.device.turn():
            try:
                return self.service.write(request, _metadata(context))
            finally:
                self.device.transmit([])  # packets may be free to leave their queues now

    def _set_config(self, request: Any) -> Any:
        response, deliveries = self.service.set_config(request)
        deliver(deliveries)
        return response

    def _read(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the answers as they are made: the device is free for others between them."""
        metadata = _metadata(context)
        try:
            yield from self.device.parts(self.service.read(request, metadata))
        except Exception as error:
            if metadata.get("error_in_resp") != "1":
                raise
            failure = error if isinstance(error, RpcError) else internal_error(error, "a read")
            yield bf.ReadResponse(status=[error_message(failure)])

    # -- parts ----------------------------------------------------------------------------------

    def _take(self, stream: ResponseStream, request: Any) -> None:
        with self.device.turn():
            deliver(self.service.stream_message(stream, request))
            known = self.service.has_client(stream)
        if known:
            self._streams.settle(stream)

    def _close(self, stream: ResponseStream) -> None:
        with self.device.turn():
            self.service.stream_closed(stream)

    def _generate(self) -> None:
        """Process the packets of the chip's packet generator when they are due."""
        wait = _TICK
        while not self._stopped.wait(wait):
            wait = _TICK
            try:
                with self.device.lock:
                    packets, due = self.service.generated()
                for port, packet in packets:
                    self.device.transmit(self.device.process(port, packet))
                if due is not None:
                    wait = min(wait, due / 1e9)
            except Exception:
                log.exception("a generated packet could not be processed")

    def _notify(self) -> None:
        while not self._stopped.wait(_TICK):
            self._gate.tick()
            try:
                with self.device.lock:
                    while not self._messages.empty():
                        deliver(self.service.switch_message(self._messages.get()))
                    if self.service.subscribed:
                        deliver(self.service.tick())
            except Exception:
                log.exception("the notifications of the switch could not be sent")


def _metadata(context: grpc.ServicerContext) -> Mapping[str, str]:
    return {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}


def _details(error: BatchError) -> bytes:
    status = rpc_status.Status(code=code_number(error.code), message=error.message)
    for item in error.errors:
        status.details.add(type_url=_TYPE_URL, value=error_message(item).SerializeToString())
    return bytes(status.SerializeToString())
