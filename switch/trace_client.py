"""Traces of a switch that runs in another process (trace_service.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc

from gradplane.switch.runtime.errors import SwitchError

SERVICE, METHOD = "gradplane.Switch", "Trace"
ACCEPTED = ("gradplane-trace", "accepted")  # in the initial metadata, once packets are looked at


class TraceRefused(SwitchError):
    """A switch gives no traces, or no more; the text says why."""


def traces(
    address: str, port: int | None = None, where: str | None = None, count: int | None = None
) -> Iterator[dict[str, Any]]:
    """Traces of a switch at `address` ("127.0.0.1:9559"), as Switch.tracing chooses them; each
    {"text": ..., "trace": ...}.

    Returns when the switch looks at packets; what is returned waits for them and ends after
    `count`. Raises TraceRefused, then or later, where the switch cannot be reached or refuses.
    """
    wanted = {"port": port, "where": where, "count": count}
    request = json.dumps({key: value for key, value in wanted.items() if value is not None})
    channel = grpc.insecure_channel(address)
    call = channel.unary_stream(f"/{SERVICE}/{METHOD}")(request.encode())
    try:
        if ACCEPTED not in call.initial_metadata():
            next(call)  # raises what the switch says instead
    except grpc.RpcError as error:
        channel.close()
        raise _refused(address, error) from None
    return _received(address, channel, call)


def _received(address: str, channel: grpc.Channel, call: Any) -> Iterator[dict[str, Any]]:
    with channel:
        try:
            for answer in call:
                yield json.loads(answer)
        except grpc.RpcError as error:
            raise _refused(address, error) from None


def _refused(address: str, error: Any) -> TraceRefused:
    code, details = error.code(), error.details()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return TraceRefused(f"no switch answers at {address}, or no longer: {details}")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return TraceRefused(f"what answers at {address} gives no traces: {details}")
    return TraceRefused(details)
