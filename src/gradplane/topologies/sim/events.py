"""Virtual time: what is to happen, in order of time and, at one time, of asking."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Event:
    """A call to come; a handle that cancels it."""

    at: int
    order: int
    callback: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        """It will not happen. No effect once it has."""
        self.callback = None


class EventQueue:
    """The calls to come, and `now`, in ns: the time of the call that runs."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[Event] = []
        self._order = 0

    def at(self, time: int, callback: Callable[[], None]) -> Event:
        """Call back at `time`, or soon if that has passed; never before this returns."""
        self._order += 1
        event = Event(max(time, self.now), self._order, callback)
        heapq.heappush(self._events, event)
        return event

    def clear(self) -> None:
        """Nothing is to happen any more."""
        self._events.clear()

    def step(self) -> bool:
        """Let the next call happen; False if there is none."""
        while self._events:
            event = heapq.heappop(self._events)
            if event.callback is not None:
                self.now = event.at
                event.callback()
                return True
        return False
