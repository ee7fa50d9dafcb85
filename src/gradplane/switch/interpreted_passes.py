"""All passes of a packet through the interpreter, until nothing is left to run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradplane.switch.runtime.control_messages import Fault
from gradplane.switch.runtime.packet_passes import (
    PASSES_A_PACKET,
    TOO_MANY_PASSES,
    Arrival,
    PassResult,
)
from gradplane.switch.runtime.state import State

if TYPE_CHECKING:
    from gradplane.switch.interp.trace_events import TraceEvent


class InterpretedPasses:
    """Runs packets, and what is resubmitted or recirculated, up to a limit of passes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._limit, self._of_clone = PASSES_A_PACKET, 0

    def limit(self, passes: int) -> None:
        """Drop a packet that takes so many passes, all that it causes included; a clone counts as
        one."""
        self._limit, self._of_clone = passes, 1

    def run(
        self,
        run: Callable[[Arrival], PassResult],
        first: Arrival,
        events: list[TraceEvent] | None = None,
    ) -> PassResult:
        """Run a packet, and all that comes of it, to the end or into queues.

        run: runs one pass. events: of the packet's trace, for what is dropped here."""
        whole, arrivals, passes = PassResult(), deque([first]), 0
        while arrivals and passes < self._limit:
            result = run(arrivals.popleft())
            passes += 1 + self._of_clone * result.clones
            whole.outputs += result.outputs
            whole.waiting += result.waiting
            arrivals += result.again
        if left := len(arrivals):
            self._state.drops[TOO_MANY_PASSES] += left
            self._state.report(Fault(f"{left} packets dropped: {TOO_MANY_PASSES}"))
            if events is not None:
                from gradplane.switch.interp.trace_events import Dropped

                events.append(Dropped(TOO_MANY_PASSES))
        return whole
