"""Clients of a running switch's services beside P4Runtime: JSON objects over gRPC.

They are on the address of its P4Runtime server (trace_service.py, command_service.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from gradplane._connection_reasons import short_reason
from gradplane._user_folders import temporary_folder
from gradplane.switch.p4runtime.limits import DEFAULT_ADDRESS
from gradplane.switch.runtime.control_errors import SwitchError

SERVICE = "gradplane.Switch"
COMMANDS, STATE, TRACE = "Commands", "State", "Trace"  # its methods
ACCEPTED = ("gradplane-trace", "accepted")  # in the initial metadata, once packets are examined


def local_socket(address: str) -> Path:
    """Return the Unix socket on which a switch with this P4Runtime address serves its own user.

    It is in a folder that only the user can enter. Its name has the network namespace, in which
    another switch may have the same address.
    """
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(given) / "gradplane" if given else temporary_folder()
    port = address.rpartition(":")[2].replace("/", "_")  # or the path of unix:PATH
    network = os.stat("/proc/self/ns/net").st_ino
    return folder / f"switch-{port}-{network}.sock"


def default_address() -> str:
    """Return the address of the switch of this machine: its Unix socket if it has one, else
    P4Runtime's own port."""
    socket = local_socket(DEFAULT_ADDRESS)
    return f"unix:{socket}" if socket.is_socket() else DEFAULT_ADDRESS


class Refused(SwitchError):
    """A running switch does not answer or refuses a request; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The TLS of a client: the authority of the server's certificate, as a PEM file.

    cert, key: the client's own certificate and private key, where the server requires them.
    """

    cacert: Path
    cert: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files. Raises OSError."""
        read = [None if f is None else f.read_bytes() for f in (self.cacert, self.key, self.cert)]
        return grpc.ssl_channel_credentials(*read)


class CommandClient:
    """simple_switch_CLI's commands for the switch at `address` ("127.0.0.1:9559").

    Its methods raise Refused where the switch cannot be reached.
    """

    def __init__(self, address: str, tls: ClientTls | None = None) -> None:
        self.address = address
        self._channel = _connect(address, tls)

    def run(self, text: str, file: str) -> Iterator[dict[str, str]]:
        """Run a text of commands, or a runtime JSON file; `file` names it in answers.

        Yields an answer for each: {"where": "FILE:LINE", "output": ..., "error": the reason or ""}.
        """
        call = _open_call(self._channel, COMMANDS, {"text": text, "file": file})
        yield from _answers(self.address, call)

    def complete(self, line: str) -> list[str]:
        """Return the completions of the last word of an unfinished line."""
        call = _open_call(self._channel, COMMANDS, {"complete": line})
        return [choice for answer in _answers(self.address, call) for choice in answer["choices"]]

    def queue_drops(self) -> dict[int, int]:
        """Return the packets that found their queue full, by port."""
        drops: dict[int, int] = {}
        (answer,) = self.run("show_queues", "queues")
        for row in answer["output"].splitlines()[1:]:
            port, *_, dropped = map(int, row.split())
            drops[port] = drops.get(port, 0) + dropped
        return drops

    def save_state(self) -> str:
        """Return the state of the switch as text, for `load_state`."""
        call = _open_call(self._channel, STATE, {})
        return "".join(answer["state"] for answer in _answers(self.address, call))

    def load_state(self, state: str) -> None:
        """Start the switch's program anew with this state."""
        list(_answers(self.address, _open_call(self._channel, STATE, {"state": state})))

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> CommandClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def traces(
    address: str,
    port: int | None = None,
    where: str | None = None,
    count: int | None = None,
    tls: ClientTls | None = None,
) -> Iterator[dict[str, Any]]:
    """Return an iterator of traces of a switch at `address` ("127.0.0.1:9559"), chosen as by
    Switch.tracing; each is {"text": ..., "trace": ...}.

    The function returns when the switch has started to examine packets; the iterator waits for them
    and ends after `count`. Both raise Refused where the switch cannot be reached or refuses.
    """
    wanted = {"port": port, "where": where, "count": count}
    request = {key: value for key, value in wanted.items() if value is not None}
    channel = _connect(address, tls)
    call = _open_call(channel, TRACE, request)
    try:
        if ACCEPTED not in call.initial_metadata():
            next(call)  # raises the switch's refusal
    except grpc.RpcError as error:
        channel.close()
        raise refused(address, error) from None
    return _received(address, channel, call)


def _received(address: str, channel: grpc.Channel, call: Any) -> Iterator[dict[str, Any]]:
    with channel:
        yield from _answers(address, call)


def _connect(address: str, tls: ClientTls | None) -> grpc.Channel:
    """Open a channel to a switch; answers may be of any length."""
    options = [("grpc.max_receive_message_length", -1)]
    if tls is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, tls.credentials(), options)


def _open_call(channel: grpc.Channel, method: str, request: dict[str, Any]) -> Any:
    """Call one of the service's methods, whose answers are JSON."""
    return channel.unary_stream(f"/{SERVICE}/{method}")(json.dumps(request).encode())


def _answers(address: str, call: Any) -> Iterator[dict[str, Any]]:
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
        text = f"no switch answers at {address}, or no longer: {short_reason(details)}"
        if any(sign in details for sign in ("Socket closed", "handshake")):
            text += (
                "\nDoes it use TLS (--cacert), or require a client's certificate (--cert, --key)?"
            )
        return Refused(text)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return Refused(f"the server at {address} is not a gradplane switch: {details}")
    return Refused(details)
