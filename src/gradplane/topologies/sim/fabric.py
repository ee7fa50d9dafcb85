"""The interface of the simulated network's nodes and links, of which there are two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gradplane.hosts.protocols.actions import Peer
from gradplane.switch.ir import nodes as ir
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim.events import Channel, EventQueue, Events
from gradplane.topologies.sim.sim_host import HostStack
from gradplane.topologies.sim.sim_switch import SimSwitch

Deliver = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Receiver:
    """A local UDP port whose ordinary packets from `peer` a kernel takes.

    record: the address of its `fast_results.WORKER`.
    """

    host: str
    port: int
    peer: Peer
    record: int


class Fabric(Protocol):
    """The nodes, made and started, and the links between them."""

    @property
    def events(self) -> Events:
        """The calls and all that happens on links."""

    @property
    def stacks(self) -> Mapping[str, HostStack]:
        """The hosts' network stacks by name."""

    @property
    def switches(self) -> Mapping[str, SimSwitch]:
        """The switches by name."""

    def step(self, until: int | None) -> bool:
        """Run one event or more, but none after the first that Python has a part in, nor after the
        first later than `until`. Returns False if there is no event."""

    def set_receivers(self, receivers: list[Receiver], origin: int) -> None:
        """Let kernels take the ordinary packets of these ports, and of no others.

        origin: the virtual time that counts as 0 for the hosts' programs.
        """

    def sent(self, node: str, port: int) -> tuple[int, int, int]:
        """Return frames, bytes and drops of a link's end, without those before egress."""

    def take_peak(self, node: str, port: int) -> int:
        """Return the most frames in the queue of a link's end since the last call."""


class ReferenceFabric:
    """Nodes and links with an event queue in Python: it says what a simulation is.

    `compiled_fabric` does the same without Python for each packet. Starts the switches, which end
    with `started`.
    """

    def __init__(
        self,
        topology: Topology,
        config: SwitchConfig,
        programs: Mapping[str, ir.Program],
        started: ExitStack,
    ) -> None:
        self.events = EventQueue()
        self.stacks: Mapping[str, HostStack] = {
            host.name: HostStack(host, topology.arp, partial(self._transmit, host.name, 0))
            for host in topology.hosts
        }
        self.switches: dict[str, SimSwitch] = {}
        self._channels: dict[tuple[str, int], Channel[bytes]] = {}  # by the end that sends
        for node in topology.switches:
            ports, transmit = topology.ports(node.name), partial(self._transmit, node.name)
            own, program = config.of(node.name), programs[node.name]
            switch = SimSwitch(node.name, ports, own, program, self.events, transmit)
            self.switches[node.name] = started.enter_context(switch)
        for link in topology.links:
            self._channels[link.a, link.a_port] = self._channel(link, link.b, link.b_port)
            self._channels[link.b, link.b_port] = self._channel(link, link.a, link.a_port)

    def _channel(self, link: Link, node: str, port: int) -> Channel[bytes]:
        return Channel(self.events, link.rate, link.delay, link.queue, self._deliver(node, port))

    def _deliver(self, node: str, port: int) -> Deliver:
        if node in self.stacks:
            return self.stacks[node].receive
        return partial(self.switches[node].receive, port)

    def _transmit(self, node: str, port: int, frame: bytes) -> None:
        self._channels[node, port].send(frame, len(frame))

    def step(self, until: int | None) -> bool:
        """See Fabric."""
        return self.events.step()

    def set_receivers(self, receivers: list[Receiver], origin: int) -> None:
        """See Fabric: the stacks take all packets."""

    def sent(self, node: str, port: int) -> tuple[int, int, int]:
        """See Fabric."""
        channel = self._channels[node, port]
        return channel.packets, channel.bytes, channel.dropped

    def take_peak(self, node: str, port: int) -> int:
        """See Fabric."""
        channel = self._channels[node, port]
        peak, channel.peak = channel.peak, 0
        return peak
