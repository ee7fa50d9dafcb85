"""The live switch's packet loop: process packets that arrive and send the results.

Packets go in batches from the kernel to the engine and back, without Python for each of them. The
system calls and the engine's machine code run without the interpreter's lock, so the control
plane's threads work meanwhile.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gradplane.switch.ports.kernel_batches import BATCH, Arrivals, Bytes, Departures, Ints
from gradplane.switch.ports.link_state import LinkWatch
from gradplane.switch.ports.pcap import PcapWriter

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

    def receive(self, arrivals: Arrivals) -> None: ...

    def send(self, packets: Departures, first: int, end: int) -> None: ...

    def reopen(self) -> bool: ...


@dataclass(slots=True)
class Capture:
    """The pcap files of one port."""

    received: PcapWriter
    sent: PcapWriter


@dataclass(slots=True)
class PacketLoop:
    """Runs packets of `ports` (by number) through `process`.

    A batch whose processing fails is logged with its first packets' bytes, its packets are counted
    in `faults`; packets to a port that does not exist are counted in `nowhere`. While `busy`
    reports a controller's request in progress and packets arrive without a pause, the loop makes
    pauses: the request gets a share of the processor under any load. `links` watches the ports'
    links.
    """

    ports: Mapping[int, PacketPort]
    process: Process
    captures: Mapping[int, Capture] = field(default_factory=dict)
    busy: Callable[[], bool] = lambda: False
    links: LinkWatch | None = None
    faults: int = 0
    nowhere: int = 0
    _wake: int = field(default_factory=lambda: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
    _arrivals: Arrivals = field(default_factory=Arrivals)
    _departures: Departures = field(default_factory=Departures)

    def run(self) -> None:
        """Process packets until `stop`, which may be called from any thread or signal handler."""
        with select.epoll() as waiting:
            waiting.register(self._wake, select.EPOLLIN)
            numbers = {port.fileno(): number for number, port in self.ports.items()}
            for descriptor in numbers:
                waiting.register(descriptor, select.EPOLLIN)
            if self.links is not None:
                waiting.register(self.links, select.EPOLLIN)
            columns = {number: np.full(BATCH, number, dtype=np.int64) for number in self.ports}
            while True:
                for descriptor, _ in waiting.poll():
                    if descriptor == self._wake:
                        return
                    number = numbers.get(descriptor)
                    if number is not None:
                        self._take(number, columns[number])
                    elif self.links is not None:
                        self.links.update()
                        numbers |= self._reopened(waiting)

    def stop(self) -> None:
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        os.close(self._wake)

    def send(self, outputs: Outputs) -> None:
        """Send packets through their ports, from any thread."""
        if outputs:
            ends = np.cumsum([len(packet) for _, packet in outputs])
            rows = np.array([[p, e, 0] for (p, _), e in zip(outputs, ends, strict=True)])
            data = np.frombuffer(b"".join(packet for _, packet in outputs), dtype=np.uint8)
            self._send(rows, data, Departures())

    def _reopened(self, waiting: select.epoll) -> dict[int, int]:
        """Return ports whose interface was gone and exists again, by their new descriptors.

        epoll forgot the old descriptors when they were closed.
        """
        again = {port.fileno(): n for n, port in self.ports.items() if port.reopen()}
        for descriptor in again:
            waiting.register(descriptor, select.EPOLLIN)
        return again

    def _take(self, number: int, column: Ints) -> None:
        """Process the packets that wait at one port: at most a batch, so that no port starves."""
        arrivals = self._arrivals
        self.ports[number].receive(arrivals)
        count = arrivals.count
        if not count:
            return
        data, starts, ends = arrivals.data, arrivals.starts, arrivals.ends
        if number in self.captures:
            _capture(self.captures[number].received, data, starts, ends)
        try:
            rows, out = self.process(column[:count], data, starts, ends)
            self._send(rows, out, self._departures)
        except Exception:
            self.faults += count
            shown = (data[starts[i] : ends[i]].tobytes().hex() for i in range(min(count, _SHOWN)))
            more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
            text = "port %d: processing failed: packet %s%s"
            log.exception(text, number, ", ".join(shown), more)
        if count == BATCH and self.busy():
            time.sleep(_PAUSE)

    def _send(self, rows: Ints, data: Bytes, departures: Departures) -> None:
        """Send port by port; each port's packets stay in order."""
        if not len(rows):
            return
        ports, order = rows[:, 0], None
        edges = [0, len(ports)]
        if departures.put(rows, data):
            order = np.argsort(ports, kind="stable")
            ports = ports[order]
            edges[1:1] = (np.flatnonzero(np.diff(ports)) + 1).tolist()
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
