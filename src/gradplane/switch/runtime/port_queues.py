"""A packet that waits, a queue, and the queues of a port, of which egress_queues has one each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SECOND = 10**9
NEVER_SENT = -(1 << 62)

DEFLECTED = 2
"""The mark of a packet that went to another queue because its own was full."""


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


class QueueTimes(NamedTuple):
    """The metadata of a packet that leaves a queue, times in microseconds of the switch."""

    enq_timestamp: int
    enq_qdepth: int
    deq_timedelta: int
    deq_qdepth: int


@dataclass(slots=True)
class QueueStatus:
    """One queue, for reports. Rates: packets and bits a second, 0 for no limit. most: packets that
    waited at once."""

    port: int
    priority: int
    rate: int
    depth: int
    waiting: int
    dropped: int
    bit_rate: int
    most: int


@dataclass(slots=True)
class PortLink:
    """A link: its rate in bit/s or packets/s, 0 for one that sends at once, and when it has sent
    all."""

    rate: int = 0
    packets: int = 0
    free: int = NEVER_SENT

    @property
    def paces(self) -> bool:
        return bool(self.rate or self.packets)

    def send(self, size: int, now: int) -> None:
        """Be busy with a packet of `size` bytes."""
        if self.rate:
            self.free = max(now, self.free) + -(-size * 8 * SECOND // self.rate)
        elif self.packets:
            self.free = max(now, self.free) + SECOND // self.packets


@dataclass(slots=True)
class PortQueue:
    """A queue. rate: packets a second, 0 for no limit. depth: packets that it holds. stopped: none
    leaves it."""

    rate: int
    depth: int
    last: int = NEVER_SENT  # when the last packet that came may leave
    dropped: int = 0
    most: int = 0  # packets that waited at once
    stopped: bool = False
    waiting: deque[Waiting] = field(default_factory=deque)
    link: PortLink = field(default_factory=PortLink)

    @property
    def interval(self) -> int:
        """Nanoseconds between packets."""
        return SECOND // self.rate if self.rate else 0

    @property
    def limits(self) -> bool:
        """Whether packets may have to wait, or are dropped."""
        return bool(self.rate or self.link.rate or not self.depth or self.stopped)

    @property
    def ready(self) -> bool:
        """Whether a packet waits that may leave at some time."""
        return bool(self.waiting) and not self.stopped

    def next(self) -> int:
        """Return when the packet that waits longest may leave."""
        return max(self.waiting[0].leaves, self.link.free)


@dataclass(slots=True)
class PortQueues:
    """The queues of a port, by priority, and its link."""

    queues: list[PortQueue]
    link: PortLink = field(default_factory=PortLink)
    served: PortQueue | None = None  # the last one that a packet left while a link paced it

    @property
    def held(self) -> bool:
        """Whether packets to the port go through its queues, if only to keep their order."""
        return self.link.paces or any(q.limits or q.waiting for q in self.queues)

    @property
    def paced(self) -> bool:
        """Whether a link paces the port or one of its queues."""
        return self.link.paces or any(q.link.rate for q in self.queues)

    def next(self) -> int | None:
        """Return when the next packet may leave, None while none waits."""
        heads = [queue.next() for queue in self.queues if queue.ready]
        return max(min(heads), self.link.free) if heads else None
