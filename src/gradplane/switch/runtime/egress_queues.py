"""The switch's own queues, between ingress and egress: a rate, a depth, priorities.

They behave as simple_switch's (behavioral-model, include/bm/bm_sim/queueing.h): each port has one
queue for each priority, and each queue a rate in packets a second. A packet may leave a queue one
interval after the packet before it, and at once if that is over; a packet that finds `depth`
packets in its queue is dropped. Among packets that may leave, higher priorities go first.

A port whose queues have no rate has no queue at all: its packets pass egress at once. A link may
pace a port, too: then a packet leaves when the link has sent the one before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.runtime.control_errors import SwitchError

QUEUES = 512
"""Ports that can have queues: 0 to 511."""
DEFAULT_DEPTH = 64
"""Packets that a queue holds, as in simple_switch."""
PRIORITIES = 8
"""Queues of a port at most: `standard_metadata.priority` has three bits."""
NO_QUEUE = "the port has no queue of the packet's priority"

_SECOND = 10**9
MOST_PACKETS = 1 << 32
_NEVER_SENT = -(1 << 62)


@dataclass(slots=True)
class Waiting:
    """A packet in a queue. `owner`: what runs its egress; `departure`: the packet, in the owner's
    form; `events`: its trace's. Times in ns; depths: the packets in its queue as it came and as it
    left, itself not counted."""

    owner: Any
    departure: Any
    events: list[Any] | None
    port: int
    priority: int
    order: int
    enqueued: int
    leaves: int
    enqueue_depth: int
    dequeue_depth: int = 0


@dataclass(frozen=True, slots=True)
class QueueTimes:
    """The metadata of a packet that leaves a queue, times in microseconds of the switch."""

    enq_timestamp: int
    enq_qdepth: int
    deq_timedelta: int
    deq_qdepth: int


@dataclass(slots=True)
class QueueStatus:
    """One queue, for reports. `rate`: packets a second, 0 for no limit."""

    port: int
    priority: int
    rate: int
    depth: int
    waiting: int
    dropped: int


@dataclass(slots=True)
class _Queue:
    rate: int
    depth: int
    last: int = _NEVER_SENT  # when the last packet that came may leave
    dropped: int = 0
    waiting: deque[Waiting] = field(default_factory=deque)

    @property
    def interval(self) -> int:
        """Nanoseconds between packets."""
        return _SECOND // self.rate if self.rate else 0


@dataclass(slots=True)
class _Link:
    """The link behind a port: its rate in bit/s, and when it has sent what it was given."""

    rate: int
    free: int = _NEVER_SENT


@dataclass(slots=True)
class _Port:
    queues: list[_Queue]
    link: _Link | None = None

    @property
    def held(self) -> bool:
        """Whether packets to the port go through its queues, if only to keep their order."""
        return self.link is not None or any(q.rate or not q.depth or q.waiting for q in self.queues)

    def next(self) -> int | None:
        """Return when the next packet may leave, None while none waits."""
        heads = [queue.waiting[0].leaves for queue in self.queues if queue.waiting]
        if not heads:
            return None
        return min(heads) if self.link is None else max(min(heads), self.link.free)


class EgressQueues:
    """The queues of a switch's ports. Not safe for threads: callers hold the switch's lock.

    priorities: queues of each port; a packet whose priority is beyond them is dropped. None: one
    queue, whatever the priority. Raises SwitchError for a number outside 1 to 8.

    `flags[port]` is nonzero while packets to that port go through queues; native code reads it.
    `engaged`: some port's do, or priorities are checked.
    """

    def __init__(self, priorities: int | None = None) -> None:
        if priorities is not None and not 1 <= priorities <= PRIORITIES:
            what = f"{priorities} priority queues: a port has 1 to {PRIORITIES}"
            raise SwitchError(what)
        self.priorities = priorities
        self.flags: npt.NDArray[np.int64] = np.zeros(QUEUES, dtype=np.int64)
        self.engaged = priorities is not None
        self.waiting = 0  # packets in all queues
        self._rate, self._depth = 0, DEFAULT_DEPTH  # of ports that were not named
        self._ports: dict[int, _Port] = {}
        self._order = 0

    # -- settings --------------------------------------------------------------------------------

    def set_rate(self, rate: int, port: int | None = None, priority: int | None = None) -> None:
        """Let so many packets a second leave each queue; 0: no limit.

        Without a priority: each queue of the port; without a port: of all ports. Packets that wait
        leave as it was before. Raises SwitchError.
        """
        _check("rate", rate, "packets a second")
        for queue in self._chosen(port, priority):
            queue.rate = rate
        if port is None:
            self._rate = rate
        self._settled()

    def set_depth(self, depth: int, port: int | None = None, priority: int | None = None) -> None:
        """Let so many packets wait in each queue; ports and priorities as in `set_rate`."""
        _check("depth", depth, "packets")
        for queue in self._chosen(port, priority):
            queue.depth = depth
        if port is None:
            self._depth = depth
        self._settled()

    def pace(self, port: int, rate: int, depth: int) -> None:
        """Let packets leave a port as its link, of `rate` bit/s, has sent those before; the link
        holds `depth` packets, the one that it is sending included. `sent` reports each packet."""
        for queue in self._chosen(port, None):
            queue.depth = depth
        self._ports[port].link = _Link(rate)
        self._settled()

    def _chosen(self, port: int | None, priority: int | None) -> Iterator[_Queue]:
        if port is None:
            for known in self._ports.values():
                yield from known.queues
            return
        if not 0 <= port < QUEUES:
            raise SwitchError(f"port {port}: ports 0 to {QUEUES - 1} have queues")
        queues = self._port(port).queues
        if priority is None:
            yield from queues
        elif 0 <= priority < len(queues):
            yield queues[priority]
        else:
            raise SwitchError(
                f"priority {priority}: port {port} has queues 0 to {len(queues) - 1}; start the"
                " switch with more (--priority-queues N)"
            )

    def _port(self, number: int) -> _Port:
        if number not in self._ports:
            count = self.priorities or 1
            self._ports[number] = _Port([_Queue(self._rate, self._depth) for _ in range(count)])
        return self._ports[number]

    def _settled(self) -> None:
        """Tell native code which ports have queues."""
        self.flags[:] = self._rate or not self._depth
        for number, port in self._ports.items():
            self.flags[number] = port.held
        self.engaged = self.priorities is not None or bool(self.flags.any())

    # -- packets ---------------------------------------------------------------------------------

    def lacks(self, port: int, priority: int) -> bool:
        """Return whether a port has no queue for a priority: such packets are dropped."""
        return self.priorities is not None and priority >= self.priorities and port < QUEUES

    def holds(self, port: int) -> bool:
        """Return whether packets to a port go through its queues."""
        return port < QUEUES and bool(self.flags[port])

    def put(
        self,
        port: int,
        priority: int,
        now: int,
        owner: Any,
        departure: Any,
        events: list[Any] | None = None,
    ) -> Waiting | None:
        """Put a packet into its queue. Returns None, and counts a drop, if the queue is full."""
        place = priority if self.priorities is not None else 0
        to = self._port(port)
        queue = to.queues[place]
        depth = len(queue.waiting)
        sending = to.link is not None and to.link.free > now
        if depth + sending >= queue.depth:
            queue.dropped += 1
            return None
        queue.last = max(now, queue.last + queue.interval)
        self._order += 1
        item = Waiting(owner, departure, events, port, place, self._order, now, queue.last, depth)
        queue.waiting.append(item)
        self.waiting += 1
        return item

    def full(self, port: int, priority: int) -> str:
        """Return the reason of a drop: the queue is full."""
        queue = "the queue" if self.priorities is None else f"queue {priority}"
        return f"{queue} of port {port} is full"

    def next_departure(self) -> int | None:
        """Return when a packet may leave next, in ns of the clock; None while none waits."""
        if not self.waiting:
            return None
        return min(at for port in self._ports.values() if (at := port.next()) is not None)

    def due(self, now: int) -> list[Waiting]:
        """Take out packets that may leave by `now`, in the order of their leaving.

        One at most of a port that a link paces; call it again after `sent`.
        """
        if not self.waiting:
            return []
        found = [item for port in self._ports.values() for item in self._taken(port, now)]
        self.waiting -= len(found)
        if found and any(not self._ports[item.port].held for item in found):
            self._settled()
        return sorted(found, key=lambda item: (-item.priority, item.leaves, item.order))

    @staticmethod
    def _taken(port: _Port, now: int) -> Iterator[Waiting]:
        if port.link is not None and port.link.free > now:
            return
        for queue in reversed(port.queues):
            while queue.waiting and queue.waiting[0].leaves <= now:
                item = queue.waiting.popleft()
                item.dequeue_depth = len(queue.waiting)
                yield item
                if port.link is not None:
                    return

    def sent(self, port: int, size: int, now: int) -> None:
        """Take note of a packet of `size` bytes that left a port: its link is busy with it."""
        known = self._ports.get(port)
        if known is not None and known.link is not None:
            duration = -(-size * 8 * _SECOND // known.link.rate)
            known.link.free = max(now, known.link.free) + duration

    def clear(self) -> int:
        """Drop all packets that wait, and return their number."""
        for port in self._ports.values():
            for queue in port.queues:
                queue.dropped += len(queue.waiting)
                queue.waiting.clear()
        dropped, self.waiting = self.waiting, 0
        self._settled()
        return dropped

    def status(self) -> list[QueueStatus]:
        """Return the queues that were named or used, by port and priority."""
        return [
            QueueStatus(number, i, q.rate, q.depth, len(q.waiting), q.dropped)
            for number, port in sorted(self._ports.items())
            for i, q in enumerate(port.queues)
        ]

    def dropped(self, port: int) -> int:
        """Return the packets that found a queue of the port full."""
        known = self._ports.get(port)
        return 0 if known is None else sum(queue.dropped for queue in known.queues)


def _check(what: str, value: int, unit: str) -> None:
    if not 0 <= value < MOST_PACKETS:
        raise SwitchError(f"queue {what} {value}: expected 0 to {MOST_PACKETS - 1} {unit}")
