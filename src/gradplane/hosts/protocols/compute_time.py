"""The emulated time of a host's computations, where an experiment gives the time for a value."""

from collections import deque
from collections.abc import Callable

from gradplane.hosts.protocols.actions import Action, SetTimer

TIMER = "work"

Then = Callable[[int], list[Action]]  # called with the time


class ComputeQueue:
    """A queue of computations, done one after another; each takes a given time in ns.

    A state machine with a ComputeQueue passes the timer TIMER on to it. A computation that takes no
    time is done at once, without a timer, if the queue is empty.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Then]] = deque()

    def do(self, ns: int, then: Then, now: int) -> list[Action]:
        """Call `then` once all earlier computations are done and `ns` more have passed."""
        if ns == 0 and not self._queue:
            return then(now)
        self._queue.append((ns, then))
        return self._start(now) if len(self._queue) == 1 else []

    def timer(self, now: int) -> list[Action]:
        """Handle the timer TIMER: finish the first computation and begin the next."""
        _, then = self._queue[0]
        actions = then(now)
        self._queue.popleft()
        return [*actions, *self._start(now)]

    def _start(self, now: int) -> list[Action]:
        return [SetTimer(TIMER, now + self._queue[0][0])] if self._queue else []
