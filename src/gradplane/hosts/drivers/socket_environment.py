"""The environment of a host process with UDP sockets, as it runs in a Mininet host.

A `SocketThread` runs a SocketEnvironment in a thread, so that peers get answers while a program
computes.
"""

import contextlib
import heapq
import itertools
import json
import os
import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, TextIO, TypeVar

import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane.hosts.drivers.datagram_socket import DatagramSocket, OrdinaryResults
from gradplane.hosts.drivers.ordinary_exchange import NEVER, polled
from gradplane.hosts.protocols.actions import Peer, Send
from gradplane.hosts.protocols.fast_results import WorkerRecord
from gradplane.hosts.wire.payloads import Payloads

_NICER = 10  # than the thread that receives and sends; 19 is the most


class IdleThread:
    """A thread that computes values in order. It starts with the first one."""

    def __init__(self) -> None:
        self._values: SimpleQueue[Deferred[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def compute(self, value: Deferred[Any]) -> None:
        """Compute a value. Whoever asks for it gets its exception, if there is one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="idle", daemon=True)
            self._thread.start()
        self._values.put(value)

    def close(self) -> None:
        """End the thread; values that it has not begun are not computed."""
        self._closed = True
        self._values.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        _yield_to_others()
        while (value := self._values.get()) is not None and not self._closed:
            with contextlib.suppress(Exception):
                value.get()
            del value  # whose memory is large


def _yield_to_others() -> None:
    thread = threading.get_native_id()
    niceness = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, niceness + _NICER)


Receive = Callable[[int, str, int, Payloads], None]
"""Called with local port, IP, source port and payloads, which are valid until it returns."""


@dataclass(order=True)
class ScheduledCall:
    """A scheduled call; a Handle."""

    at: int
    order: int
    callback: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        """Cancel the call."""
        self.callback = None


class SocketEnvironment:
    """Sockets bound to `ip`, timers in a heap, a JSON line in `log` for each record.

    Time is `clock`'s since `origin`, in ns; the runner sets one origin for all hosts. One thread
    calls step() in a loop, which makes all other calls. A context manager: closes the sockets.

    shared: the thread has other environments, too, so that none may wait; `fileno` can be read when
    there is something to do, and `until` is the time of the next timer.
    """

    granularity = 25_000_000
    """Hosts share the machine's processors, and waiting for one takes some ms."""

    def __init__(
        self,
        ip: str,
        log: TextIO,
        clock: Callable[[], int] = time.monotonic_ns,
        shared: bool = False,
    ) -> None:
        self._ip, self._log, self._clock, self._shared = ip, log, clock, shared
        self.origin = clock()
        self._selector: selectors.BaseSelector = selectors.SelectSelector()
        if shared:
            self._selector = selectors.EpollSelector()
        self._sockets: dict[int, DatagramSocket] = {}
        self._files: dict[int, npt.NDArray[Any]] = {}  # by the first descriptor; see _files_from
        self._calls: list[ScheduledCall] = []
        self._order = itertools.count()
        self._idle = IdleThread()

    def __enter__(self) -> "SocketEnvironment":
        return self

    def __exit__(self, *_: object) -> None:
        self._idle.close()
        self._selector.close()
        for opened in self._sockets.values():
            opened.close()

    def listen(
        self, port: int, receive: Receive, fast: WorkerRecord | None = None, peer: Peer = ("", 0)
    ) -> None:
        """Bind a socket to `port` and pass its datagrams to `receive`. OSError if that fails.

        fast: takes ordinary datagrams of `peer` in a kernel.
        """
        ordinary = None
        if fast is not None:
            until = self.now if self._shared else lambda: self.until
            ordinary = OrdinaryResults(fast, peer, self.now, until, self._files_from)
        opened = self._sockets[port] = DatagramSocket(self._ip, port, ordinary)
        self.watch(opened, partial(opened.receive, partial(receive, port)))

    def watch(self, file: Any, readable: Callable[[], None]) -> None:
        """Call `readable` whenever `file` has data to read."""
        self._selector.register(file, selectors.EVENT_READ, readable)
        self._files.clear()

    def now(self) -> int:
        """Return the time since the origin in ns."""
        return self._clock() - self.origin

    def call_at(self, at: int, callback: Callable[[], None]) -> ScheduledCall:
        """Schedule a call; see Environment."""
        call = ScheduledCall(at, next(self._order), callback)
        heapq.heappush(self._calls, call)
        return call

    def when_idle(self, work: Deferred[Any]) -> None:
        """Let a thread of low priority compute a value; see Environment."""
        self._idle.compute(work)

    @property
    def unsent(self) -> int:
        """Datagrams that the kernel refused, such as for want of a route."""
        return sum(opened.unsent for opened in self._sockets.values())

    @property
    def too_long(self) -> int:
        """Datagrams that arrived and were dropped for their length."""
        return sum(opened.too_long for opened in self._sockets.values())

    def send(self, send: Send) -> None:
        """Send datagrams; wait while the interface's queue is full."""
        self._sockets[send.source_port].send(send.ip, send.port, send.payloads, send.tos)

    def record(self, kind: str, **fields: Any) -> None:
        """Write a log line; see Environment."""
        line = json.dumps({"kind": kind} | fields, separators=(",", ":"), default=_plain)
        self._log.write(line + "\n")

    def crash(self, back: int) -> None:
        """Kill this process; see Environment. The runner starts another."""
        self._log.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def fileno(self) -> int:
        """Return a descriptor that can be read when there is a datagram; of a shared one."""
        assert isinstance(self._selector, selectors.EpollSelector), "not shared"
        return self._selector.fileno()

    @property
    def due(self) -> bool:
        """Whether a timer has run out."""
        return self.until <= self.now()

    def step(self, wait: bool = True) -> None:
        """Handle all that is due; wait for a datagram or the next timer, if there is nothing."""
        for ready, _ in self._selector.select(self._patience() if wait else 0):
            ready.data()
        now = self.now()
        while self._calls and self._calls[0].at <= now:
            callback = heapq.heappop(self._calls).callback
            if callback is not None:
                callback()

    def _patience(self) -> float | None:
        """Return the seconds until the next timer, or None."""
        until = self.until
        return None if until == NEVER else max(0, until - self.now()) / 1e9

    @property
    def until(self) -> int:
        """The time of the next timer, or NEVER."""
        while self._calls and self._calls[0].callback is None:
            heapq.heappop(self._calls)
        return self._calls[0].at if self._calls else NEVER

    def _files_from(self, first: int) -> npt.NDArray[Any]:
        """Return the structures to wait for the watched files, a descriptor and then the others."""
        files = self._files.get(first)
        if files is None:
            watched = (key.fd for key in self._selector.get_map().values())
            others = [file for file in watched if file != first]
            files = self._files[first] = polled([first, *others])
        return files


def _plain(value: Any) -> Any:
    """Convert a NumPy value to one that JSON can hold."""
    return value.tolist()


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
