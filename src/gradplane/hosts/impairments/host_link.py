"""A host's end of its link, where packets are lost, delayed and counted."""

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.environment import Datagram, Environment
from gradplane.hosts.impairments.verdicts import Impairments, Verdict
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.stream import segments
from gradplane.hosts.wire import aggregation

UDP_OVERHEAD = 14 + 20 + 8  # Ethernet (without frame check sequence), IPv4, UDP

Receiver = Callable[[str, int, bytes], None]  # (ip, source port, payload)


@dataclass
class PortTraffic:
    """Packets and bytes of a port: `payload` without the protocol's header, `wire` with all."""

    packets_up: int = 0
    packets_down: int = 0
    payload_up: int = 0
    payload_down: int = 0
    wire_up: int = 0
    wire_down: int = 0

    def count_up(self, size: int, payload: int) -> None:
        """Count an outgoing datagram of `size` bytes after UDP, `payload` without the header."""
        self.packets_up += 1
        self.payload_up += payload
        self.wire_up += size + UDP_OVERHEAD

    def count_down(self, size: int, payload: int) -> None:
        """Count an incoming datagram."""
        self.packets_down += 1
        self.payload_down += payload
        self.wire_down += size + UDP_OVERHEAD


class LocalPort:
    """A local UDP port: the receiver of its datagrams, their payload's size, its traffic."""

    def __init__(self, receiver: Receiver, payload_size: Callable[[bytes], int]) -> None:
        self.receiver = receiver
        self.payload_size = payload_size
        self.traffic = PortTraffic()

    def take_traffic(self) -> PortTraffic:
        """Return the traffic since the last call."""
        taken, self.traffic = self.traffic, PortTraffic()
        return taken


def aggregation_payload(datagram: bytes) -> int:
    """Return the bytes of indices or sums in an aggregation packet."""
    return max(0, len(datagram) - aggregation.HEADER_SIZE)


def stream_payload(datagram: bytes) -> int:
    """Return the bytes of a message in a stream's datagram; 0 for an acknowledgement."""
    try:
        segment = segments.parse(datagram)
    except segments.SegmentError:
        return 0
    return 0 if isinstance(segment, segments.Ack) else len(segment.payload)


class HostLink:
    """The host's ports, behind its impairments.

    Traffic counts what crosses the host's edge, including packets that the impairments then lose,
    but not the packets that a left-out straggler does not send.
    """

    def __init__(self, config: HostConfig, env: Environment) -> None:
        job = config.job
        self._env = env
        self._impairments = Impairments(
            config.impairments,
            config.name,
            config.worker,
            job.workers,
            job.number,
            job.reliability == "lossy",
        )
        self.ports: dict[int, LocalPort] = {}
        self.strays = 0  # datagrams for ports without a receiver

    def start_round(self, number: int) -> None:
        """Begin training round `number`: the impairments choose its stragglers."""
        self._impairments.start_round(number)

    def send(self, send: Send) -> None:
        """Send a datagram unless the impairments drop it, after the delay that they add."""
        port = self.ports[send.source_port]
        datagram = Datagram(send.source_port, send.ip, send.port, send.payload, send.tos)
        verdict = self._impairments.up(send.ip, send.port, send.payload)
        if not _leaves_out(verdict):
            port.traffic.count_up(len(send.payload), port.payload_size(send.payload))
        self._apply(verdict, lambda: self._env.send(datagram))

    def receive(self, port: int, ip: str, source_port: int, payload: bytes) -> None:
        """Take a datagram that arrived for local `port`."""
        local = self.ports.get(port)
        if local is None:
            self.strays += 1
            return
        local.traffic.count_down(len(payload), local.payload_size(payload))
        verdict = self._impairments.down(ip, source_port, payload)
        self._apply(verdict, lambda: local.receiver(ip, source_port, payload))

    def _apply(self, verdict: Verdict, action: Callable[[], None]) -> None:
        for record in verdict.records:
            self._env.record(record.kind, **record.fields)
        if verdict.drop:
            return
        for later in (0, *verdict.copies):
            self._after(verdict.delay_ns + later, action)

    def _after(self, delay_ns: int, action: Callable[[], None]) -> None:
        if delay_ns:
            self._env.call_at(self._env.now() + delay_ns, action)
        else:
            action()


def _leaves_out(verdict: Verdict) -> bool:
    return any(record.fields["verdict"] == "leave out" for record in verdict.records)
