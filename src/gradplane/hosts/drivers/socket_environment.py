"""The environment of a host process with UDP sockets, as it runs in a Mininet host."""

import heapq
import itertools
import json
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from gradplane.hosts.drivers.environment import Datagram

BUFFER_BYTES = 8 << 20
BURST = 64  # datagrams taken from a socket before timers get a turn
_SO_RCVBUFFORCE = 33  # Linux: beyond net.core.rmem_max, where one may

Receive = Callable[[int, str, int, bytes], None]  # (local port, ip, source port, payload)


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
    """

    def __init__(self, ip: str, log: TextIO, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._ip, self._log, self._clock = ip, log, clock
        self.origin = clock()
        self._selector = selectors.SelectSelector()
        self._sockets: dict[int, socket.socket] = {}
        self._tos: dict[int, int] = {}
        self._calls: list[ScheduledCall] = []
        self._order = itertools.count()
        self.unsent = 0  # datagrams that the kernel refused, such as for want of a route

    def __enter__(self) -> "SocketEnvironment":
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for opened in self._sockets.values():
            opened.close()

    def listen(self, port: int, receive: Receive) -> None:
        """Bind a socket to `port` and pass its datagrams to `receive`. OSError if that fails."""
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sockets[port] = opened
        _enlarge(opened)
        opened.bind((self._ip, port))
        self.watch(opened, lambda: _drain(opened, port, receive))

    def watch(self, file: Any, readable: Callable[[], None]) -> None:
        """Call `readable` whenever `file` has data to read."""
        self._selector.register(file, selectors.EVENT_READ, readable)

    def now(self) -> int:
        """Return the time since the origin in ns."""
        return self._clock() - self.origin

    def call_at(self, at: int, callback: Callable[[], None]) -> ScheduledCall:
        """Schedule a call; see Environment."""
        call = ScheduledCall(at, next(self._order), callback)
        heapq.heappush(self._calls, call)
        return call

    def send(self, datagram: Datagram) -> None:
        """Send a datagram; wait while the interface's queue is full."""
        opened = self._sockets[datagram.source_port]
        if datagram.tos != self._tos.get(datagram.source_port, 0):
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, datagram.tos)
            self._tos[datagram.source_port] = datagram.tos
        try:
            opened.sendto(datagram.payload, (datagram.ip, datagram.port))
        except OSError:
            self.unsent += 1

    def record(self, kind: str, **fields: Any) -> None:
        """Write a log line; see Environment."""
        line = json.dumps({"kind": kind} | fields, separators=(",", ":"), default=_plain)
        self._log.write(line + "\n")

    def step(self) -> None:
        """Wait for a datagram or the next timer, and handle all that is due."""
        for ready, _ in self._selector.select(self._patience()):
            ready.data()
        now = self.now()
        while self._calls and self._calls[0].at <= now:
            callback = heapq.heappop(self._calls).callback
            if callback is not None:
                callback()

    def _patience(self) -> float | None:
        """Return the seconds until the next timer, or None."""
        while self._calls and self._calls[0].callback is None:
            heapq.heappop(self._calls)
        return max(0, self._calls[0].at - self.now()) / 1e9 if self._calls else None


def _drain(opened: socket.socket, port: int, receive: Receive) -> None:
    for _ in range(BURST):
        try:
            payload, (ip, source_port) = opened.recvfrom(65535, socket.MSG_DONTWAIT)
        except OSError:  # nothing left, or an error that the network reported
            return
        receive(port, ip, source_port, payload)


def _enlarge(opened: socket.socket) -> None:
    """Enlarge the buffer: a whole window of results may arrive while a gradient is computed."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    except OSError:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)


def _plain(value: Any) -> Any:
    """Convert a NumPy value to one that JSON can hold."""
    return value.tolist()
