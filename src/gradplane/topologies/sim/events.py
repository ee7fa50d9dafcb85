"""Virtual time: a queue of calls, ordered by time and, at one time, by creation.

A `Channel` is one direction of a simulated link: a finite queue, a rate, a delay, and counters.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


@dataclass(order=True, slots=True)
class SimEvent:
    """A scheduled call; a handle that cancels it."""

    at: int
    order: int
    callback: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        """Cancel the call; no effect after it."""
        self.callback = None


class Events(Protocol):
    """Scheduled calls under virtual time, as in EventQueue."""

    @property
    def now(self) -> int:
        """The time of the current call, ns."""

    def at(self, time: int, callback: Callable[[], None]) -> SimEvent:
        """Schedule a call."""

    def clear(self) -> None:
        """Cancel all calls."""


class EventQueue:
    """The scheduled calls, and `now`, in ns: the time of the current call."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[SimEvent] = []
        self._order = 0

    def at(self, time: int, callback: Callable[[], None]) -> SimEvent:
        """Schedule a call at `time`, or at once if that has passed; never before this returns."""
        self._order += 1
        event = SimEvent(max(time, self.now), self._order, callback)
        heapq.heappush(self._events, event)
        return event

    def clear(self) -> None:
        """Cancel all calls."""
        self._events.clear()

    def step(self) -> bool:
        """Run the next call; return False if there is none."""
        while self._events:
            event = heapq.heappop(self._events)
            if event.callback is not None:
                self.now = event.at
                event.callback()
                return True
        return False


NS = 10**9
T = TypeVar("T")


class Channel(Generic[T]):
    """A queue of frames (or of what represents them) from `send` to a call of `deliver`.

    rate in bit/s (None: no limit), delay in ns, limit in frames waiting or being sent. A frame that
    finds the queue full is dropped and counted. Counts frames and their bytes from the Ethernet
    header on, like Linux.
    """

    def __init__(
        self, events: Events, rate: int | None, delay: int, limit: int, deliver: Callable[[T], None]
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
