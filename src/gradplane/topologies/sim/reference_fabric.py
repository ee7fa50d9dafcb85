"""The simulated network's nodes and links with an event queue in Python: the reference.

It says what a simulation is; `compiled_fabric` does the same without Python for each packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from gradplane.switch.ir import nodes as ir
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim.channel import Channel
from gradplane.topologies.sim.events import EventQueue
from gradplane.topologies.sim.fabric import Deliver, Receiver
from gradplane.topologies.sim.sim_host import HostStack
from gradplane.topologies.sim.sim_switch import SimSwitch


class ReferenceFabric:
    """See Fabric. Starts the switches, which end with `started`."""

    def __init__(
        self, topology: Topology, config: SwitchConfig, program: ir.Program, started: ExitStack
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
            switch = SimSwitch(node.name, ports, config, program, self.events, transmit)
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
