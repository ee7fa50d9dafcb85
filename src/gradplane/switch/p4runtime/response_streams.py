"""The streams of a gRPC server: responses that wait, while a thread of its own takes requests."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc

from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS
from gradplane.switch.p4runtime.status_errors import RpcError, internal_error

try:  # gRPC's own inside: see Burst
    from grpc import _server as _grpc_server
    from grpc._cython import cygrpc
except ImportError:  # pragma: no cover - of a later gRPC
    _grpc_server = None

log = logging.getLogger(__name__)

_BURST = "a burst of responses"  # an operation of a call, among gRPC's own
_NEEDED = "condition", "due", "initial_metadata_allowed"  # of the state of a call
_NOTHING = object()


class Losses:
    """Counts the messages that found too many waiting for a slow client, or for the switch's own
    thread, by kind. A line in the log, one a second at most, says how many are new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._due = 0.0  # by the clock of time.monotonic

    def add(self, kind: str) -> None:
        """Count a message that is lost, and log the losses when it is time to."""
        with self._lock:
            self._counts[kind] += 1
        if time.monotonic() >= self._due:
            self.log_new()

    def log_new(self) -> None:
        """Log the losses since the last time, unless that was within a second."""
        now = time.monotonic()
        with self._lock:
            new = self._counts - self._told
            if not new or now < self._due:
                return
            self._due, self._told = now + 1, Counter(self._counts)
        what = ", ".join(f"{count} {kind}" for kind, count in sorted(new.items()))
        log.warning("lost since no controller read them in time: %s (--limit waiting=N)", what)

    @property
    def counts(self) -> dict[str, int]:
        """How many messages of each kind are lost."""
        with self._lock:
            return dict(self._counts)


class Encoded(NamedTuple):
    """A response as bytes; kind: the field of the message that is set."""

    data: bytes
    kind: str

    def SerializeToString(self) -> bytes:  # noqa: N802 - as messages have it
        return self.data


class ResponseStream:
    """An open stream. Any thread may `send`. most: the messages that wait for a slow client."""

    def __init__(self, losses: Losses | None = None, most: int = DEFAULT_LIMITS.waiting) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()  # RpcError, None: the end
        self._losses = Losses() if losses is None else losses
        self._most = most

    def send(self, message: Any) -> None:
        """Let a response, a message or Encoded, wait for its turn."""
        if self._waiting.qsize() < self._most:
            self._waiting.put(message)
        else:
            self._losses.add(_kind_of(message))

    def end(self, error: RpcError | None = None) -> None:
        """End the stream once the waiting responses are sent; with an error, if there is one."""
        self._waiting.put(error)

    def serve(
        self,
        requests: Iterable[Any],
        handle: Callable[[Any], None],
        closed: Callable[[], None],
        name: str,
        context: grpc.ServicerContext,
    ) -> Iterator[Any]:
        """Handle requests in a thread of this name; yield the responses, or send them by `context`.

        closed: called when either side has ended the stream. Raises RpcError where a request was
        refused."""
        args = requests, handle, closed
        threading.Thread(target=self._listen, args=args, name=name, daemon=True).start()
        burst = Burst.on(context, self._waiting)
        item = self._waiting.get()
        while item is not None:
            if isinstance(item, RpcError):
                raise item
            if burst is not None and burst.possible:
                item = burst.send(item)
            else:
                yield item
                item = self._waiting.get()

    def _listen(
        self, requests: Iterable[Any], handle: Callable[[Any], None], closed: Callable[[], None]
    ) -> None:
        try:
            for request in requests:
                handle(request)
        except RpcError as error:
            self._waiting.put(error)
        except grpc.RpcError:
            log.debug("a client closed its stream")
        except Exception as error:
            self._waiting.put(internal_error(error, "a message on a stream"))
        finally:
            closed()
            self._waiting.put(None)


class Burst:
    """Sends the responses of a stream that wait, each as soon as the transport has the one before.

    gRPC's server takes responses from an iterator, and wakes its thread for each, which costs 100
    microseconds. This uses what is beneath (grpc._server, the same since 1.60): a response that is
    sent sends the next from gRPC's own thread, and all but the last have a hint that more follow,
    so that they share system calls. That costs 8 microseconds.
    """

    def __init__(self, state: Any, call: Any, waiting: queue.SimpleQueue[Any]) -> None:
        self._state, self._call, self._waiting = state, call, waiting
        self._stopped: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @staticmethod
    def on(context: Any, waiting: queue.SimpleQueue[Any]) -> Burst | None:
        """Return the burst of a call; None where this gRPC has another inside."""
        state = getattr(context, "_state", None)
        call = getattr(getattr(context, "_rpc_event", None), "call", None)
        there = all(hasattr(state, name) for name in _NEEDED)
        if _grpc_server is None or not there or not hasattr(call, "start_server_batch"):
            return None
        return Burst(state, call, waiting)

    @property
    def possible(self) -> bool:
        """Whether the first response is sent; gRPC sends initial metadata with that one."""
        return not self._state.initial_metadata_allowed

    def send(self, first: Any) -> Any:
        """Send a response and those that wait behind it. Return the next item that is none, or that
        came later; None also where the client is gone."""
        with self._state.condition:
            if not _grpc_server._is_rpc_state_active(self._state):
                return None
            self._state.due.add(_BURST)
            self._start(first)
        end = self._stopped.get()
        return self._waiting.get() if end is _NOTHING else end

    def _start(self, response: Any) -> None:
        more = not self._waiting.empty()
        flags = cygrpc.WriteFlag.buffer_hint if more else 0
        operation = cygrpc.SendMessageOperation(response.SerializeToString(), flags)
        self._call.start_server_batch((operation,), self._sent)

    def _sent(self, event: object) -> Any:
        """Send the next response, in gRPC's thread; return what it is to do for the call."""
        with self._state.condition:
            item = None
            if _grpc_server._is_rpc_state_active(self._state):
                item = _next(self._waiting)
                if item is not None and item is not _NOTHING and not isinstance(item, RpcError):
                    self._start(item)
                    return None, ()
            to_do = _grpc_server._possibly_finish_call(self._state, _BURST)
        self._stopped.put(item)
        return to_do


def _next(waiting: queue.SimpleQueue[Any]) -> Any:
    try:
        return waiting.get_nowait()
    except queue.Empty:
        return _NOTHING


class StreamSlots:
    """The open streams of a server, at most `most`; what: the limit's name.

    Beyond that the oldest stream that has not said yet what it is for is ended, so that streams
    which say nothing keep nobody out; where all have, the new one is refused.
    """

    def __init__(self, most: int, what: str = "streams") -> None:
        self._most, self._what = most, what
        self._lock = threading.Lock()
        self._open: dict[ResponseStream, bool] = {}  # whether it is settled; the oldest first

    @contextmanager
    def use(self, stream: ResponseStream) -> Iterator[None]:
        """A context in which a stream is open. Raises RpcError where there is no place for it."""
        with self._lock:
            silent = next((one for one, settled in self._open.items() if not settled), None)
            full = len(self._open) >= self._most
            if full and silent is None:
                raise too_many_streams(self._most, self._what)
            if full and silent is not None:
                del self._open[silent]
                silent.end(too_many_streams(self._most, self._what))
            self._open[stream] = False
        try:
            yield
        finally:
            with self._lock:
                self._open.pop(stream, None)

    def settle(self, stream: ResponseStream) -> None:
        """Keep a stream open from now on: its client has said what it is for."""
        with self._lock:
            if stream in self._open:
                self._open[stream] = True


def too_many_streams(most: int, what: str = "streams") -> RpcError:
    text = f"{most} {what} are open, the limit (--limit {what}=N)"
    return RpcError("RESOURCE_EXHAUSTED", text)


def _kind_of(message: Any) -> str:
    """Return the word for responses of this kind, for people."""
    if isinstance(message, Encoded):
        name = message.kind
    else:
        name = message.WhichOneof(message.DESCRIPTOR.oneofs[0].name) or "empty messages"
    return _WORDS.get(name, name)


_WORDS = {"packet": "packet-ins", "digest": "digests", "idle_timeout_notification": "idle notices",
          "arbitration": "notices of arbitration"}  # fmt: skip


def deliver(deliveries: Iterable[tuple[object, Any]]) -> None:
    """Send responses to their streams, which a service knows as opaque objects."""
    for stream, message in deliveries:
        assert isinstance(stream, ResponseStream)
        stream.send(message)
