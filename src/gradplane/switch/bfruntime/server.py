"""The gRPC server around the service: threads, streams and statuses."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

import grpc

from gradplane import _bfruntime as bf
from gradplane._p4runtime import rpc_status
from gradplane.switch.bfruntime.service import BfRuntimeService, error_message
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, end_rpc, service_handler
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import (
    ResponseStream,
    StreamSlots,
    deliver,
)
from gradplane.switch.p4runtime.server import ServerTls, cannot_listen, check_free
from gradplane.switch.p4runtime.status_errors import (
    BatchError,
    RpcError,
    code_number,
    internal_error,
)
from gradplane.switch.runtime.control_messages import Message, PacketIn, kind_of_message

_TICK = 0.02  # seconds between looks for digests, idle entries and changes of links
_GRACE = 0.2  # seconds for requests in progress to finish
_UPDATES, _CONFIG = 3, 6  # numbers of fields: those before say who sends a request
_TYPE_URL = f"type.googleapis.com/{bf.PACKAGE}.Error"

log = logging.getLogger(__name__)


class BfRuntimeServer:
    """Serves `device` on `address` ("host:port"; port 0 for a free one) from `start` to `stop`.

    The device may have other servers: messages of the switch reach them, too. ports: the network
    interfaces of the switch's ports, if it has any. place: places a program's tables in stages, for
    snapshots.
    """

    def __init__(
        self,
        device: Device,
        address: str,
        ports: object = None,
        tls: ServerTls | None = None,
        place: Placement | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.device = device
        self.service = BfRuntimeService(device, ports, place)
        self.address = address
        self._tls = tls
        self._streams = StreamSlots(limits.streams)
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._notifier = threading.Thread(target=self._notify, name="bfruntime notifier")
        self._generator = threading.Thread(target=self._generate, name="bfruntime generator")
        self._gate = Gate(limits)
        self._server, self._pool = self._gate.server("bfruntime", limits.streams)
        self._server.add_generic_rpc_handlers((self._handler(),))

    def _handler(self) -> grpc.GenericRpcHandler:
        handlers = {
            "Write": self._write,
            "Read": self._read,
            "SetForwardingPipelineConfig": self._set_config,
            "GetForwardingPipelineConfig": self._get_config,
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
        return service_handler(bf.SERVICE, methods, self._gate)

    def start(self) -> int:
        """Accept requests and return the port; raise ServerError if the address cannot be used."""
        try:
            check_free(self.address)
            if self._tls is None:
                port: int = self._server.add_insecure_port(self.address)
            else:
                port = self._server.add_secure_port(self.address, self._tls.credentials())
        except (OSError, RuntimeError) as error:
            option = "--bfrt-addr HOST:PORT (port 0: any free one)"
            raise cannot_listen(self.address, error, option) from error
        if self.address.endswith(":0"):
            self.address = f"{self.address[:-1]}{port}"
        other = self.device.listener

        def listen(message: Message) -> None:
            other(message)
            if self._messages.qsize() < self._gate.limits.waiting:
                self._messages.put(message)
            elif not isinstance(message, PacketIn):  # those are P4Runtime's
                self.device.losses.add(kind_of_message(message))

        self.device.listener = listen
        if self.device.pipeline is not None:
            self.device.pipeline.state.listener = listen
        self._notifier.start()
        self._generator.start()
        self._server.start()
        return port

    def stop(self) -> None:
        """End all streams and refuse new requests."""
        self._server.stop(grace=_GRACE).wait(2 * _GRACE)
        self._stopped.set()
        self._notifier.join()
        self._generator.join()
        self._pool.shutdown()

    def __enter__(self) -> BfRuntimeServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    # -- the RPCs -------------------------------------------------------------------------------

    def _write(self, request: Any, context: grpc.ServicerContext) -> Any:
        found = _metadata(context)

        def handle() -> Any:
            try:
                return self.service.write(request, found)
            finally:
                self.device.transmit([])  # packets may be free to leave their queues now

        return self._unary(handle, context)

    def _get_config(self, request: Any, context: grpc.ServicerContext) -> Any:
        return self._unary(lambda: self.service.get_config(request), context)

    def _set_config(self, request: Any, context: grpc.ServicerContext) -> Any:
        def handle() -> Any:
            response, deliveries = self.service.set_config(request)
            deliver(deliveries)
            return response

        return self._unary(handle, context)

    def _read(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the answers as they are made: the device is free for others between them."""
        failure: RpcError | None = None
        metadata = _metadata(context)
        try:
            yield from self.device.parts(self.service.read(request, metadata))
            return
        except RpcError as error:
            failure = error
        except Exception as error:
            failure = internal_error(error, "a BFRuntime query")
        if metadata.get("error_in_resp") != "1":
            _abort(context, failure)
        yield bf.ReadResponse(status=[error_message(failure)])

    def _stream(self, requests: Iterable[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        stream = ResponseStream(self.device.losses, self._gate.limits.waiting)
        handle, closed = partial(self._take, stream), partial(self._close, stream)
        try:
            with self._streams.use(stream):
                yield from stream.serve(requests, handle, closed, "bfruntime stream", context)
        except RpcError as error:
            _abort(context, error)

    # -- parts ----------------------------------------------------------------------------------

    def _unary(self, handler: Callable[[], Any], context: grpc.ServicerContext) -> Any:
        try:
            with self.device.turn():
                return handler()
        except RpcError as error:
            failure = error
        except Exception as error:
            failure = internal_error(error, "a BFRuntime request")
        _abort(context, failure)

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


def _abort(context: grpc.ServicerContext, error: RpcError) -> NoReturn:
    """End the RPC; the details of a BatchError go into the trailing metadata."""
    details = None
    if isinstance(error, BatchError):
        status = rpc_status.Status(code=code_number(error.code), message=error.message)
        for item in error.errors:
            status.details.add(type_url=_TYPE_URL, value=error_message(item).SerializeToString())
        details = status.SerializeToString()
    end_rpc(context, error, details)
