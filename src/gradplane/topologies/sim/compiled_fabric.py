"""The simulated network's nodes and links with the compiled event loop."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack

from gradplane.hosts.protocols.actions import Send
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.packet_passes import Output
from gradplane.switch.switch import Recirculated, Switch
from gradplane.topologies.description import QUEUE, HostNode, Link, Topology
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.compiled_events import CompiledEvents, SwitchNode
from gradplane.topologies.sim.fabric import Receiver
from gradplane.topologies.sim.sim_host import HostStack
from gradplane.topologies.sim.sim_switch import SimSwitch


class CompiledStack(HostStack):
    """A HostStack whose frames are built and sent by a kernel; `number` is the host's."""

    def __init__(self, host: HostNode, arp: Mapping[str, str], events: CompiledEvents) -> None:
        super().__init__(host, arp, self._no_frame)
        self._events = events
        self.number = events.add_host(mac_number(host.mac), ip_number(host.ip), self)
        self._peers: dict[str, tuple[int, int]] = {}  # MAC and IP address by IP address

    @staticmethod
    def _no_frame(frame: bytes) -> None:
        raise AssertionError("the kernel sends the frames")

    def send(self, send: Send) -> None:
        """See HostStack."""
        mac, ip = self._peer(send.ip)
        if not len(send.payloads):
            return
        frames.check_size(int(send.payloads.sizes.max()))
        peer = ip, send.port
        self._events.send_datagrams(
            self.number, send.source_port, mac, peer, send.tos, send.payloads
        )

    def _peer(self, ip: str) -> tuple[int, int]:
        if ip not in self._peers:
            self._peers[ip] = mac_number(self.mac_of(ip)), ip_number(ip)
        return self._peers[ip]


class CompiledSwitch(SimSwitch):
    """A SimSwitch whose passes the compiled loop runs. Makes no captures."""

    def __init__(
        self,
        name: str,
        ports: Mapping[int, Link],
        config: SwitchConfig,
        program: ir.Program,
        events: CompiledEvents,
    ) -> None:
        assert config.pcap is None, "captures need the reference fabric"
        super().__init__(name, ports, config, program, events, self._no_frame)
        self._loop = events
        node = SwitchNode(lambda: self.running, self._finish_pass)
        rate = config.recirculation_rate
        self.number = events.add_switch(node, config.latency, (rate, QUEUE))

    @staticmethod
    def _no_frame(port: int, frame: bytes) -> None:
        raise AssertionError("the kernel sends the frames")

    def _finish_pass(self, switch: Switch) -> None:
        """Do the rest of a pass that kernels have run."""
        self._send(*switch.native_result())
        self._await_departure()

    def _send(self, outputs: list[Output], again: list[Recirculated]) -> None:
        self._loop.leave(self.number, outputs, again)


class CompiledFabric:
    """See Fabric. Starts the switches, which end with `started`."""

    def __init__(
        self,
        topology: Topology,
        config: SwitchConfig,
        programs: Mapping[str, ir.Program],
        started: ExitStack,
    ) -> None:
        self.events = events = CompiledEvents()
        self._arp = topology.arp
        self.stacks: dict[str, CompiledStack] = {
            host.name: CompiledStack(host, self._arp, events) for host in topology.hosts
        }
        self.switches: dict[str, CompiledSwitch] = {}
        for node in topology.switches:
            ports = topology.ports(node.name)
            own, program = config.of(node.name), programs[node.name]
            switch = CompiledSwitch(node.name, ports, own, program, events)
            started.enter_context(switch)
            self.switches[node.name] = switch
        self._channels: dict[tuple[str, int], int] = {}  # by the end that sends
        for link in topology.links:
            self._channels[link.a, link.a_port] = self._channel(link, link.b, link.b_port)
            self._channels[link.b, link.b_port] = self._channel(link, link.a, link.a_port)
        for name, stack in self.stacks.items():
            events.connect_host(stack.number, self._channels[name, 0])
        events.connect_ports(
            [
                {port: self._channels[name, port] for port in topology.ports(name)}
                for name in self.switches
            ]
        )

    def _channel(self, link: Link, node: str, port: int) -> int:
        options = link.rate, link.delay, link.queue
        if node in self.stacks:
            return self.events.add_channel(*options, self.stacks[node].number, (0, 0))
        return self.events.add_channel(*options, None, (self.switches[node].number, port))

    def step(self, until: int | None) -> bool:
        """See Fabric."""
        return self.events.step(until)

    def set_receivers(self, receivers: list[Receiver], origin: int) -> None:
        """See Fabric."""
        rows = []
        for receiver in receivers:
            host, (ip, port) = self.stacks[receiver.host].number, receiver.peer
            mac = mac_number(self._arp[ip])
            rows.append((host, receiver.port, mac, ip_number(ip), port, receiver.record))
        self.events.set_receivers(rows, origin)

    def sent(self, node: str, port: int) -> tuple[int, int, int]:
        """See Fabric."""
        return self.events.counters(self._channels[node, port])

    def take_peak(self, node: str, port: int) -> int:
        """See Fabric."""
        return self.events.take_peak(self._channels[node, port])


def mac_number(mac: str) -> int:
    """Return a MAC address as an integer."""
    return int(mac.replace(":", ""), 16)


def ip_number(ip: str) -> int:
    """Return an IPv4 address as an integer."""
    return int.from_bytes(socket.inet_aton(ip), "big")
