"""Clients of a running switch's services beside P4Runtime: JSON objects over gRPC.

They are on the address of its P4Runtime server (trace_service.py, command_service.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc

from gradplane.switch.runtime.control_errors import SwitchError

SERVICE = "gradplane.Switch"


class Refused(SwitchError):
    """A running switch does not answer or refuses a request; the message gives the reason."""


def connect(address: str) -> grpc.Channel:
    """Open a channel to a switch; answers may be of any length."""
    return grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])


def open_call(channel: grpc.Channel, method: str, request: dict[str, Any]) -> Any:
    """Call one of the service's methods, whose answers are JSON."""
    return channel.unary_stream(f"/{SERVICE}/{method}")(json.dumps(request).encode())


def received(address: str, call: Any) -> Iterator[dict[str, Any]]:
    """Yield a call's answers. Raises Refused."""
    try:
        for answer in call:
            yield json.loads(answer)
    except grpc.RpcError as error:
        raise refused(address, error) from None


def refused(address: str, error: Any) -> Refused:
    """Convert a call's error to a message for people."""
    code, details = error.code(), error.details()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return Refused(f"no switch answers at {address}, or no longer: {details}")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return Refused(f"what answers at {address} is no switch of gradplane: {details}")
    return Refused(details)
