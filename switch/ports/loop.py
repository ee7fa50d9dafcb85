"""The live switch's packet loop: what arrives is processed, what comes of it is sent."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gradplane.switch.ports.pcap import PcapWriter

log = logging.getLogger(__name__)

Outputs = list[tuple[int, bytes]]


class PacketPort(Protocol):
    """What the loop needs of a port; ports.port.Port is one."""

    def fileno(self) -> int: ...

    def receive(self) -> list[bytes]: ...

    def send(self, packet: bytes) -> None: ...


@dataclass(slots=True)
class Capture:
    """The pcap files of one port."""

    received: PcapWriter
    sent: PcapWriter


@dataclass(slots=True)
class PacketLoop:
    """Runs packets of `ports` (by number) through `process`.

    A packet whose processing fails is logged with its bytes and counted in `faults`; what leaves
    through a port that is not there is counted in `nowhere`.
    """

    ports: Mapping[int, PacketPort]
    process: Callable[[int, bytes], Outputs]
    captures: Mapping[int, Capture] = field(default_factory=dict)
    faults: int = 0
    nowhere: int = 0
    _wake: int = field(default_factory=lambda: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))

    def run(self) -> None:
        """Until `stop`, which may be called from any thread or signal handler."""
        with select.epoll() as waiting:
            waiting.register(self._wake, select.EPOLLIN)
            numbers = {port.fileno(): number for number, port in self.ports.items()}
            for descriptor in numbers:
                waiting.register(descriptor, select.EPOLLIN)
            while True:
                for descriptor, _ in waiting.poll():
                    if descriptor == self._wake:
                        return
                    self._take(numbers[descriptor])

    def stop(self) -> None:
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        os.close(self._wake)

    def send(self, outputs: Outputs) -> None:
        """Send packets through their ports, from any thread."""
        for number, packet in outputs:
            port = self.ports.get(number)
            if port is None:
                self.nowhere += 1
                log.debug("a packet left through port %d, which has no interface", number)
                continue
            port.send(packet)
            if number in self.captures:
                self.captures[number].sent.write(packet)

    def _take(self, number: int) -> None:
        """The packets that wait at one port: at most a batch, so that no port starves."""
        capture = self.captures.get(number)
        for packet in self.ports[number].receive():
            if capture is not None:
                capture.received.write(packet)
            try:
                self.send(self.process(number, packet))
            except Exception:
                self.faults += 1
                log.exception("port %d: processing failed: packet %s", number, packet.hex())
