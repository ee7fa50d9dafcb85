"""The streams of a gRPC server: responses that wait, while a thread of its own takes requests."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from gradplane.switch.p4runtime.status_errors import RpcError, internal_error

WAITING = 10_000
"""How many responses may wait for a slow client; more are dropped."""

log = logging.getLogger(__name__)


class ResponseStream:
    """An open stream. Any thread may `send`."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Any] = queue.Queue()  # an RpcError or None ends the stream

    def send(self, message: Any) -> None:
        """Let a response wait for its turn."""
        if self._waiting.qsize() < WAITING:
            self._waiting.put(message)

    def end(self, error: RpcError | None = None) -> None:
        """End the stream once the waiting responses are sent; with an error, if there is one."""
        self._waiting.put(error)

    def serve(
        self,
        requests: Iterable[Any],
        handle: Callable[[Any], None],
        closed: Callable[[], None],
        name: str,
    ) -> Iterator[Any]:
        """Handle requests in a thread of this name; yield the responses.

        closed: called when either side has ended the stream. Raises RpcError where a request was
        refused."""
        args = requests, handle, closed
        threading.Thread(target=self._listen, args=args, name=name, daemon=True).start()
        while (item := self._waiting.get()) is not None:
            if isinstance(item, RpcError):
                raise item
            yield item

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


class StreamSlots:
    """The open streams of a server, at most `most`.

    Beyond that the oldest stream that has not said yet what it is for is ended, so that streams
    which say nothing keep nobody out; where all have, the new one is refused.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[ResponseStream, bool] = {}  # whether it is settled; the oldest first

    @contextmanager
    def use(self, stream: ResponseStream) -> Iterator[None]:
        """A context in which a stream is open. Raises RpcError where there is no place for it."""
        with self._lock:
            silent = next((one for one, settled in self._open.items() if not settled), None)
            full = len(self._open) >= self._most
            if full and silent is None:
                raise too_many_streams(self._most)
            if full and silent is not None:
                del self._open[silent]
                silent.end(too_many_streams(self._most))
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


def too_many_streams(most: int) -> RpcError:
    return RpcError("RESOURCE_EXHAUSTED", f"{most} streams are open, the limit")


def deliver(deliveries: Iterable[tuple[object, Any]]) -> None:
    """Send responses to their streams, which a service knows as opaque objects."""
    for stream, message in deliveries:
        assert isinstance(stream, ResponseStream)
        stream.send(message)
