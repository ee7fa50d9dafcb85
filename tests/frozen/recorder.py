"""A pytest plugin that records what the switch's interfaces and the command line answer to tests.

`GRADPLANE_FROZEN_ANSWERS=FILE pytest -p recorder ...` (this folder on the path of imports) writes
FILE: for each test and interface the list of records, each a request and the answer to it. Answers
are taken where all of them pass: in the methods of both services, in every gRPC server of the
process, in `Switch.run_commands`, and in the command line's main group.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

ROOT = Path(__file__).parents[2]
FILE = "GRADPLANE_FROZEN_ANSWERS"
_LONGEST = 3000  # characters of a text that is recorded whole
_LARGEST = 6000  # bytes of a message that is recorded as text
_UNARY = ("write", "read", "set_pipeline", "get_pipeline", "capabilities", "get_config",
          "set_config")  # fmt: skip
_STREAM = ("stream_message", "stream_closed", "switch_message", "tick")
_CHANGING = (
    (re.compile(re.escape(str(ROOT)) + r"/(?:[\w.-]+/)*"), ""),  # files may move in the tree
    (re.compile(r"/tmp/[^\s\"':,)]*"), "TMP"),
    (re.compile(r"\b(127\.0\.0\.1|localhost|\[::1?\]|0\.0\.0\.0):\d+"), r"\1:PORT"),
    (re.compile(r"\btimestamp: \d+"), "timestamp: T"),  # of digests and notices
    (re.compile(r"\b1[5-9]\d{17}\b"), "NOW"),  # nanoseconds
    (re.compile(r"\b\d+\.\d+ ?(s|ms|us|seconds)\b"), r"T \1"),
    (re.compile(r"\b\d+ ms since hit"), "T ms since hit"),
    (re.compile(r"\b0x[0-9a-f]{9,}\b"), "ADDRESS"),
    (re.compile(r"\bgrpc-python/\S+ grpc-c/\S+ \([^)]*\)"), "GRPC"),  # a client's user-agent
)
"""What differs from run to run, and what stands for it: paths, times, addresses, versions."""

_TIMED = ("bfruntime streams", "grpc streams")
_PORTIONS = re.compile(r"\{(digest|idle_timeout_notification) \{")
"""Messages that tell of what came since the last: how much that is depends on time."""


class Recorder:
    """Holds the records of all tests, by test and interface."""

    def __init__(self) -> None:
        self.test = ""
        self._records: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._lock = threading.Lock()

    def add(self, interface: str, method: str, request: object, answer: object) -> None:
        """Record an answer for the test that runs now."""
        # A large request is a program, with paths of this checkout in it.
        asked = re.sub(r"\b\d+ bytes [0-9a-f]{12}", "a large message", shown(request))
        text = f"{method}({asked}) -> {shown(answer)}"
        if interface in _TIMED and _PORTIONS.search(text):
            return
        with self._lock:
            self._records[self.test][interface].append(text)

    def write(self, file: Path) -> None:
        """Write the records as JSON."""
        with self._lock:
            file.write_text(json.dumps(self._records, indent=0), "utf-8")


RECORDER = Recorder()


def shown(value: object) -> str:
    """Return a text of a message, or of anything that holds messages, without what changes from
    run to run."""
    text = normalised(_text(value))
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def normalised(text: str) -> str:
    """Replace paths, ports, times and addresses."""
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text


def _text(value: object) -> str:
    if isinstance(value, Message):
        value = _without_cookie(value)
        if value.ByteSize() > _LARGEST:
            return f"{value.ByteSize()} bytes {_hash(value)}"
        return f"{{{text_format.MessageToString(value, as_one_line=True)}}}"
    if isinstance(value, BaseException):
        errors = "".join(f"; {_text(error)}" for error in getattr(value, "errors", ()))
        return f"{type(value).__name__} {value}{errors}"
    if isinstance(value, bytes):
        return value.hex() if len(value) < _LARGEST else hashlib.sha256(value).hexdigest()
    if value is None or isinstance(value, (str, int, float, bool)):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_text(item)}' for key, item in sorted(value.items()))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return type(value).__name__


def _without_cookie(message: Message) -> Message:
    """Return a pipeline's config without a controller's cookie, a large number that it makes of the
    program, with paths of this checkout in it."""
    config = getattr(message, "config", None)
    if not isinstance(config, Message) or "cookie" not in config.DESCRIPTOR.fields_by_name:
        return message
    copy: Any = type(message)()
    copy.CopyFrom(message)
    if copy.config.cookie.cookie >> 32:
        copy.config.ClearField("cookie")
    return copy


def _hash(message: Message) -> str:
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()[:12]


# -- the services' methods ------------------------------------------------------------------------


def record_service(interface: str, service: type) -> None:
    """Wrap the methods of a service that answer requests and send messages."""
    names = {**dict.fromkeys(_UNARY, interface), **dict.fromkeys(_STREAM, f"{interface} streams")}
    for name, shown_as in names.items():
        if hasattr(service, name):
            setattr(service, name, _recorded(shown_as, name, getattr(service, name)))
    if hasattr(service, "switch_messages"):
        service.switch_messages = _one_by_one


def _one_by_one(self: Any, messages: Iterable[object], now: int) -> Iterator[Any]:
    """Pass messages of the switch on by the method that is recorded, whose answers are no bytes."""
    for message in messages:
        yield from self.switch_message(message, now)


def _recorded(interface: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: object, *given: Any) -> Any:
        try:
            answer = method(self, *given)
        except Exception as error:
            RECORDER.add(interface, name, given, error)
            raise
        if isinstance(answer, Iterator):
            return _passed_on(interface, name, given, answer)
        if name in _UNARY or _says_something(answer):
            RECORDER.add(interface, name, () if name == "tick" else given, answer)
        return answer

    return call


def _says_something(answer: object) -> bool:
    """Return whether a stream's method sends a message; most ticks do not."""
    if isinstance(answer, (list, tuple)):
        return any(map(_says_something, answer))
    return isinstance(answer, (Message, bytes))


def _passed_on(interface: str, name: str, given: object, answers: Iterator[Any]) -> Iterator[Any]:
    seen: list[object] = []
    try:
        for answer in answers:
            seen.append(answer)
            yield answer
    except Exception as error:
        seen.append(error)
        raise
    finally:
        RECORDER.add(interface, name, given, seen)


# -- gRPC -----------------------------------------------------------------------------------------


class Interceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Records calls of methods that a gRPC server does not have."""

    def intercept_service(self, continuation: Callable[..., Any], details: Any) -> Any:
        """Return the handler of a call."""
        handler = continuation(details)
        if handler is None:
            RECORDER.add("grpc", details.method, "", "no such method")
        return handler


def _unary(method: str, behaviour: Callable[..., Any], request: Any, context: Any) -> Any:
    try:
        answer = behaviour(request, context)
    except Exception:
        RECORDER.add("grpc", method, request, _status(context))
        raise
    RECORDER.add("grpc", method, request, answer)
    return answer


def _unary_stream(
    method: str, behaviour: Callable[..., Any], request: Any, context: Any
) -> Iterator[Any]:
    seen: list[object] = []
    try:
        for answer in behaviour(request, context):
            seen.append(answer)
            yield answer
    except Exception:
        seen.append(_status(context))
        raise
    finally:
        RECORDER.add("grpc", method, request, seen)


def _stream(
    method: str, behaviour: Callable[..., Any], requests: Iterable[Any], context: Any
) -> Iterator[Any]:
    """Record the responses only: the order of both directions depends on the threads."""
    try:
        for answer in behaviour(requests, context):
            RECORDER.add("grpc streams", method, "", answer)
            yield answer
    except Exception:
        RECORDER.add("grpc streams", method, "", _status(context))
        raise


def _status(context: Any) -> list[object]:
    code, details = context.code(), context.details()
    trailing = [value for _, value in context.trailing_metadata() or ()]
    text = details.decode() if isinstance(details, bytes) else details
    return [getattr(code, "name", str(code)), text, *trailing]


def record_grpc() -> None:
    """Record the answers of every gRPC server that is made from now on, with the status that ends
    each call."""
    from gradplane.switch.p4runtime import grpc_methods, response_streams

    response_streams._grpc_server = None  # all responses are yielded
    make = grpc.server

    def server(*given: Any, interceptors: Sequence[Any] = (), **named: Any) -> Any:
        return make(*given, interceptors=(Interceptor(), *(interceptors or ())), **named)

    grpc.server = server
    with_gate = grpc_methods._method_handler

    def handler(name: str, method: grpc_methods.RpcMethod, gate: grpc_methods.Gate) -> Any:
        of = _stream if method.requests else _unary_stream if method.responses else _unary
        recorded = method._replace(handler=functools.partial(of, name, method.handler))
        return with_gate(name, recorded, gate)

    grpc_methods._method_handler = handler


# -- commands -------------------------------------------------------------------------------------


def record_commands(switch: type) -> None:
    """Record the answers to simple_switch's commands."""
    run = switch.run_commands  # type: ignore[attr-defined]

    @functools.wraps(run)
    def run_commands(self: object, text: str, *rest: Any, **named: Any) -> Any:
        try:
            answer = run(self, text, *rest, **named)
        except Exception as error:
            RECORDER.add("commands", "run", text, error)
            raise
        RECORDER.add("commands", "run", text, answer)
        return answer

    switch.run_commands = run_commands  # type: ignore[attr-defined]


def record_command_line(group: type) -> None:
    """Record what the command line prints, and its exit status."""
    run = group.main  # type: ignore[attr-defined]

    @functools.wraps(run)
    def main(self: object, args: Any = None, *rest: Any, **named: Any) -> Any:
        given = list(args if args is not None else sys.argv[1:])
        out, err = _Tee(sys.stdout), _Tee(sys.stderr)
        sys.stdout, sys.stderr = out, err  # type: ignore[assignment]
        end: object = 0
        try:
            return run(self, args, *rest, **named)
        except BaseException as error:
            end = error.code if isinstance(error, SystemExit) else error
            raise
        finally:
            sys.stdout, sys.stderr = out.under, err.under
            RECORDER.add("command line", "gradplane", given, [end, out.text(), err.text()])

    group.main = main  # type: ignore[attr-defined]


class _Tee:
    """Passes text on to a stream, and keeps it."""

    def __init__(self, under: Any) -> None:
        self.under = under
        self._kept = io.StringIO()

    def write(self, text: str) -> int:
        """Write, and keep."""
        self._kept.write(text)
        written: int = self.under.write(text)
        return written

    def text(self) -> str:
        """Return what was written."""
        return self._kept.getvalue()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


# -- the plugin -----------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Put the recorder in place."""
    if FILE not in os.environ:
        raise pytest.UsageError(f"set {FILE} to the file that the records are written to")
    from typer.core import TyperGroup

    from gradplane.switch import Switch
    from gradplane.switch.bfruntime.service import BfRuntimeService
    from gradplane.switch.p4runtime.service import P4RuntimeService

    record_service("p4runtime", P4RuntimeService)
    record_service("bfruntime", BfRuntimeService)
    record_grpc()
    record_commands(Switch)
    record_command_line(TyperGroup)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the test that runs now, without its folder: tests move with what they test."""
    module, _, test = nodeid.partition("::")
    RECORDER.test = normalised(f"{Path(module).stem}::{test}")


def pytest_sessionfinish() -> None:
    """Write the records."""
    RECORDER.write(Path(os.environ[FILE]))
