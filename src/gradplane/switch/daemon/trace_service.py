"""Traces of a running switch for other processes: a gRPC service beside P4Runtime's.

    /gradplane.Switch/Trace: a request, a stream of answers, each a JSON object.
    request: {"port": 1, "where": "hdr.ipv4.ttl == 1", "count": 5}, each key may be left out
    answer:  {"text": Trace.text(), "trace": Trace.json()}

P4Runtime has no messages for traces, and its server is where a switch is reached already; JSON
needs no generated code, here or in a client in another language. The initial metadata hold
`gradplane-trace: accepted` and are sent once the switch examines packets.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import grpc

from gradplane.switch.daemon.clients import ACCEPTED, SERVICE, TRACE
from gradplane.switch.daemon.command_service import json_of, running
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.packet_tracing import Tracing
from gradplane.switch.source import CompileError

_KEYS: dict[str, type] = {"port": int, "where": str, "count": int}
_CHECK = 0.2  # seconds between checks that the program is still the same
_MOST = 1 << 32


class TraceService:
    """Serves the traces of the program on `device`."""

    def __init__(self, device: Device, limits: Limits = DEFAULT_LIMITS) -> None:
        self._device = device
        self._most = limits.traces
        self._free = threading.BoundedSemaphore(self._most)

    def handler(self, gate: Gate) -> grpc.GenericRpcHandler:
        """Return the handler for P4RuntimeServer."""
        return service_handler(
            SERVICE, {TRACE: RpcMethod(self._trace, None, None, responses=True)}, gate
        )

    def _trace(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        wanted = _parsed(request)
        if not self._free.acquire(blocking=False):
            what = f"{self._most} traces are active, the limit (--limit traces=N): end one"
            raise RpcError("RESOURCE_EXHAUSTED", what)
        try:
            pipeline = self._device.pipeline
            with closing(_tracing(pipeline, wanted)) as tracing:
                context.add_callback(tracing.close)
                context.send_initial_metadata((ACCEPTED,))
                yield from self._answers(tracing, pipeline)
        finally:
            self._free.release()

    def _answers(self, tracing: Tracing, pipeline: Pipeline | None) -> Iterator[bytes]:
        while True:
            try:
                trace = tracing.get(timeout=_CHECK)
            except TimeoutError:
                if self._device.pipeline is not pipeline:
                    raise RpcError("ABORTED", "another program was pushed to the switch") from None
                continue
            if trace is None:
                return
            yield json.dumps({"text": trace.text(), "trace": trace.json()}).encode()


def _parsed(request: bytes) -> dict[str, Any]:
    known = ", ".join(f"{key} ({kind.__name__})" for key, kind in _KEYS.items())
    wanted = json_of(request)
    if not isinstance(wanted, dict):
        raise invalid(f"expected a JSON object with keys of {known}")
    for key, value in wanted.items():
        if type(value) is not _KEYS.get(key):
            raise invalid(f"{key!r}: the keys are {known}")
        if isinstance(value, int) and not 0 <= value < _MOST:
            raise invalid(f"{key}: {value} is not within 0 to {_MOST - 1}")
    return wanted


def _tracing(pipeline: Pipeline | None, wanted: dict[str, Any]) -> Tracing:
    try:
        return running(pipeline).tracing(**wanted)
    except CompileError as error:
        raise invalid(str(error)) from error
    except RecursionError:
        raise invalid("the filter is nested too deeply") from None
