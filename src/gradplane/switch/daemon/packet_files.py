"""Packets of a live switch from captures (--use-files): INTERFACE_in.pcap in, INTERFACE_out.pcap
out, with the captures' times as the switch's clock.

The times of packets, of meters and of queues are the captures', so that a run takes no longer than
its packets need, and gives the same every time.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import compress
from pathlib import Path
from threading import Event, Thread

from gradplane._captures import Captured, CaptureError, ethernet_packets
from gradplane.switch.p4runtime.device import Device, Outputs
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.runtime.control_errors import SwitchError

log = logging.getLogger(__name__)


class PacketFiles:
    """The captures of the ports, and the clock that they give. A context manager, within which
    `start` runs their packets in a thread.

    Raises SwitchError for captures that cannot be read, and where no port has one.
    """

    def __init__(self, interfaces: Sequence[tuple[int, str]], wait_s: int) -> None:
        self._interfaces, self._wait_s = interfaces, wait_s
        self._packets: list[tuple[int, Captured]] = []
        names = [f"{name}_in.pcap" for _, name in interfaces]
        there = [Path(name).exists() for name in names]
        if not any(there):
            raise SwitchError(f"--use-files: there is none of {', '.join(names)} in this folder")
        try:
            for (port, _), name in compress(zip(interfaces, names, strict=True), there):
                packets = ethernet_packets(name, silent=True)
                self._packets += [(port, packet) for packet in packets]
        except CaptureError as error:
            raise SwitchError(f"--use-files: {error}") from None
        self._packets.sort(key=lambda entry: entry[1].time)
        self._now = self._packets[0][1].time if self._packets else 0
        self._stack = ExitStack()
        self._out: dict[int, PcapWriter] = {}
        self._left: Counter[int] = Counter()
        self._stopped = Event()
        self._failed: OSError | None = None

    def clock(self) -> int:
        """Return the time of the packet that is processed, or was last, in ns since 1970."""
        return self._now

    def __enter__(self) -> PacketFiles:
        for port, name in self._interfaces:
            writer = PcapWriter(Path(f"{name}_out.pcap"), self.clock)
            self._out[port] = self._stack.enter_context(writer)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._stack.close()

    def start(self, device: Device, end: Callable[[], None], stays: bool) -> None:
        """Run the packets, after the seconds to wait; the context's end ends that.

        end: called where a capture cannot be written, and after the last packet, unless the switch
        stays then."""
        thread = Thread(target=self._run, args=(device, end, stays), name="packet files")
        thread.start()
        self._stack.callback(thread.join)  # before the files are closed

    def check(self) -> None:
        """Raise the OSError that ended it, if one did."""
        if self._failed is not None:
            raise self._failed

    def send(self, outputs: Outputs) -> None:
        """Write packets that leave now; those without a file of their port are dropped."""
        for port, packet in outputs:
            if port in self._out:
                self._out[port].write(packet)
                self._left[port] += 1

    def _run(self, device: Device, end: Callable[[], None], stays: bool) -> None:
        if self._stopped.wait(self._wait_s):
            return
        try:
            if not self._all_processed(device):
                return
        except OSError as error:
            self._failed = error
            end()
            return
        left = ", ".join(f"{count} at port {port}" for port, count in sorted(self._left.items()))
        text = f"note: all {len(self._packets)} packets of the files are processed, and left:"
        way_out = "; the switch stays until Ctrl-C (--end-with-files ends it here)"
        print(text, (left or "none") + way_out * stays, file=sys.stderr, flush=True)
        if not stays:
            end()

    def _all_processed(self, device: Device) -> bool:
        """Process the packets; return whether nobody stopped it before the last one left."""
        for port, packet in self._packets:
            if self._stopped.is_set():
                return False
            self._depart(device, packet.time)
            self._now = packet.time
            try:
                outputs = device.process(port, packet.data)
            except Exception:
                log.exception("port %d: processing failed: packet %s", port, packet.data.hex())
            else:
                self.send(outputs)
        self._depart(device, None)
        return True

    def _depart(self, device: Device, until: int | None) -> None:
        """Send the packets whose queues let them go by a time; None: all of them."""
        while (at := device.next_departure()) is not None and (until is None or at <= until):
            self._now = max(at, self._now)
            rows, data = device.poll()
            start = 0
            for port, end, _ in rows.tolist():
                self.send([(port, data[start:end].tobytes())])
                start = end
