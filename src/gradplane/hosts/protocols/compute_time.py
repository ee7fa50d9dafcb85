"""The time that a host computes, where an experiment says what a value takes; no I/O."""

from collections import deque
from collections.abc import Callable

from gradplane.hosts.protocols.actions import Action, SetTimer

TIMER = "work"

Then = Callable[[int], list[Action]]  # given the time, does it


class Work:
    """One thing after another, each for its time in ns. A machine that has one passes its timer on.

    What takes no time while nothing is under way is done at once, without a timer.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Then]] = deque()

    def do(self, ns: int, then: Then, now: int) -> list[Action]:
        """`then`, once what was asked before is done and `ns` more have passed."""
        if ns == 0 and not self._queue:
            return then(now)
        self._queue.append((ns, then))
        return self._start(now) if len(self._queue) == 1 else []

    def timer(self, now: int) -> list[Action]:
        """The timer of this work has run out."""
        _, then = self._queue[0]
        actions = then(now)
        self._queue.popleft()
        return [*actions, *self._start(now)]

    def _start(self, now: int) -> list[Action]:
        return [SetTimer(TIMER, now + self._queue[0][0])] if self._queue else []
