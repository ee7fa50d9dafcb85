"""Background traffic: flows of UDP datagrams beside the jobs, which the switches only forward.

A datagram is a flow's number and the datagram's, 4 bytes each in network order, then zeros. The
flow's rate counts Ethernet, IPv4 and UDP headers, as a link's rate does. Impairments do not apply.

A datagram of a flow that adapts is answered with its two numbers, and a byte that is 1 if it was
marked at a queue. Datagrams before an answered one that have no answer are lost.
"""

import struct
from collections import Counter, deque
from math import log

from gradplane import codecs
from gradplane.hosts.config import LEAST_PACKET, UDP_OVERHEAD, Flow, HostConfig
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.host_link import HostLink, LocalPort
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.protocols.congestion_window import CongestionWindow
from gradplane.hosts.wire.payloads import ECN_CAPABLE, Payloads

PORT = 22000
"""The UDP port that flows leave from and arrive at."""
_HEADER = struct.Struct("!II")
_ANSWER = struct.Struct("!IIB")
_MOST_UNDER_WAY = 1024  # datagrams of a flow that adapts
_PATIENCE = 200_000_000  # ns, after which they are lost if nothing is answered
assert _HEADER.size == LEAST_PACKET


class BackgroundTraffic:
    """A host's role: sends the flows that start here, counts the datagrams that arrive.

    It keeps no run from ending. A record of kind "traffic" at the end has the counts of each flow.
    """

    finished = True

    def __init__(self, config: HostConfig, env: Environment, link: HostLink) -> None:
        self._env = env
        self._senders = [Sender(flow, env) for flow in config.flows if flow.source_ip == config.ip]
        self._flows = {flow.number: flow for flow in config.flows}
        self._own = {sender.flow.number: sender for sender in self._senders}
        self._received: Counter[int] = Counter()
        self._refused = 0
        link.ports[PORT] = LocalPort(self._receive, lambda packets: packets.nbytes)

    @property
    def ignored(self) -> dict[str, int]:
        """The number of datagrams that are of no flow."""
        return {"no flow": self._refused}

    def start(self) -> None:
        """Begin to send."""
        for sender in self._senders:
            sender.start()

    def end(self) -> None:
        """Record how many datagrams were sent and have arrived."""
        for sender in self._senders:
            self._env.record("traffic", flow=sender.flow.number, sent=sender.sent, received=0)
        for flow, received in sorted(self._received.items()):
            self._env.record("traffic", flow=flow, sent=0, received=received)

    def _receive(self, ip: str, source_port: int, payloads: Payloads) -> None:
        for place, payload in enumerate(payloads):
            number = _HEADER.unpack_from(payload)[0] if len(payload) >= LEAST_PACKET else None
            if number in self._own:
                self._own[number].answered(payload)
            elif number in self._flows:
                self._received[number] += 1
                if self._flows[number].adapts:
                    marked = payloads.marked is not None and bool(payloads.marked[place])
                    answer = _ANSWER.pack(*_HEADER.unpack_from(payload), marked)
                    self._env.send(Send(PORT, ip, PORT, Payloads.of([answer]), ECN_CAPABLE))
            else:
                self._refused += 1


class Sender:
    """Sends the datagrams of a flow, each at its own time, however late the one before was."""

    def __init__(self, flow: Flow, env: Environment) -> None:
        self.flow, self._env = flow, env
        self.sent = 0
        self._interval = (flow.packet + UDP_OVERHEAD) * 8e9 / (flow.rate or 1)
        self._due = float(flow.start_ns)
        self._window = CongestionWindow(_MOST_UNDER_WAY)
        self._under_way: deque[tuple[int, int]] = deque()  # numbers, and when they were sent

    def start(self) -> None:
        """Wait for the flow's first datagram."""
        self._env.call_at(round(self._due), self._send)

    def _send(self) -> None:
        """Send all datagrams that are due, and wait for the next."""
        now, payloads = self._env.now(), []
        while round(self._due) <= now and not self._over():
            if self._may_send(now):
                payloads.append(self._payload())
                self.sent += 1
            self._due = self._next()
        if payloads:
            to, tos = self.flow.destination_ip, ECN_CAPABLE if self.flow.adapts else 0
            self._env.send(Send(PORT, to, PORT, Payloads.of(payloads), tos))
        if not self._over():
            self._env.call_at(round(self._due), self._send)

    def _may_send(self, now: int) -> bool:
        """Return whether the next datagram has room in the window, where there is one."""
        if not self.flow.adapts:
            return True
        if self._under_way and now - self._under_way[0][1] > _PATIENCE:
            self._window.lost(self._under_way[-1][1], now)
            self._under_way.clear()
        if len(self._under_way) >= self._window.size:
            return False
        self._under_way.append((self.sent, now))
        return True

    def answered(self, payload: bytes) -> None:
        """Take the answer to a datagram; one to a datagram that is no longer under way is old."""
        if len(payload) != _ANSWER.size or not self.flow.adapts:
            return
        _, number, marked = _ANSWER.unpack(payload)
        if all(number != known for known, _ in self._under_way):
            return
        now = self._env.now()
        while self._under_way[0][0] != number:
            self._window.lost(self._under_way.popleft()[1], now)
        self._window.result(self._under_way.popleft()[1], bool(marked), now)

    def _over(self) -> bool:
        flow = self.flow
        most = len(flow.captured) or flow.packets
        at_end = flow.stop_ns is not None and self._due >= flow.stop_ns
        return at_end or (most is not None and self.sent >= most)

    def _next(self) -> float:
        """Return the time of the next datagram; in a Poisson process distances are exponential."""
        flow = self.flow
        if flow.captured:
            return flow.start_ns + flow.captured[min(self.sent, len(flow.captured) - 1)][0]
        if not flow.poisson:
            return self._due + self._interval
        key = codecs.key(flow.seed, "background", flow.number, self.sent)
        return self._due - self._interval * log(1 - key / 2.0**64)

    def _payload(self) -> bytes:
        flow, header = self.flow, _HEADER.pack(self.flow.number, self.sent % 2**32)
        size = flow.captured[self.sent][1] - UDP_OVERHEAD if flow.captured else flow.packet
        return header.ljust(size, b"\0")
