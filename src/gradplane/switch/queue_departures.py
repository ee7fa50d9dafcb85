"""Packets that leave a switch's own queues: their egress, in the engine or the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from gradplane.switch.runtime.packet_passes import Arrival, PassResult
from gradplane.switch.runtime.port_queues import QueueTimes, Waiting
from gradplane.switch.runtime.state import State

if TYPE_CHECKING:
    from gradplane.switch.interp.trace_events import TraceEvent
    from gradplane.switch.jit.engine import Engine
    from gradplane.switch.machine.model import Model

REPLACED = "it waited in a queue while the program was replaced"


class Departed(NamedTuple):
    """A packet, or several in a row, after egress. `run`: runs those that are processed again;
    `events`: of the packet's trace."""

    run: Callable[[Arrival], PassResult]
    result: PassResult
    events: list[TraceEvent] | None = None


@dataclass(frozen=True, slots=True)
class QueueDepartures:
    """Runs egress of the packets whose time has come. The caller holds the switch's lock."""

    state: State
    model: Model
    engine: Engine | None

    def rounds(self) -> Iterator[Iterator[Departed]]:
        """Empty the queues as far as the time allows, by rounds: packets that egress puts into a
        queue may leave in the next. A round's packets run as they are asked for, and all of them
        must be before the next round."""
        queues, now = self.state.links.queues, self.state.clock()
        while items := queues.due(now):
            for item in items:
                self.state.queue_changed(item.port, item.priority, item.dequeue_depth)
            yield self._round(items, now)

    def _round(self, items: list[Waiting], now: int) -> Iterator[Departed]:
        for owner, some in groupby(items, key=attrgetter("owner")):
            for departed in self._egress(owner, [(i, self._times(i, now)) for i in some]):
                for port, data in departed.result.outputs:
                    self.state.links.queues.sent(port, len(data), now)
                yield departed

    def _egress(self, owner: object, items: list[tuple[Waiting, QueueTimes]]) -> Iterator[Departed]:
        if owner is self.model:
            for item, times in items:
                run = partial(self.model.run, events=item.events)
                yield Departed(run, self.model.depart(item, times), item.events)
        elif self.engine is not None and owner is self.engine:
            yield Departed(self.engine.run, self.engine.depart(items))
        else:  # the former program's
            self.state.drops[REPLACED] += len(items)

    def _times(self, item: Waiting, now: int) -> QueueTimes:
        entered = (item.enqueued - self.state.start) // 1000
        waited = (now - self.state.start) // 1000 - entered
        return QueueTimes(
            entered & 0xFFFF_FFFF, item.enqueue_depth, waited & 0xFFFF_FFFF, item.dequeue_depth
        )
