"""The streams of a gRPC server: responses that wait, while a thread of its own takes requests."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
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


def deliver(deliveries: Iterable[tuple[object, Any]]) -> None:
    """Send responses to their streams, which a service knows as opaque objects."""
    for stream, message in deliveries:
        assert isinstance(stream, ResponseStream)
        stream.send(message)
