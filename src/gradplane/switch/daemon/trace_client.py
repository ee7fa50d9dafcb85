"""Traces of a switch that runs in another process (trace_service.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from gradplane.switch.daemon.clients import connect, open_call, received, refused

METHOD = "Trace"
ACCEPTED = ("gradplane-trace", "accepted")  # in the initial metadata, once packets are examined


def traces(
    address: str, port: int | None = None, where: str | None = None, count: int | None = None
) -> Iterator[dict[str, Any]]:
    """Return an iterator of traces of a switch at `address` ("127.0.0.1:9559"), chosen as by
    Switch.tracing; each is {"text": ..., "trace": ...}.

    The function returns when the switch has started to examine packets; the iterator waits for them
    and ends after `count`. Both raise Refused where the switch cannot be reached or refuses.
    """
    wanted = {"port": port, "where": where, "count": count}
    request = {key: value for key, value in wanted.items() if value is not None}
    channel = connect(address)
    call = open_call(channel, METHOD, request)
    try:
        if ACCEPTED not in call.initial_metadata():
            next(call)  # raises the switch's refusal
    except grpc.RpcError as error:
        channel.close()
        raise refused(address, error) from None
    return _received(address, channel, call)


def _received(address: str, channel: grpc.Channel, call: Any) -> Iterator[dict[str, Any]]:
    with channel:
        yield from received(address, call)
