"""The methods of a gRPC service, which decode their requests themselves, and end with statuses.

gRPC answers bytes that are no message with INTERNAL. That status is for faults of the server, and
ill-formed bytes are the client's: they are refused with INVALID_ARGUMENT and the message's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import grpc
from google.protobuf.message import DecodeError, Message

from gradplane.switch.p4runtime.status_errors import RpcError

_STATUS_KEY = "grpc-status-details-bin"


class RpcMethod(NamedTuple):
    """A method. `handler` takes the request, or an iterator of them, and the servicer context."""

    handler: Callable[[Any, grpc.ServicerContext], Any]
    request: type[Message]
    response: type[Message]
    requests: bool = False  # a stream of them
    responses: bool = False


def service_handler(service: str, methods: Mapping[str, RpcMethod]) -> grpc.GenericRpcHandler:
    """Return the handler of a service, by the methods' names."""
    return grpc.method_handlers_generic_handler(
        service, {name: _method_handler(method) for name, method in methods.items()}
    )


def end_rpc(context: grpc.ServicerContext, error: RpcError, details: bytes | None) -> NoReturn:
    """End the RPC with an error; the trailing metadata has its details, a google.rpc.Status."""
    trailing = () if details is None else ((_STATUS_KEY, details),)
    context.abort_with_status(_Status(grpc.StatusCode[error.code], error.message, trailing))
    raise AssertionError("abort_with_status raises")


class _Status(NamedTuple):
    """The status to end an RPC with; grpc wants an object of this form (grpc.Status)."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


_KINDS: Mapping[tuple[bool, bool], Callable[..., grpc.RpcMethodHandler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def _method_handler(method: RpcMethod) -> grpc.RpcMethodHandler:
    def of_stream(requests: Iterable[Message | RpcError], context: grpc.ServicerContext) -> Any:
        return method.handler(_messages(requests), context)

    def of_one(request: Message | RpcError, context: grpc.ServicerContext) -> Any:
        if isinstance(request, RpcError):
            end_rpc(context, request, None)
        return method.handler(request, context)

    return _KINDS[method.requests, method.responses](
        of_stream if method.requests else of_one,
        request_deserializer=_decoder(method.request),
        response_serializer=method.response.SerializeToString,
    )


def _decoder(kind: type[Message]) -> Callable[[bytes], Message | RpcError]:
    """Return a function that decodes a request, or returns why it cannot."""

    def decode(data: bytes) -> Message | RpcError:
        try:
            return kind.FromString(data)
        except DecodeError:
            name = kind.DESCRIPTOR.full_name
            return RpcError(
                "INVALID_ARGUMENT",
                f"the request's {len(data)} bytes are no {name}: compare the client's .proto files"
                " with the service's",
            )

    return decode


def _messages(requests: Iterable[Message | RpcError]) -> Iterator[Message]:
    """Yield a stream's requests; raise RpcError at the first that could not be decoded."""
    for request in requests:
        if isinstance(request, RpcError):
            raise request
        yield request
