"""How other processes ask a running switch for what P4Runtime has no place for: JSON objects over
gRPC, on the address of its P4Runtime server (trace_service.py, command_service.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc

from gradplane.switch.runtime.control_errors import SwitchError

SERVICE = "gradplane.Switch"


class Refused(SwitchError):
    """A running switch does not answer, or does not do what it was asked; the text says why."""


def connect(address: str) -> grpc.Channel:
    """A channel to a switch; answers may be of any length."""
    return grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])


def open_call(channel: grpc.Channel, method: str, request: dict[str, Any]) -> Any:
    """A call of one of the service's methods, whose answers are bytes of JSON."""
    return channel.unary_stream(f"/{SERVICE}/{method}")(json.dumps(request).encode())


def received(address: str, call: Any) -> Iterator[dict[str, Any]]:
    """A call's answers. Raises Refused."""
    try:
        for answer in call:
            yield json.loads(answer)
    except grpc.RpcError as error:
        raise refused(address, error) from None


def refused(address: str, error: Any) -> Refused:
    """What a call failed with, as text for people."""
    code, details = error.code(), error.details()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return Refused(f"no switch answers at {address}, or no longer: {details}")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return Refused(f"what answers at {address} is no switch of gradplane: {details}")
    return Refused(details)
