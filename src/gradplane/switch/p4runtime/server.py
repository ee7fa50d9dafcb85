"""The gRPC server around the service: threads, streams and statuses.

The rules are the service's.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import socket
import ssl
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import grpc
from google.protobuf.message import Message as ProtobufMessage

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.limits import DEFAULT_ADDRESS, DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import ResponseStream, StreamSlots, deliver
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import rpc_status_of
from gradplane.switch.runtime.control_messages import Message, kind_of_message

_TICK = 0.02  # seconds between checks for due digests and idle entries
_REST = 0.5  # if there are none: an idle switch takes no processor time
_MESSAGES = 256  # passed on while the device is held
_MANY = 60  # messages between two ticks: some 3,000 a second
_SHORT_TURN = 0.00005  # seconds, while there are many
_GRACE = 0.2  # seconds for requests in progress to finish
_CONFIG, _UPDATES = 5, 4  # numbers of fields: those before say who sends a request
_SERVICE = "p4.v1.P4Runtime"
_LAST_PORT = 65535
_UNIX = "unix:"

log = logging.getLogger(__name__)


class ServerError(Exception):
    """The server cannot be started; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The TLS of a server: its certificate and private key, as PEM files.

    cacert: the authority of clients' certificates, which `client_auth` requires.
    """

    cert: Path
    key: Path
    cacert: Path | None = None
    client_auth: bool = False

    def credentials(self) -> grpc.ServerCredentials:
        """Read the files. Raises ServerError for invalid ones, OSError for missing ones."""
        key, cert = self.key.read_bytes(), self.cert.read_bytes()
        authority = None if self.cacert is None else self.cacert.read_bytes()
        try:
            checked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            checked.load_cert_chain(self.cert, self.key)
            if self.cacert is not None:
                checked.load_verify_locations(self.cacert)
        except ssl.SSLError as error:
            files = ", ".join(str(file) for file in (self.cert, self.key, self.cacert) if file)
            raise ServerError(f"TLS cannot use {files}: {error}") from error
        return grpc.ssl_server_credentials([(key, cert)], authority, self.client_auth)


class DeviceServer(ABC):
    """A gRPC server of `device` on `address` ("host:port"; port 0 for a free one), from `start` to
    `stop`. option: the command line's for the address. streams: long calls of other services."""

    name: ClassVar[str]
    option: ClassVar[str]

    def __init__(
        self, device: Device, address: str, tls: ServerTls | None, limits: Limits, streams: int = 0
    ) -> None:
        self.device = device
        self.address = address
        self._tls = tls
        self._streams = StreamSlots(limits.streams)
        self._gate = Gate(limits)
        self._server, self._pool = self._gate.server(self.name, limits.streams + streams)

    def start(self) -> int:
        """Accept requests and return the port; raise ServerError if the address cannot be used."""
        port = self._listen_on(self.address, self.option, self._tls)
        if self.address.endswith(":0"):
            self.address = f"{self.address[:-1]}{port}"
        self.device.listener = self._listener()
        if self.device.pipeline is not None:
            self.device.pipeline.state.listener = self.device.listener
        self._begin()
        self._server.start()
        return port

    def stop(self) -> None:
        """End all streams and refuse new requests."""
        # A bound, so that an RPC which does not end cannot keep the switch from ending.
        self._server.stop(grace=_GRACE).wait(2 * _GRACE)
        self._end()
        self._pool.shutdown()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @abstractmethod
    def _listener(self) -> Callable[[Message], None]:
        """Return what takes the messages of the switch, from the thread that runs packets."""

    @abstractmethod
    def _begin(self) -> None:
        """Start the server's threads."""

    @abstractmethod
    def _end(self) -> None:
        """End them."""

    @abstractmethod
    def _take(self, stream: ResponseStream, request: Any) -> None:
        """Handle a message on a stream. Raises RpcError."""

    @abstractmethod
    def _close(self, stream: ResponseStream) -> None:
        """Forget a stream."""

    def _listen_on(self, address: str, option: str, tls: ServerTls | None = None) -> int:
        credentials = None if tls is None else tls.credentials()
        try:
            check_free(address)
            port: int
            if address.startswith(_UNIX):
                former = os.umask(0o177)  # the file is there, with its mode, at once
                try:
                    port = self._server.add_insecure_port(address)
                finally:
                    os.umask(former)
            elif credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except (OSError, RuntimeError) as error:
            raise cannot_listen(address, error, option) from error
        return port

    def _in_turn(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Return the handler of a request that has the device for itself."""

        def handler(request: Any, context: grpc.ServicerContext) -> Any:
            with self.device.turn():
                return answer(request)

        return handler

    def _stream(self, requests: Iterable[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        stream = ResponseStream(self.device.losses, self._gate.limits.waiting)
        handle, closed = partial(self._take, stream), partial(self._close, stream)
        with self._streams.use(stream):
            yield from stream.serve(requests, handle, closed, f"{self.name} stream", context)


class P4RuntimeServer(DeviceServer):
    """Serves P4Runtime.

    others: make the handlers of further gRPC services on the same address, which have at most
    `streams` long calls. also: further addresses with the same services, without `tls`, so they
    must be on loopback, or Unix sockets ("unix:PATH"), which only their owner can open.
    """

    name = "p4runtime"
    option = "--grpc-server-addr HOST:PORT (port 0: any free one)"

    def __init__(
        self,
        device: Device,
        address: str = DEFAULT_ADDRESS,
        others: Sequence[Callable[[Gate], grpc.GenericRpcHandler]] = (),
        streams: int = 0,
        also: Sequence[str] = (),
        tls: ServerTls | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(device, address, tls, limits, streams)
        self.service = P4RuntimeService(device, limits)
        self._also = also
        self._lock = device.lock
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._passed = 0  # messages, since the last tick
        self._interval: float | None = None  # of turns, while it is shorter
        self._notifier = threading.Thread(target=self._notify, name="p4runtime notifier")
        handlers = [make(self._gate) for make in others]
        self._server.add_generic_rpc_handlers((self._handler(), *handlers))

    def _listener(self) -> Callable[[Message], None]:
        return self._put_aside

    def _begin(self) -> None:
        for address in self._also:
            unix = address.startswith(_UNIX)
            self._listen_on(address, "--unix-socket PATH" if unix else "--thrift-port PORT")
        self._notifier.start()

    def _end(self) -> None:
        self._messages.put(None)
        self._notifier.join()
        self._hurry(False)
        for address in self._also:
            if address.startswith(_UNIX):
                Path(address.removeprefix(_UNIX)).unlink(missing_ok=True)

    # -- the RPCs --------------------------------------------------------------------------------

    def _handler(self) -> grpc.GenericRpcHandler:
        service = self.service
        unary = {
            "Write": service.write,
            "SetForwardingPipelineConfig": service.set_pipeline,
            "GetForwardingPipelineConfig": service.get_pipeline,
            "Capabilities": service.capabilities,
        }
        bulk = {"Write": _UPDATES, "SetForwardingPipelineConfig": _CONFIG}
        methods = {
            name: RpcMethod(
                self._in_turn(answer), *_messages_of(name), bulk=bulk.get(name, 0),
                large=service.is_primary,
            )
            for name, answer in unary.items()
        }  # fmt: skip
        streams = _messages_of("StreamMessage")
        methods["Read"] = RpcMethod(self._read, *_messages_of("Read"), responses=True)
        methods["StreamChannel"] = RpcMethod(self._stream, *streams, requests=True, responses=True)
        return service_handler(
            _SERVICE, methods, self._gate, lambda error: rpc_status_of(error).SerializeToString()
        )

    def _read(
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4r.ReadResponse]:
        """Yield the answers as they are made: the device is free for others between them."""
        with self._lock:
            answers = self.service.read(request)
        yield from self.device.parts(answers)

    # -- parts -----------------------------------------------------------------------------------

    def _take(self, stream: ResponseStream, request: p4r.StreamMessageRequest) -> None:
        with self._lock:
            deliveries, outputs = self.service.stream_message(stream, request)
            deliver(deliveries)
            known = stream in self.service.arbitration.clients
        if known:
            self._streams.settle(stream)
        self.device.transmit(outputs)

    def _close(self, stream: ResponseStream) -> None:
        with self._lock:
            deliver(self.service.stream_closed(stream))

    def _put_aside(self, message: Message) -> None:
        """Queue a message, so that the thread that runs packets does not wait."""
        if self._messages.qsize() < self._gate.limits.waiting:
            self._messages.put(message)
        else:
            self.device.losses.add(kind_of_message(message))

    def _notify(self) -> None:
        due = time.monotonic()
        while True:
            try:
                message = self._messages.get(timeout=_TICK if self.service.counts_time else _REST)
                if not self._take_some(message):
                    return
            except queue.Empty:
                pass
            self._gate.tick()
            self.device.losses.log_new()
            if time.monotonic() >= due:
                due = time.monotonic() + _TICK
                self._hurry(self._passed > _MANY)
                self._passed = 0
                self._tick()

    def _hurry(self, many: bool) -> None:
        """Have threads take turns sooner while many messages come: gRPC's lets Python's lock go for
        each, and waits for it. Always would cost much where a client opens hundreds of calls."""
        if many and self._interval is None:
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(min(self._interval, _SHORT_TURN))
        elif not many and self._interval is not None:
            sys.setswitchinterval(self._interval)
            self._interval = None

    def _tick(self) -> None:
        try:
            with self._lock:
                deliver(self.service.tick(time.time_ns()))
        except Exception:
            log.exception("digests and idle entries could not be passed on")

    def _take_some(self, message: Message | None) -> bool:
        """Pass messages on that wait, as many as may keep others from the device; return whether
        the server goes on."""
        taken: list[Message] = []
        while message is not None:
            taken.append(message)
            if len(taken) == _MESSAGES or self._messages.empty():
                break
            message = self._messages.get()
        self._passed += len(taken)
        with self._lock:
            deliver(self.service.switch_messages(taken, time.time_ns()))
        return message is not None


_REFUSED = {
    errno.EADDRINUSE: "another program listens there (`ss -ltnp` shows which)",
    errno.EADDRNOTAVAIL: "it is no address of this machine (`ip address` shows them)",
    errno.EACCES: "only root may use a port below 1024",
}


def cannot_listen(address: str, error: OSError | RuntimeError, option: str) -> ServerError:
    """Return the error that says why nothing can listen at an address, and what chooses another."""
    reason = _REFUSED.get(getattr(error, "errno", None) or 0, str(error))
    if isinstance(error, socket.gaierror):
        reason = "no machine has this name"
    return ServerError(f"cannot listen on {address}: {reason}; choose another with {option}")


def check_free(address: str) -> None:
    """Raise OSError where nothing can listen; grpc would print a message of its own as well."""
    host, colon, port = address.rpartition(":")
    if not colon:
        raise OSError("it is not of the form HOST:PORT")
    if not port.isdecimal():
        return  # another kind of address, such as unix:PATH
    if int(port) > _LAST_PORT:
        raise OSError(f"ports end at {_LAST_PORT}")
    failure: OSError | None = None
    for family, kind, _, _, place in socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(place)
                return
            except OSError as error:
                failure = error
    if failure is not None:
        raise failure


def _messages_of(name: str) -> tuple[type[ProtobufMessage], type[ProtobufMessage]]:
    """Return the types of a method's request and response."""
    return getattr(p4r, f"{name}Request"), getattr(p4r, f"{name}Response")
