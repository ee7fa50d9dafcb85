"""Traces of a switch that runs in another process (trace_service.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from gradplane.switch.daemon.json_client import connect, open_call, received, refused

METHOD = "Trace"
ACCEPTED = ("gradplane-trace", "accepted")  # in the initial metadata, once packets are looked at


def traces(
    address: str, port: int | None = None, where: str | None = None, count: int | None = None
) -> Iterator[dict[str, Any]]:
    """Traces of a switch at `address` ("127.0.0.1:9559"), as Switch.tracing chooses them; each
    {"text": ..., "trace": ...}.

    Returns when the switch looks at packets; what is returned waits for them and ends after
    `count`. Raises live_client.Refused, then or later, where the switch cannot be reached or
    refuses.
    """
    wanted = {"port": port, "where": where, "count": count}
    request = {key: value for key, value in wanted.items() if value is not None}
    channel = connect(address)
    call = open_call(channel, METHOD, request)
    try:
        if ACCEPTED not in call.initial_metadata():
            next(call)  # raises what the switch says instead
    except grpc.RpcError as error:
        channel.close()
        raise refused(address, error) from None
    return _received(address, channel, call)


def _received(address: str, channel: grpc.Channel, call: Any) -> Iterator[dict[str, Any]]:
    with channel:
        yield from received(address, call)
