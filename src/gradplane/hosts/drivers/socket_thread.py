"""A SocketEnvironment in a thread, so that peers get answers while a program computes."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from gradplane.hosts.drivers.socket_environment import Receive, SocketEnvironment
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.protocols.fast_results import WorkerRecord

T = TypeVar("T")


class SocketThread:
    """The environment `env`, its thread from start() on, and calls into that thread.

    `failed` is called in the thread with each exception of a datagram's or timer's handler; the
    loop continues. log: a file for the environment's records, "" for none. OSError if it cannot be
    written.
    """

    def __init__(self, ip: str, failed: Callable[[Exception], None], log: str = "") -> None:
        self._failed = failed
        self._calls: deque[Callable[[], None]] = deque()
        self._running = True
        with contextlib.ExitStack() as opened:
            records = opened.enter_context(open(log or os.devnull, "w", buffering=1))
            self.env = opened.enter_context(SocketEnvironment(ip, records))
            self._reader, self._writer = os.pipe()
            opened.callback(os.close, self._reader)
            opened.callback(os.close, self._writer)
            self.env.watch(self._reader, self._called)
            self._opened = opened.pop_all()
        self._thread = threading.Thread(target=self._run, name=f"sockets of {ip}", daemon=True)

    def listen(
        self, port: int, receive: Receive, fast: WorkerRecord | None = None, peer: Peer = ("", 0)
    ) -> None:
        """Bind a port, before start(); see SocketEnvironment. OSError, with all closed, where that
        fails."""
        try:
            self.env.listen(port, receive, fast, peer)
        except OSError:
            self._opened.close()
            raise

    def start(self) -> None:
        """Start the thread; datagrams that arrived before wait in the socket."""
        self._thread.start()

    def call(self, function: Callable[[], T]) -> "Future[T]":
        """Run function() in the thread; the future gets its result or exception."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

        self._calls.append(run)
        os.write(self._writer, b"x")
        return future

    def close(self) -> None:
        """End the thread and close the sockets."""
        self.call(self._stop).result()
        self._thread.join()
        self._opened.close()

    def _run(self) -> None:
        while self._running:
            try:
                self.env.step()
            except Exception as error:
                self._failed(error)

    def _called(self) -> None:
        os.read(self._reader, 1)
        self._calls.popleft()()

    def _stop(self) -> None:
        self._running = False
