"""A host of the simulated network: UDP over Ethernet, and the environment of the programs on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gradplane._deferred import Deferred
from gradplane.hosts.protocols.actions import Peer, Send
from gradplane.hosts.wire.payloads import Payloads
from gradplane.topologies import description
from gradplane.topologies.network import OnRecord
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.events import Events, SimEvent
from gradplane.topologies.sim.spare_cores import SpareCores
from gradplane.topologies.topology_errors import NetworkError

Receive = Callable[[int, str, int, Payloads], None]  # (local port, ip, source port, payloads)


class HostStack:
    """A host's network stack. `transmit` puts a frame on its link.

    arp: all MAC addresses by IP address. `rejected` counts dropped frames by reason.
    """

    def __init__(
        self, host: description.HostNode, arp: Mapping[str, str], transmit: Callable[[bytes], None]
    ) -> None:
        self._host, self._arp, self._transmit = host, arp, transmit
        self._listeners: dict[int, Receive] = {}
        self.rejected: Counter[str] = Counter()

    def listen(self, port: int, receive: Receive) -> None:
        """Deliver datagrams for `port` to `receive`.

        Raises NetworkError where the port is taken.
        """
        if port in self._listeners:
            raise NetworkError(f"{self._host.name}: UDP port {port} is taken")
        self._listeners[port] = receive

    def unlisten(self, port: int) -> None:
        """Deliver nothing more for `port`."""
        del self._listeners[port]

    def close(self) -> None:
        """Remove all listeners."""
        self._listeners.clear()

    def send(self, send: Send) -> None:
        """Put datagrams on the link. Raises NetworkError for an address that no host has."""
        source = frames.Address(self._host.mac, self._host.ip, send.source_port)
        to = frames.Address(self.mac_of(send.ip), send.ip, send.port)
        for payload in send.payloads:
            self._transmit(frames.build(source, to, payload, send.tos))

    def mac_of(self, ip: str) -> str:
        """Return the MAC address of a peer. Raises NetworkError for an address that no host has."""
        if ip not in self._arp:
            raise NetworkError(f"{self._host.name} sends to {ip}, which no host has")
        return self._arp[ip]

    def receive(self, frame: bytes) -> None:
        """Deliver the datagram of a frame from the link, or count why it is dropped."""
        try:
            datagram = frames.parse(frame, self._host.mac)
        except frames.FrameError as error:
            self.rejected[str(error)] += 1
            return
        if datagram.ip != self._host.ip:
            self._reject(datagram.ip, datagram.port)
            return
        source = datagram.source_ip, datagram.source_port
        self.deliver(datagram.port, source, Payloads.of([datagram.payload]).with_tos(datagram.tos))

    def deliver(self, port: int, source: Peer, payloads: Payloads) -> None:
        """Deliver datagrams for a port of this host, or count that nobody listens."""
        if port in self._listeners:
            self._listeners[port](port, *source, payloads)
        else:
            self._reject(self._host.ip, port)

    def _reject(self, ip: str, port: int) -> None:
        self.rejected[f"no listener at {ip} port {port}"] += 1


class SimEnvironment:
    """The environment of `gradplane.hosts` under virtual time."""

    granularity = 0
    """Virtual time is exact."""

    def __init__(
        self,
        events: Events,
        stack: HostStack,
        on_record: OnRecord,
        origin: int,
        on_crash: Callable[[int], None],
        spare: SpareCores,
    ) -> None:
        """Set up a host's environment.

        origin: the time that counts as 0. on_crash: gets the round that the host is back in.
        spare: computes what is put off.
        """
        self._spare = spare
        self._events, self._stack, self._on_record = events, stack, on_record
        self._origin, self._on_crash = origin, on_crash
        self._crashed = False

    def now(self) -> int:
        """See gradplane.hosts.drivers.environment."""
        return self._events.now - self._origin

    def send(self, send: Send) -> None:
        """See gradplane.hosts.drivers.environment."""
        if not self._crashed:
            self._stack.send(send)

    def call_at(self, at: int, callback: Callable[[], None]) -> SimEvent:
        """See gradplane.hosts.drivers.environment."""
        return self._events.at(self._origin + at, partial(self._call, callback))

    def when_idle(self, work: Deferred[Any]) -> None:
        """Compute it: that takes no virtual time."""
        self._spare.compute(work)

    def _call(self, callback: Callable[[], None]) -> None:
        if not self._crashed:
            callback()

    def crash(self, back: int) -> None:
        """See gradplane.hosts.drivers.environment: nothing of the host happens any more."""
        self._crashed = True
        self._on_crash(back)

    def record(self, kind: str, **fields: Any) -> None:
        """Pass on a record as a log file would hold it, converted to JSON's kinds of values."""
        for name, value in fields.items():
            if type(value) not in _SAME and not _is_plain(value):
                fields[name] = json.loads(_ENCODER.encode(value))
        self._on_record({"kind": kind, **fields})


def _is_plain(value: Any) -> bool:
    """Whether a value would be the same after it was written as JSON and read again."""
    if type(value) is list:
        return set(map(type, value)) <= _SAME or all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    return type(value) in _SAME


_SAME = {int, str, float, bool, type(None)}
_ENCODER = json.JSONEncoder(default=lambda value: value.tolist())  # NumPy's
