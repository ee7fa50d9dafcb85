"""The live switch's packet loop: process packets that arrive and send the results.

Packets go in batches from the kernel to the engine and back, without Python for each of them. The
system calls and the engine's machine code run without the interpreter's lock, so the control
plane's threads work meanwhile.

Packets that a queue holds back wake it by a timer of epoll's (timerfd_create(2)).
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gradplane.switch.ports.kernel_batches import BATCH, Arrivals, Bytes, Departures, Ints
from gradplane.switch.ports.link_state import LinkWatch
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.ports.queue_lengths import QueueWatch

# linux/timerfd.h; struct itimerspec: interval and value, each of seconds and nanoseconds.
_TFD_TIMER_ABSTIME = 1
_ITIMERSPEC = struct.Struct("=qqqq")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.timerfd_settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]


class DepartureTimer:
    """A timer that is not set. Raises OSError where the kernel gives none."""

    def __init__(self) -> None:
        self._set: int | None = None
        self._descriptor = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _error()

    def fileno(self) -> int:
        """Return the descriptor for epoll."""
        return int(self._descriptor)

    def set(self, at: int | None) -> None:
        """Set the timer to a time of time.monotonic_ns; None: it stays silent."""
        if at == self._set:
            return
        self._set = at
        # Zero would switch the timer off.
        value = (0, 0) if at is None else divmod(max(at, 1), 10**9)
        spec = _ITIMERSPEC.pack(0, 0, *value)
        if _libc.timerfd_settime(self._descriptor, _TFD_TIMER_ABSTIME, spec, None) != 0:
            raise _error()

    def close(self) -> None:
        os.close(self._descriptor)


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


log = logging.getLogger(__name__)

Outputs = list[tuple[int, bytes]]
Process = Callable[[Ints, Bytes, Ints, Ints], tuple[Ints, Bytes]]
"""Ports, data, starts, ends (packet i is data[starts[i]:ends[i]]) -> rows of (port, end, cause),
and the packets that leave, one after the other."""

_PAUSE = 0.003  # seconds; about what a batch takes
_SHOWN = 4  # packets in the log of a batch whose processing failed


class PacketPort(Protocol):
    """The interface that the loop needs of a port; ports.port.Port has it."""

    def fileno(self) -> int: ...

    def receive(self, arrivals: Arrivals) -> None:
        """Take the packets that wait, as far as there is room, behind those that are there."""

    def send(self, packets: Departures, first: int, end: int) -> None: ...

    def reopen(self) -> bool: ...

    def close(self) -> None: ...


class QueuedPackets(Protocol):
    """The packets in the switch's own queues; p4runtime.device.Device has them."""

    def next_departure(self) -> int | None:
        """Return when one may leave next, by time.monotonic_ns; None while none waits."""

    def poll(self) -> tuple[Ints, Bytes]:
        """Return those that leave by now, as `Process` does."""


@dataclass(slots=True)
class Capture:
    """The pcap files of one port."""

    received: PcapWriter
    sent: PcapWriter

    def close(self) -> None:
        self.received.close()
        self.sent.close()


@dataclass(slots=True)
class PacketLoop:
    """Runs packets of `ports` (by number) through `process`, those of all ports in one batch.

    reads: the numbers of the ports whose packets it takes from the beginning. first, others: those
    of PacketLoops.

    A batch whose processing fails is logged with its first packets' bytes, its packets are counted
    in `faults`; packets to a port that does not exist are counted in `nowhere`. While `busy`
    reports a controller's request in progress and packets arrive without a pause, the loop makes
    pauses: the request gets a share of the processor under any load. `links` watches the ports'
    links, `queues` the queues of their interfaces; `queued` are packets in the switch's own.
    """

    ports: MutableMapping[int, PacketPort]
    process: Process
    captures: MutableMapping[int, Capture] = field(default_factory=dict)
    busy: Callable[[], bool] = lambda: False
    links: LinkWatch | None = None
    queues: QueueWatch | None = None
    queued: QueuedPackets | None = None
    reads: Collection[int] = ()
    first: PacketLoop | None = None
    others: Sequence[PacketLoop] = ()
    faults: int = 0
    nowhere: int = 0
    _wake: int = field(default_factory=lambda: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
    _arrivals: Arrivals = field(default_factory=Arrivals)
    _departures: Departures = field(default_factory=Departures)
    _timer: DepartureTimer = field(default_factory=DepartureTimer)
    _epoll: select.epoll = field(default_factory=select.epoll)
    _numbers: dict[int, int] = field(default_factory=dict)  # ports by descriptor
    _origins: Ints = field(default_factory=lambda: np.zeros(BATCH, np.int64))  # of the arrivals
    _changes: deque[Callable[[], None]] = field(default_factory=deque)
    _stopped: bool = False

    def run(self) -> None:
        """Process packets until `stop`, which may be called from any thread or signal handler."""
        self._epoll.register(self._wake, select.EPOLLIN)
        for number in self.reads:
            self._register(number)
        if self.links is not None:
            self._epoll.register(self.links, select.EPOLLIN)
        self._epoll.register(self._timer, select.EPOLLIN)
        while not self._stopped:
            self._timer.set(self._next_departure())
            ready = {descriptor for descriptor, _ in self._epoll.poll()}
            for descriptor in ready & self._numbers.keys():
                self._take(self._numbers[descriptor])
            self._process()
            self._depart()
            if self._wake in ready:
                self._change()
            if self.links is not None and self.links.fileno() in ready:
                self.links.update()
                self._reopen()
                for loop in self.others:
                    loop.do(loop._reopen)

    def stop(self) -> None:
        self._stopped = True
        self.wake()

    def wake(self) -> None:
        """End its wait for packets, from any thread."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        self._epoll.close()
        self._timer.close()
        os.close(self._wake)

    def add(
        self, number: int, port: PacketPort, capture: Capture | None, then: Callable[[], None]
    ) -> None:
        """Take a port into the loop, from any thread; `then` is called in the loop's thread."""

        def change() -> None:
            self.ports[number] = port
            if capture is not None:
                self.captures[number] = capture
            self._register(number)
            then()

        self.do(change)

    def remove(self, number: int, then: Callable[[], None]) -> None:
        """Take a port out of the loop, from any thread; `then`, called after it, closes it."""

        def change() -> None:
            descriptor = self.ports[number].fileno()
            self._epoll.unregister(descriptor)
            del self._numbers[descriptor]
            then()

        self.do(change)

    def do(self, change: Callable[[], None]) -> None:
        """Call a function in the loop's thread, from any thread."""
        self._changes.append(change)
        self.wake()

    def _change(self) -> None:
        os.eventfd_read(self._wake)
        while self._changes:
            self._changes.popleft()()

    def _register(self, number: int) -> None:
        descriptor = self.ports[number].fileno()
        self._numbers[descriptor] = number
        self._epoll.register(descriptor, select.EPOLLIN)

    def send(self, outputs: Outputs) -> None:
        """Send packets through their ports, from any thread, and heed those put into queues."""
        if self._waiting():
            self.wake()
        if outputs:
            ends = np.cumsum([len(packet) for _, packet in outputs])
            rows = np.array([[p, e, 0] for (p, _), e in zip(outputs, ends, strict=True)])
            data = np.frombuffer(b"".join(packet for _, packet in outputs), dtype=np.uint8)
            self._send(rows, data, Departures())

    def _reopen(self) -> None:
        """Register ports whose interface was gone and exists again, by their new descriptors.

        epoll forgot the old descriptors when they were closed.
        """
        for number in list(self._numbers.values()):
            port = self.ports[number]
            former = port.fileno()
            if port.reopen():
                self._numbers.pop(former, None)
                self._register(number)

    def _take(self, number: int) -> None:
        """Take the packets that wait at one port: at most a batch, so that no port starves."""
        arrivals = self._arrivals
        if arrivals.full:
            self._process()
        first = arrivals.count
        self.ports[number].receive(arrivals)
        self._origins[first : arrivals.count] = number
        if number in self.captures:
            spans = arrivals.starts[first:], arrivals.ends[first:]
            _capture(self.captures[number].received, arrivals.data, *spans)

    def _process(self) -> None:
        """Process the packets that were taken, if there are any, and send the results."""
        arrivals = self._arrivals
        count = arrivals.count
        if not count:
            return
        data, starts, ends = arrivals.data, arrivals.starts, arrivals.ends
        if self.queues is not None:
            self.queues.update()
        try:
            rows, out = self.process(self._origins[:count], data, starts, ends)
            self._send(rows, out, self._departures)
            if self.first is not None and self._waiting():
                self.first.wake()
        except Exception:
            self.faults += count
            shown = (data[starts[i] : ends[i]].tobytes().hex() for i in range(min(count, _SHOWN)))
            more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
            numbers = ", ".join(map(str, dict.fromkeys(self._origins[:count].tolist())))
            text = "port %s: processing failed: packet %s%s"
            log.exception(text, numbers, ", ".join(shown), more)
        arrivals.clear()
        if count == BATCH and self.busy():
            time.sleep(_PAUSE)

    def _waiting(self) -> bool:
        return self.queued is not None and self.queued.next_departure() is not None

    def _next_departure(self) -> int | None:
        """Return when it has to let a packet leave a queue, if it is the loop that does so."""
        mine = self.queued is not None and self.first is None
        return self.queued.next_departure() if mine and self.queued else None

    def _depart(self) -> None:
        """Send the packets whose queues let them go by now."""
        due = self._next_departure()
        if due is not None and due <= time.monotonic_ns():
            assert self.queued is not None
            try:
                self._send(*self.queued.poll(), self._departures)
            except Exception:
                self.faults += 1
                log.exception("processing failed of packets that left a queue")

    def _send(self, rows: Ints, data: Bytes, departures: Departures) -> None:
        """Send port by port; each port's packets stay in order."""
        if not len(rows):
            return
        ports, order = rows[:, 0], None
        edges = [0, len(ports)]
        if departures.put(rows, data):
            order = np.argsort(ports, kind="stable")
            ports = ports[order]
            edges[1:1] = ((ports[1:] != ports[:-1]).nonzero()[0] + 1).tolist()
            departures.put(rows, data, order)
        for first, end in zip(edges, edges[1:], strict=False):
            number = int(ports[first])
            port = self.ports.get(number)
            if port is None:
                self.nowhere += end - first
                log.debug("packets left through port %d, which has no interface", number)
                continue
            port.send(departures, first, end)
            if number in self.captures:
                some = np.arange(first, end) if order is None else order[first:end]
                ends = rows[:, 1]
                starts = np.where(some > 0, ends[some - 1], 0)
                _capture(self.captures[number].sent, data, starts, ends[some])


def _capture(writer: PcapWriter, data: Bytes, starts: Ints, ends: Ints) -> None:
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        writer.write(data[start:end].tobytes())
