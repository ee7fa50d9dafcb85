"""One direction of a simulated link: a finite queue, a rate, a delay, and counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from gradplane.topologies.sim.events import Events

NS = 10**9
T = TypeVar("T")


class Channel(Generic[T]):
    """A queue of frames (or of what represents them) from `send` to a call of `deliver`.

    rate in bit/s (None: no limit), delay in ns, limit in frames waiting or being sent. A frame that
    finds the queue full is dropped and counted. Counts frames and their bytes from the Ethernet
    header on, like Linux.
    """

    def __init__(
        self,
        events: Events,
        rate: int | None,
        delay: int,
        limit: int,
        deliver: Callable[[T], None],
    ) -> None:
        self._events, self._rate, self._delay, self._limit = events, rate, delay, limit
        self._deliver = deliver
        self._leaving: deque[int] = deque()  # when the transmission of each queued frame ends
        self.packets = self.bytes = self.dropped = 0
        self.peak = 0  # most frames in the queue since somebody set it to 0

    def send(self, frame: T, size: int) -> None:
        """Put a frame of `size` bytes into the queue."""
        now = self._events.now
        while self._leaving and self._leaving[0] <= now:
            self._leaving.popleft()
        if len(self._leaving) >= self._limit:
            self.dropped += 1
            return
        self.packets += 1
        self.bytes += size
        start = self._leaving[-1] if self._leaving else now
        sent = start + self._duration(size)
        self._leaving.append(sent)
        self.peak = max(self.peak, len(self._leaving))
        self._events.at(sent + self._delay, lambda: self._deliver(frame))

    def _duration(self, size: int) -> int:
        """Return the transmission time in ns, rounded up."""
        return 0 if self._rate is None else -(-size * 8 * NS // self._rate)
