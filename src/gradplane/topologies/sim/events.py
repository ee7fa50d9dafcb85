"""Virtual time: a queue of calls, ordered by time and, at one time, by creation."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


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
