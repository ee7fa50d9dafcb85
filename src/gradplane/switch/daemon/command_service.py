"""simple_switch_CLI's commands for a running switch: a gRPC service beside P4Runtime's.

    /gradplane.Switch/Commands: a request, a stream of answers, each a JSON object.
    request: {"text": "table_dump routes", "file": "s1-commands.txt"}, many lines or runtime JSON
    answer:  {"where": "s1-commands.txt:1", "output": "...", "error": ""}, one for each command
    request: {"complete": "table_dump rou"}, an unfinished line
    answer:  {"choices": ["MyIngress.routes"]}

    /gradplane.Switch/State: a request, a stream of answers.
    request: {}                 answers: {"state": "..."}, the parts of one text
    request: {"state": "..."}   answer:  {}

A command holds the device's lock, as a controller's request does; saving gives it back in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NoReturn

import grpc

from gradplane.switch.commands import CommandTarget, Ports, answers
from gradplane.switch.commands.command_registry import complete
from gradplane.switch.daemon.clients import COMMANDS, SERVICE, STATE
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.switch import Switch

_PART = 1 << 18  # characters of a state in an answer
_FORMS = '{"text": "COMMANDS", "file": "NAME"} or {"complete": "LINE"}'


class CommandService:
    """Runs commands on the current program of `device`."""

    def __init__(self, device: Device, ports: Ports) -> None:
        self._device = device
        self._ports = ports

    def handler(self, gate: Gate) -> grpc.GenericRpcHandler:
        """Return the handler for P4RuntimeServer."""
        methods = {
            COMMANDS: RpcMethod(self._serve, None, None, responses=True),
            STATE: RpcMethod(self._state, None, None, responses=True),
        }
        return service_handler(SERVICE, methods, gate)

    def _serve(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        wanted = _parsed(request, context)
        target = self._target(context)
        if "complete" in wanted:
            yield json.dumps({"choices": complete(target, wanted["complete"])}).encode()
            return
        given = answers(target, wanted["text"], wanted["file"])
        while True:
            with self._device.turn():
                answer = next(given, None)
            if answer is None:
                return
            yield json.dumps(asdict(answer)).encode()

    def _state(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            wanted = json.loads(request)
        except (ValueError, RecursionError):
            wanted = None
        if wanted != {} and not (isinstance(wanted, dict) and list(wanted) == ["state"]):
            _abort(context, "INVALID_ARGUMENT", 'expected {} or {"state": "..."}')
        try:
            if wanted:
                with self._device.turn():
                    self._device.load_state(str(wanted["state"]))
                yield b"{}"
                return
            state = self._device.save_state()
        except RpcError as error:
            _abort(context, error.code, error.message)
        for start in range(0, len(state), _PART):
            yield json.dumps({"state": state[start : start + _PART]}).encode()

    def _target(self, context: grpc.ServicerContext) -> CommandTarget:
        pipeline = self._device.pipeline
        if pipeline is None or not isinstance(pipeline.switch, Switch):
            _abort(context, "FAILED_PRECONDITION", "the switch runs no program yet")
        return CommandTarget(pipeline.switch, self._ports)


def _parsed(request: bytes, context: grpc.ServicerContext) -> dict[str, Any]:
    try:
        wanted = json.loads(request)
    except (ValueError, RecursionError):
        wanted = None
    if (
        not isinstance(wanted, dict)
        or set(wanted) not in ({"text", "file"}, {"complete"})
        or not all(isinstance(value, str) for value in wanted.values())
    ):
        _abort(context, "INVALID_ARGUMENT", f"expected a JSON object: {_FORMS}")
    return wanted


def _abort(context: grpc.ServicerContext, code: str, text: str) -> NoReturn:
    context.abort(grpc.StatusCode[code], text)
    raise AssertionError("abort raises")
