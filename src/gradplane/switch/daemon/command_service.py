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
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

from gradplane.switch.commands import CommandTarget, Ports, answers, changing
from gradplane.switch.commands.command_registry import complete
from gradplane.switch.daemon.clients import COMMANDS, SERVICE, STATE
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.switch import Switch

_PART = 1 << 18  # characters of a state in an answer
_FORMS = '{"text": "COMMANDS", "file": "NAME"} or {"complete": "LINE"}'


log = logging.getLogger(__name__)


class CommandService:
    """Runs commands on the current program of `device`.

    While a controller is primary, only the switch's own user changes something, by the Unix socket
    or from this machine; guarded: clients on the network need certificates, and only those who come
    by the Unix socket do. `primaries`: returns the primary controllers.
    """

    def __init__(self, device: Device, ports: Ports, guarded: bool = False) -> None:
        self._device = device
        self._ports = ports
        self._guarded = guarded
        self._warned = 0.0  # when, by the clock of time.monotonic
        self.primaries: Callable[[], Sequence[object]] = lambda: ()

    def handler(self, gate: Gate) -> grpc.GenericRpcHandler:
        """Return the handler for P4RuntimeServer."""
        methods = {
            COMMANDS: RpcMethod(self._serve, None, None, responses=True),
            STATE: RpcMethod(self._state, None, None, responses=True),
        }
        return service_handler(SERVICE, methods, gate)

    def _serve(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        wanted = _parsed(request)
        target = self._target()
        if "complete" in wanted:
            yield json.dumps({"choices": complete(target, wanted["complete"])}).encode()
            return
        changing_one = changing(wanted["text"])
        if changing_one is not None:
            self._check_change(changing_one, context)
        given = answers(target, wanted["text"], wanted["file"])
        while True:
            with self._device.turn():
                answer = next(given, None)
            if answer is None:
                return
            yield json.dumps(asdict(answer)).encode()

    def _state(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        wanted = json_of(request)
        if wanted != {} and not (isinstance(wanted, dict) and list(wanted) == ["state"]):
            raise invalid('expected {} or {"state": "..."}')
        if wanted:
            self._check_change("load_state", context)
            with self._device.turn():
                self._device.load_state(str(wanted["state"]))
            yield b"{}"
            return
        state = self._device.save_state()
        for start in range(0, len(state), _PART):
            yield json.dumps({"state": state[start : start + _PART]}).encode()

    def _check_change(self, name: str, context: grpc.ServicerContext) -> None:
        """Refuse a change beside a primary controller, or log it."""
        if not self.primaries():
            return
        peer = context.peer()
        if not peer.startswith("unix:") and (self._guarded or not _same_user(peer)):
            what = "a controller is primary, and commands of others than the switch's user, or from"
            what += " a network with certificates, change nothing then"
            way = "run it as that user on the switch's machine, by its Unix socket (gradplane cli"
            raise RpcError("PERMISSION_DENIED", f"{name}: {what}: {way} without --at)")
        if time.monotonic() - self._warned >= 1:
            self._warned = time.monotonic()
            log.warning("%s changes the switch beside a primary controller", name)

    def _target(self) -> CommandTarget:
        switch = running(self._device.pipeline)
        return CommandTarget(switch, self._ports, self._device.losses.counts)


def running(pipeline: Pipeline | None) -> Switch:
    """Return the switch that runs a pipeline. Raises RpcError where there is none."""
    if pipeline is None or not isinstance(pipeline.switch, Switch):
        raise RpcError("FAILED_PRECONDITION", "the switch runs no program yet")
    return pipeline.switch


_ESTABLISHED = "01"  # the state of a connection in /proc/net/tcp
_MAPPED = bytes(10) + b"\xff\xff"  # before an IPv4 address in a socket of both families


def _same_user(peer: str) -> bool:
    """Return whether a TCP peer, "ipv4:127.0.0.1:40000", is a program of this machine that runs as
    the user of this one, or as root: the kernel lists the sockets of both ends, with their users.
    """
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    try:
        address = ip_address(host.strip("[]").partition("%")[0]).packed
        tables = [Path(f"/proc/self/net/{name}").read_text() for name in ("tcp", "tcp6")]
    except (OSError, ValueError):
        return False
    forms = (address, _MAPPED + address) if len(address) == 4 else (address,)
    wanted = {f"{_hex_words(form)}:{int(port):04X}" for form in forms}
    rows = (line.split() for table in tables for line in table.splitlines())
    users = [int(row[7]) for row in rows if row[1] in wanted and row[3] == _ESTABLISHED]
    return bool(users) and all(user in (0, os.getuid()) for user in users)


def _hex_words(address: bytes) -> str:
    """Return an address as /proc/net/tcp has it: words of this machine's byte order."""
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", address))


def json_of(request: bytes) -> Any:
    """Return what JSON says, None where it is none."""
    try:
        return json.loads(request)
    except (ValueError, RecursionError):
        return None


def _parsed(request: bytes) -> dict[str, str]:
    wanted = json_of(request)
    if (
        not isinstance(wanted, dict)
        or set(wanted) not in ({"text", "file"}, {"complete"})
        or not all(isinstance(value, str) for value in wanted.values())
    ):
        raise invalid(f"expected a JSON object: {_FORMS}")
    return wanted
