"""The switch's own queues, between ingress and egress: a rate, a depth, priorities.

They behave as simple_switch's (behavioral-model, include/bm/bm_sim/queueing.h): each port has one
queue for each priority, and each queue a rate in packets a second. A packet may leave a queue one
interval after the packet before it, and at once if that is over; a packet that finds `depth`
packets in its queue is dropped. Among packets that may leave, higher priorities go first.

A port whose queues have no rate has no queue at all: its packets pass egress at once. A link may
pace a port or a queue, too: then a packet leaves when the link has sent the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.port_queues import (
    NEVER_SENT,
    PortQueue,
    PortQueues,
    QueueStatus,
    Waiting,
)

QUEUES = 512
"""Ports that can have queues: 0 to 511."""
DEFAULT_DEPTH = 64
"""Packets that a queue holds, as in simple_switch."""
PRIORITIES = 8
"""Queues of a port at most: `standard_metadata.priority` has three bits."""
CLASSES = 256
"""Priorities that a packet can have; `EgressQueues.classes` gives each a queue."""
NO_QUEUE = "the port has no queue of the packet's priority"

MOST_PACKETS = 1 << 32
MOST_BITS = 1 << 42


class QueueLimits(NamedTuple):
    """Rate and depth of ports that were not named, and of each queue."""

    rate: int
    depth: int
    queues: list[tuple[PortQueue, int, int]]


class EgressQueues:
    """The queues of a switch's ports. Not safe for threads: callers hold the switch's lock.

    priorities: queues of each port; a packet whose priority is beyond them is dropped. None: one
    queue, whatever the priority. Raises SwitchError for a number outside 1 to 8.

    `classes[port, priority]` is the queue of a port's packets with that priority; see `go_round`.
    `dealt[port]`: how many queues a control protocol gave a port, for
    its reports. `flags[port]` is nonzero while packets to that port go through
    queues. Native code reads both.
    `engaged`: some port's do, or priorities are checked.
    `deflections[port]`: the port and the queue that take a packet which finds its queue full and
    asks to be deflected.
    """

    def __init__(self, priorities: int | None = None) -> None:
        if priorities is not None and not 1 <= priorities <= PRIORITIES:
            what = f"{priorities} priority queues: a port has 1 to {PRIORITIES}"
            raise SwitchError(what)
        self.priorities = priorities
        self.flags: npt.NDArray[np.int64] = np.zeros(QUEUES, dtype=np.int64)
        self.classes: npt.NDArray[np.uint8] = np.tile(
            np.arange(CLASSES, dtype=np.uint8), (QUEUES, 1)
        )
        self.dealt: dict[int, int] = {}
        self.deflections: dict[int, tuple[int, int]] = {}
        self._round = False
        self.engaged = priorities is not None
        self.waiting = 0  # packets in all queues
        self._rate, self._depth = 0, DEFAULT_DEPTH  # of ports that were not named
        self._ports: dict[int, PortQueues] = {}
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

    def limits(self) -> QueueLimits:
        """Return the rates and depths of all queues, for `restore_limits`."""
        known = ((q, q.rate, q.depth) for port in self._ports.values() for q in port.queues)
        return QueueLimits(self._rate, self._depth, list(known))

    def restore_limits(self, former: QueueLimits, written: QueueLimits) -> None:
        """Take a change from `former` to `written` back, where it still holds."""
        before = {id(q): (rate, depth) for q, rate, depth in former.queues}
        after = {id(q): (rate, depth) for q, rate, depth in written.queues}
        for queue in (q for port in self._ports.values() for q in port.queues):
            rate, depth = before.get(id(queue), (former.rate, former.depth))
            set_rate, set_depth = after.get(id(queue), (written.rate, written.depth))
            queue.rate = rate if queue.rate == set_rate else queue.rate
            queue.depth = depth if queue.depth == set_depth else queue.depth
        self._rate = former.rate if self._rate == written.rate else self._rate
        self._depth = former.depth if self._depth == written.depth else self._depth
        self._settled()

    def pace(self, port: int, rate: int, depth: int) -> None:
        """Let packets leave a port as its link, of `rate` bit/s, has sent those before; the link
        holds `depth` packets, the one that it is sending included. `sent` reports each packet."""
        for queue in self._chosen(port, None):
            queue.depth = depth
        self.shape(port, rate)

    def shape(self, port: int, rate: int, priority: int | None = None) -> None:
        """Let so many bits a second leave a port, or one of its queues; 0: no limit.

        Raises SwitchError.
        """
        _check("rate", rate, "bits a second", MOST_BITS)
        (first, *_) = self._chosen(port, priority)
        link = self._ports[port].link if priority is None else first.link
        link.rate, link.packets = rate, 0
        if not rate:
            link.free = NEVER_SENT
        self._settled()

    def shape_packets(self, port: int, rate: int) -> None:
        """Let so many packets a second leave a port, in place of a rate in bits; 0: no limit.

        Raises SwitchError.
        """
        _check("rate", rate, "packets a second")
        self.shape(port, 0)
        self._ports[port].link.packets = rate
        self._settled()

    def stop(self, port: int, priority: int, stopped: bool) -> None:
        """Let no packets leave a queue, or let them leave again. Raises SwitchError."""
        for queue in self._chosen(port, priority):
            queue.stopped = stopped
        self._settled()

    def _chosen(self, port: int | None, priority: int | None) -> Iterator[PortQueue]:
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
            raise self._missing(port, priority)

    def _missing(self, port: int, priority: int) -> SwitchError:
        most = (self.priorities or 1) - 1
        return SwitchError(
            f"priority {priority}: port {port} has queues 0 to {most}; start the switch with more"
            " (--priority-queues N)"
        )

    def _port(self, number: int) -> PortQueues:
        if number not in self._ports:
            count = self.priorities or 1
            self._ports[number] = PortQueues(
                [PortQueue(self._rate, self._depth) for _ in range(count)]
            )
        return self._ports[number]

    def _settled(self) -> None:
        """Tell native code which ports have queues."""
        self.flags[:] = self._rate or not self._depth
        for number, port in self._ports.items():
            self.flags[number] = port.held
        self.engaged = self.priorities is not None or bool(self.flags.any())

    # -- packets ---------------------------------------------------------------------------------

    def go_round(self, wanted: bool) -> None:
        """Let priorities beyond a port's queues begin with the first one again, as on a Tofino, or
        have no queue. Ports with queues that a control protocol dealt out are left as they are."""
        self._round = wanted
        free = [port for port in range(QUEUES) if port not in self.dealt]
        self.classes[free] = self._even()

    def deal_evenly(self, port: int) -> None:
        """Forget the queues that a control protocol gave a port."""
        self.dealt.pop(port, None)
        self.classes[port] = self._even()

    def _even(self) -> npt.NDArray[np.int64]:
        """Return the queue of each priority where no control protocol has dealt them out."""
        count = self.priorities if self._round and self.priorities else CLASSES
        return np.arange(CLASSES) % count

    def serving(self, port: int, priority: int) -> int:
        """Return the number of the queue that packets with a priority wait in."""
        in_reach = port < QUEUES and priority < CLASSES
        return int(self.classes[port, priority]) if in_reach else priority

    def lacks(self, port: int, priority: int) -> bool:
        """Return whether a port has no queue of a number: its packets are dropped."""
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
        deflected: bool = False,
    ) -> Waiting | None:
        """Put a packet into its queue. Returns None, and counts a drop, if the queue is full.

        deflected: the queue may be of a port that has no rate, which the packet leaves at the next
        `due`; None also if there is no such queue."""
        if deflected and self.lacks(port, priority):
            return None
        place = priority if self.priorities is not None else 0
        to = self._port(port)
        queue = to.queues[place]
        depth = len(queue.waiting)
        sending = max(to.link.free, queue.link.free) > now
        if depth + sending >= queue.depth:
            queue.dropped += 1
            return None
        queue.last = max(now, queue.last + queue.interval)
        self._order += 1
        item = Waiting(owner, departure, events, port, place, self._order, now, queue.last, depth)
        queue.waiting.append(item)
        queue.most = max(queue.most, len(queue.waiting))
        self.waiting += 1
        if deflected:
            self._settled()  # the port has a queue now
        return item

    def full(self, port: int, priority: int) -> str:
        """Return the reason of a drop: the queue is full."""
        queue = "the queue" if self.priorities is None else f"queue {priority}"
        return f"{queue} of port {port} is full"

    def next_departure(self) -> int | None:
        """Return when a packet may leave next, in ns of the clock; None while none waits."""
        if not self.waiting:
            return None
        found = (at for port in self._ports.values() if (at := port.next()) is not None)
        return min(found, default=None)

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
    def _taken(port: PortQueues, now: int) -> Iterator[Waiting]:
        if port.link.free > now:
            return
        paced = port.paced
        for queue in reversed(port.queues):
            while queue.ready and queue.next() <= now:
                item = queue.waiting.popleft()
                item.dequeue_depth = len(queue.waiting)
                yield item
                if paced:
                    port.served = queue
                    return

    def sent(self, port: int, size: int, now: int) -> None:
        """Take note of a packet of `size` bytes that left a port: the links are busy with it."""
        known = self._ports.get(port)
        if known is not None:
            known.link.send(size, now)
            if known.served is not None:
                known.served.link.send(size, now)

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
            self._status(number, i, q)
            for number, port in sorted(self._ports.items())
            for i, q in enumerate(port.queues)
        ]

    def queue(self, port: int, priority: int) -> QueueStatus:
        """Return one queue. Raises SwitchError if the port has none of the priority."""
        if not 0 <= priority < (self.priorities or 1):
            raise self._missing(port, priority)
        known = self._ports.get(port)
        if known is None:
            return self._status(port, priority, PortQueue(self._rate, self._depth))
        return self._status(port, priority, known.queues[priority])

    def bit_rate(self, port: int) -> int:
        """Return the bits a second that may leave a port, 0 for no limit."""
        known = self._ports.get(port)
        return known.link.rate if known is not None else 0

    def packet_rate(self, port: int) -> int:
        """Return the packets a second that may leave a port, 0 for no limit."""
        known = self._ports.get(port)
        return known.link.packets if known is not None else 0

    def restart_counts(self, port: int, priority: int, dropped: int = 0, most: int = 0) -> None:
        """Let a queue count drops, and the most packets that waited at once, from now on."""
        if port in self._ports:
            queue = self._ports[port].queues[priority]
            queue.dropped, queue.most = dropped, max(most, len(queue.waiting))

    @staticmethod
    def _status(port: int, priority: int, q: PortQueue) -> QueueStatus:
        return QueueStatus(
            port, priority, q.rate, q.depth, len(q.waiting), q.dropped, q.link.rate, q.most
        )

    def dropped(self, port: int) -> int:
        """Return the packets that found a queue of the port full."""
        known = self._ports.get(port)
        return 0 if known is None else sum(queue.dropped for queue in known.queues)


def _check(what: str, value: int, unit: str, most: int = MOST_PACKETS) -> None:
    if not 0 <= value < most:
        raise SwitchError(f"queue {what} {value}: expected 0 to {most - 1} {unit}")
