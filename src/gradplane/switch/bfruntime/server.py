"""The gRPC server around the service: threads, streams and statuses."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import grpc
from finsy.proto import rpc_status

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.service import BfRuntimeService, error_message
from gradplane.switch.bfruntime.snapshots import Placement
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import RpcMethod, end_rpc, service_handler
from gradplane.switch.p4runtime.response_streams import WAITING, ResponseStream, deliver
from gradplane.switch.p4runtime.server import ServerTls, cannot_listen, check_free
from gradplane.switch.p4runtime.status_errors import (
    BatchError,
    RpcError,
    code_number,
    internal_error,
)
from gradplane.switch.runtime.control_messages import Message

MAX_STREAMS = 16
_TICK = 0.02  # seconds between looks for digests, idle entries and changes of links
_GRACE = 0.2  # seconds for requests in progress to finish
_LARGEST_MESSAGE = 256 << 20  # bytes of a request or an answer
_UNARY_THREADS = 8
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
    ) -> None:
        self.device = device
        self.service = BfRuntimeService(device, ports, place)
        self.address = address
        self._tls = tls
        self._free_streams = threading.BoundedSemaphore(MAX_STREAMS)
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._notifier = threading.Thread(target=self._notify, name="bfruntime notifier")
        self._generator = threading.Thread(target=self._generate, name="bfruntime generator")
        threads = MAX_STREAMS + _UNARY_THREADS
        self._pool = ThreadPoolExecutor(threads, "bfruntime")
        self._server = grpc.server(
            self._pool,
            options=[
                ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
                ("grpc.max_send_message_length", _LARGEST_MESSAGE),
                ("grpc.max_metadata_size", 1 << 20),
                ("grpc.so_reuseport", 0),
            ],
        )
        self._server.add_generic_rpc_handlers((self._handler(),))

    def _handler(self) -> grpc.GenericRpcHandler:
        handlers = {
            "Write": self._write,
            "Read": self._read,
            "SetForwardingPipelineConfig": self._set_config,
            "GetForwardingPipelineConfig": self._get_config,
            "StreamChannel": self._stream,
        }
        methods = {}
        for name, method in bf.METHODS.items():
            request, response = bf.message(method.request), bf.message(method.response)
            streams = method.requests, method.responses
            methods[name] = RpcMethod(handlers[name], request, response, *streams)
        return service_handler(bf.SERVICE, methods)

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
            if self._messages.qsize() < WAITING:
                self._messages.put(message)

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
        """Gather all answers before sending any: a slow reader must not keep others waiting."""
        answers: list[Any] = []
        failure: RpcError | None = None
        metadata = _metadata(context)
        with self.device.turn():
            try:
                answers.extend(self.service.read(request, metadata))
            except RpcError as error:
                failure = error
            except Exception as error:
                failure = internal_error(error, "a BFRuntime query")
        in_response = metadata.get("error_in_resp") == "1"
        if failure is not None and in_response:
            answers.append(bf.ReadResponse(status=[error_message(failure)]))
            failure = None
        yield from answers
        if failure is not None:
            _abort(context, failure)

    def _stream(self, requests: Iterable[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        if not self._free_streams.acquire(blocking=False):
            what = f"all {MAX_STREAMS} streams are in use: close one"
            _abort(context, RpcError("RESOURCE_EXHAUSTED", what))
        stream = ResponseStream()
        handle, closed = partial(self._take, stream), partial(self._close, stream)
        try:
            yield from stream.serve(requests, handle, closed, "bfruntime stream")
        except RpcError as error:
            _abort(context, error)
        finally:
            self._free_streams.release()

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
