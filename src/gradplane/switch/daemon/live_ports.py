"""The ports of a live switch: interfaces, links and captures, added and removed at any time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from typing import cast

from gradplane._option_tables import OptionError
from gradplane.switch.commands.command_registry import CommandError, PortStatus
from gradplane.switch.daemon.options import SwitchOptions, check_ports
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.ports.link_state import LinkWatch
from gradplane.switch.ports.packet_loop import Capture, PacketLoop, PacketPort
from gradplane.switch.ports.packet_loops import PacketLoops
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.ports.port import Port
from gradplane.switch.ports.queue_lengths import QueueWatch
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.interfaces import flags, set_up
from gradplane.switch.runtime.links import Links

log = logging.getLogger(__name__)


class LivePorts:
    """Opens the options' interfaces; `loop` then runs a device on them. A context manager.

    The methods for commands may be called from any thread. A change takes effect in the packet
    loop, soon after the method returns.
    """

    def __init__(self, options: SwitchOptions) -> None:
        self._options = options
        self._interfaces = dict(options.interfaces)
        self.links = Links(self._interfaces or None, EgressQueues(options.priority_queues))
        for number in self._interfaces:
            self._set_queues(number)
        self._set_down: set[str] = set()
        self._opened: dict[int, Port] = {}
        self._captures: dict[int, Capture] = {}
        self._watch: LinkWatch | None = None
        self._queues: QueueWatch | None = None
        self._loop: PacketLoops | None = None

    def __enter__(self) -> LivePorts:
        with ExitStack() as on_failure:
            on_failure.callback(self._close)
            for number, interface in self._real:
                self._opened[number] = Port(number, interface)
            on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    @property
    def _real(self) -> list[tuple[int, str]]:
        """The ports that are interfaces, not captures."""
        return [] if self._options.use_files is not None else list(self._interfaces.items())

    def loop(self, device: Device) -> PacketLoops:
        """Make the packet loops that run packets of the ports through the device."""
        for number, interface in self._real:
            if self._options.pcap is not None:
                self._captures[number] = self._capture(interface)
        self._watch = LinkWatch(self._real, self.links)
        self._queues = QueueWatch(self._opened, self.links)
        ports, cores = cast("dict[int, PacketPort]", self._opened), self._options.cores
        loops = [
            PacketLoop(
                ports, device.process_spans, self._captures, lambda: device.busy,
                None if core else self._watch, self._queues, device, [*ports][core::cores],
            )
            for core in range(cores)
        ]  # fmt: skip
        self._loop = PacketLoops(loops)
        return self._loop

    # -- for commands ----------------------------------------------------------------------------

    def status(self) -> Sequence[PortStatus]:
        """Return the ports, with the state of their links."""
        missed = {number: port.missed for number, port in self._opened.items()}
        return [
            PortStatus(port, name, port not in self.links.down, missed.get(port, 0))
            for port, name in sorted(self._interfaces.items())
        ]

    def add(self, number: int, interface: str) -> None:
        """Open an interface as a port. Raises CommandError or PortError."""
        self._check_changeable()
        assert self._loop is not None and self._watch is not None
        try:
            wanted = [*self._interfaces.items(), (number, interface)]
            check_ports(wanted, self._options.cpu_port, self._options.drop_port)
        except OptionError as error:
            raise CommandError(str(error).removeprefix("-i ")) from error
        with ExitStack() as on_failure:
            port = on_failure.enter_context(closing(Port(number, interface)))
            capture = None if self._options.pcap is None else self._capture(interface)
            on_failure.pop_all()
        self._interfaces[number] = interface
        self._set_queues(number)
        self.links.ports = frozenset(self._interfaces)
        watch = self._watch
        self._loop.add(number, port, capture, lambda: watch.add(number, interface))

    def enable(self, interface: str, up: bool) -> None:
        """Set an interface up or down, until the switch ends. Raises OSError."""
        was_up, _ = flags(interface) or (False, False)
        set_up(interface, up)
        if up:
            self._set_down.discard(interface)
        elif was_up:
            self._set_down.add(interface)

    def _set_queues(self, number: int) -> None:
        """Give the queues of a port the options' rate and depth.

        Other ports, such as one that a program recirculates packets through, have no rate.
        """
        if self._options.queue_rate is not None:
            self.links.queues.set_rate(self._options.queue_rate, number)
        if self._options.queue_depth is not None:
            self.links.queues.set_depth(self._options.queue_depth, number)

    def remove(self, number: int) -> None:
        """Close a port. Raises CommandError where there is none."""
        self._check_changeable()
        assert self._loop is not None and self._watch is not None
        if number not in self._interfaces:
            there = ", ".join(map(str, sorted(self._interfaces))) or "none"
            raise CommandError(f"port {number} has no interface; ports: {there}")
        del self._interfaces[number]
        self.links.ports = frozenset(self._interfaces)
        self._loop.remove(number, lambda: self._removed(number))

    def _check_changeable(self) -> None:
        if self._options.use_files is not None:
            raise CommandError("the ports are files (--use-files), and stay as they are")

    # -- parts -----------------------------------------------------------------------------------

    def _removed(self, number: int) -> None:
        assert self._watch is not None
        self._watch.remove(number)
        self._opened.pop(number).close()
        capture = self._captures.pop(number, None)
        if capture is not None:
            capture.close()

    def _capture(self, interface: str) -> Capture:
        folder = self._options.pcap
        assert folder is not None
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as on_failure:
            received, sent = (
                on_failure.enter_context(PcapWriter(folder / f"{interface}_{way}.pcap"))
                for way in ("in", "out")
            )
            on_failure.pop_all()
        return Capture(received, sent)

    def _close(self) -> None:
        if self._loop is not None:
            self._loop.close()
        lost = self.links.queues.clear()
        if lost:
            log.warning("%d packets waited in queues as the switch ended, and are dropped", lost)
        if self._watch is not None:
            self._watch.close()
        if self._queues is not None:
            self._queues.close()
        for capture in self._captures.values():
            capture.close()
        for port in self._opened.values():
            port.close()
        for interface in self._set_down:
            with suppress(OSError):  # it was removed meanwhile
                set_up(interface, True)
