"""The methods of a gRPC service: how requests are taken, and calls ended with statuses.

gRPC's server gives a thread to each call that has begun, and lets it wait for the request without
a limit. So a method takes even one request as a stream: its thread then waits here, with others,
and where too many do, or one for too long, that call is ended (`Gate`). The bytes are decoded here,
too, once it is known that they may be so many; gRPC answers bytes that are no message with
INTERNAL, a status for faults of the server, and those are the client's: INVALID_ARGUMENT, with the
message's name. (gRPC's asyncio server needs no thread for a call, but took half as much processor
time again for a Write, and has one queue of events for all loops of a process.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import methodcaller
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gradplane.switch.p4runtime.limits import Limits
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, internal_error, invalid

M = TypeVar("M", bound=Message)

_STATUS_KEY = "grpc-status-details-bin"
_PIECE = 1 << 18  # bytes that are decoded at a time: protobuf keeps Python's lock meanwhile
_ROOM = 1.0  # seconds in which a slow reader that is ended is gone
_ALIVE = 60_000  # milliseconds after which a silent connection is asked whether it is there


class RpcMethod(NamedTuple):
    """A method. `handler` takes the request, or an iterator of them, and the servicer context.

    request: None for plain bytes. large: whether a request above Limits.small_message is taken,
    given its fields below the number `bulk`.
    """

    handler: Callable[[Any, grpc.ServicerContext], Any]
    request: type[Message] | None
    response: type[Message] | None
    requests: bool = False  # a stream of them
    responses: bool = False
    bulk: int = 0
    large: Callable[[Any], bool] = lambda head: False


class Patience:
    """Calls that wait for their client: at most `most` of them, each for at most `seconds`.

    Beyond that the call that has waited for longest, if that is `least` seconds, is ended.
    """

    def __init__(self, most: int, seconds: float, least: float = 0) -> None:
        self._most, self._seconds, self._least = most, seconds, least
        self._lock = Lock()
        self._waiting: dict[object, tuple[float, Callable[[], Any]]] = {}  # the oldest first

    @contextmanager
    def wait(self, end: Callable[[], Any]) -> Iterator[None]:
        """A context in which a call waits; `end` ends it, from another thread."""
        token = object()
        now = time.monotonic()
        with self._lock:
            self._waiting[token] = now, end
            full = len(self._waiting) > self._most
        if full:
            self._expire(now - self._least, 1)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.pop(token, None)

    def tick(self) -> None:
        """End the calls that have waited for too long; to be called from time to time."""
        if self._waiting:
            self._expire(time.monotonic() - self._seconds, len(self._waiting))

    def end_oldest(self) -> None:
        """End the call that has waited for longest, if there is one."""
        self._expire(time.monotonic(), 1)

    def _expire(self, before: float, most: int) -> None:
        ended = []
        with self._lock:
            for token, (since, end) in list(self._waiting.items())[:most]:
                if since > before:
                    break
                del self._waiting[token]
                ended.append(end)
        for end in ended:
            end()


class Gate:
    """The way into a server for all of its calls: it holds their number and sizes to the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._silent = Patience(limits.silent_calls, limits.patience)
        self._stalled = Patience(limits.stalled_reads, limits.read_patience, least=1)
        self._reads = max(1, limits.calls // 2)
        self._free, self._free_reads = BoundedSemaphore(limits.calls), BoundedSemaphore(self._reads)
        self._decoding = Lock()  # of large requests, one at a time

    def server(self, name: str, streams: int) -> tuple[grpc.Server, ThreadPoolExecutor]:
        """Make a gRPC server, and its threads: as many as calls may be open, streams among them."""
        limits = self.limits
        threads = streams + limits.calls + self._reads + limits.silent_calls
        pool = ThreadPoolExecutor(threads, name)
        options = [
            ("grpc.max_receive_message_length", limits.message),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", limits.metadata),
            ("grpc.absolute_max_metadata_size", limits.metadata),
            ("grpc.max_concurrent_streams", limits.connection_calls),
            ("grpc.server_handshake_timeout_ms", 1000 * limits.handshake),
            ("grpc.keepalive_time_ms", _ALIVE),
            ("grpc.so_reuseport", 0),
        ]
        return grpc.server(pool, options=options, maximum_concurrent_rpcs=2 * threads), pool

    def tick(self) -> None:
        """End calls that wait for too long; to be called from time to time."""
        self._silent.tick()
        self._stalled.tick()

    def request(
        self, name: str, method: RpcMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Any:
        """Return a call's only request, decoded. Raises RpcError, or grpc's where it was ended."""
        with self._silent.wait(context.cancel):
            data = next(requests, None)
        if data is None:
            raise invalid(f"{name}: the call has no request; send one message")
        return self.decoded(method, data)

    def decoded(self, method: RpcMethod, data: bytes) -> Any:
        """Decode a request or a message of a stream. Raises RpcError."""
        if method.request is None:
            self._check_size(method, data)
            return data
        try:
            self._check_size(method, data)
            if len(data) <= _PIECE:
                return method.request.FromString(data)
            with self._decoding:
                return _merged(method.request(), _pieces(data))
        except DecodeError:
            name = method.request.DESCRIPTOR.full_name
            raise invalid(
                f"the request's {len(data)} bytes are no {name}: compare the client's .proto files"
                " with the service's"
            ) from None

    def _check_size(self, method: RpcMethod, data: bytes) -> None:
        most = self.limits.small_message
        if len(data) <= most:
            return
        if method.bulk and method.request is not None:
            end = next((at for at, number in _fields(data) if number >= method.bulk), 0)
            if method.large(method.request.FromString(data[:end])):
                return
        what = f"the message has {len(data)} bytes; the limit is {most} (--limit small-message=N)"
        if method.bulk:
            what += " unless it starts with the ids of a primary controller or a bound client"
        raise RpcError("RESOURCE_EXHAUSTED", what)

    @contextmanager
    def call(self, read: bool = False) -> Iterator[None]:
        """A context for a request in progress, or for a read, whose answers its client takes one by
        one: of these there are half as many, so that they keep no write out. Raises RpcError where
        too many are; a slow reader makes room for another."""
        free, most = (self._free_reads, self._reads) if read else (self._free, self.limits.calls)
        if not free.acquire(blocking=False):
            if read:
                self._stalled.end_oldest()
            if not (read and free.acquire(timeout=_ROOM)):
                what = f"{most} {'reads' if read else 'requests'} are in progress, the limit"
                raise RpcError("RESOURCE_EXHAUSTED", f"{what} (--limit calls=N)")
        try:
            yield
        finally:
            free.release()

    def sent(self, answers: Iterable[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield answers, each of which the client must take in time."""
        for answer in answers:
            with self._stalled.wait(context.cancel):
                yield answer


Details = Callable[[BatchError], bytes]
"""Returns the details of a status, a google.rpc.Status."""


def service_handler(
    service: str, methods: Mapping[str, RpcMethod], gate: Gate, details: Details | None = None
) -> grpc.GenericRpcHandler:
    """Return the handler of a service, by the methods' names. A call ends with the RpcError that
    its method raises, and where that is another error, a fault of ours, with INTERNAL."""
    handlers = {}
    for name, method in methods.items():
        place = f"/{service}/{name}"
        handlers[name] = _method_handler(place, _ending(place, method, details), gate)
    return grpc.method_handlers_generic_handler(service, handlers)


def _ending(name: str, method: RpcMethod, details: Details | None) -> RpcMethod:
    @contextmanager
    def ending(context: grpc.ServicerContext) -> Iterator[None]:
        try:
            yield
            return
        except grpc.RpcError:  # the client has ended the call
            raise
        except RpcError as error:
            failure = error
        except Exception as error:
            failure = internal_error(error, name)
        if details is not None and isinstance(failure, BatchError):
            _end_rpc(context, failure, details(failure))
        _end_rpc(context, failure)

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        with ending(context):
            return method.handler(request, context)

    def answers(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        with ending(context):
            yield from method.handler(request, context)

    return method._replace(handler=answers if method.responses else answer)


def _end_rpc(
    context: grpc.ServicerContext, error: RpcError, details: bytes | None = None
) -> NoReturn:
    """End the RPC with an error; the trailing metadata has its details, a google.rpc.Status."""
    trailing = () if details is None else ((_STATUS_KEY, details),)
    context.abort_with_status(_Status(grpc.StatusCode[error.code], error.message, trailing))
    raise AssertionError("abort_with_status raises")


class _Status(NamedTuple):
    """The status to end an RPC with; grpc wants an object of this form (grpc.Status)."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def _method_handler(name: str, method: RpcMethod, gate: Gate) -> grpc.RpcMethodHandler:
    def of_stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        return method.handler((gate.decoded(method, data) for data in requests), context)

    def of_one(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        try:
            request = gate.request(name, method, requests, context)
            with gate.call():
                return method.handler(request, context)
        except RpcError as error:
            _end_rpc(context, error)

    def of_one_with_many(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        try:
            request = gate.request(name, method, requests, context)
            with gate.call(read=True):
                yield from gate.sent(method.handler(request, context), context)
        except RpcError as error:
            _end_rpc(context, error)

    serialize = None if method.response is None else methodcaller("SerializeToString")
    if method.requests:
        return grpc.stream_stream_rpc_method_handler(of_stream, None, serialize)
    if method.responses:
        return grpc.stream_stream_rpc_method_handler(of_one_with_many, None, serialize)
    return grpc.stream_unary_rpc_method_handler(of_one, None, serialize)


# -- messages of any size, piece by piece ----------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the number of each field of a message. Raises DecodeError."""
    at, size = 0, len(data)
    try:
        while at < size:
            start = at
            tag, at = _varint(data, at)
            yield start, tag >> 3
            kind = tag & 7
            if kind == 2:
                length, at = _varint(data, at)
                at += length
            elif kind == 0:
                _, at = _varint(data, at)
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            else:
                raise DecodeError(f"wire type {kind}")
    except IndexError:
        raise DecodeError("the message ends in a number") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts at a place, and the place behind it."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in range(7, 70, 7):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise DecodeError("a number is too long")


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut a message between fields, into pieces that mean the same when they are merged."""
    start = 0
    for at, _ in _fields(data):
        if at - start >= _PIECE:
            yield data[start:at]
            start = at
    yield data[start:]


def _merged(message: M, pieces: Iterable[bytes]) -> M:
    for piece in pieces:
        message.MergeFromString(piece)
    return message
