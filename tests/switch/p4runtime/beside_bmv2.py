"""simple_switch_grpc beside this switch, where it is on PATH: a process, and controllers of it."""

from __future__ import annotations

import queue
import shutil
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch


def real_switch(cpu_port: int | None = None) -> Bmv2Switch:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    return Bmv2Switch(target, cpu_port)


class Controller:
    """A stream of its own to simple_switch_grpc."""

    def __init__(self, switch: Bmv2Switch) -> None:
        self._sent: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._answers = switch.channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel",
            p4r.StreamMessageRequest.SerializeToString,
            p4r.StreamMessageResponse.FromString,
        )(iter(self._sent.get, None))

    def announce(self, *election_id: int, device: int = 0) -> str:
        """Return the first words of the answer: "Is primary", or the stream's code.

        election_id: high and low, or nothing for none.
        """
        update = p4r.MasterArbitrationUpdate(device_id=device)
        if election_id:
            update.election_id.high, update.election_id.low = election_id
        self.send(p4r.StreamMessageRequest(arbitration=update))
        try:
            return str(next(self._answers).arbitration.status.message)
        except grpc.RpcError as error:
            return str(error.code().name)

    def send(self, message: p4r.StreamMessageRequest) -> None:
        self._sent.put(message)

    def leave(self) -> None:
        """End the stream."""
        self._sent.put(None)
        for _ in self._answers:
            pass


def called(switch: Bmv2Switch, name: str, message: Any) -> str:
    """Return the code's name that an RPC with one answer ends with; message: it, or its bytes."""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    try:
        switch.channel.unary_unary(f"/p4.v1.P4Runtime/{name}")(data, timeout=10)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def leave(switch: Bmv2Switch) -> None:
    """End the primary's stream that every Bmv2Switch has."""
    switch._requests.put(None)


def ended(switch: Bmv2Switch) -> int:
    """Wait for the end of the process; return its status."""
    return switch._process.wait(10)
