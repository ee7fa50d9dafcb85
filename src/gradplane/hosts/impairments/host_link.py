"""A host's end of its link, where packets are lost, delayed and counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gradplane.hosts.config import UDP_OVERHEAD, HostConfig
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.hosts.impairments.verdicts import Impairments, Verdict
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.protocols.fast_results import WorkerRecord
from gradplane.hosts.stream import segments
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads

_CLOSES = {Type.NORM_RESULT: Type.NORM, Type.SUMS: Type.INDICES}

_Slot = tuple[Type, int]


class LatePackets:
    """The packets of one host that wait."""

    def __init__(self) -> None:
        self._closed: dict[_Slot, int] = {}  # the last round with a result
        self._held: defaultdict[_Slot, list[tuple[int, Send]]] = defaultdict(list)

    def hold(self, send: Send) -> bool:
        """Keep one packet until its slot's quorum has closed; False if it has already."""
        kind, _, round, number = aggregation.identity(send.payload)
        slot = kind, number
        closed = self._closed.get(slot)
        if closed is not None and aggregation.ahead(round, closed) <= 0:
            return False
        self._held[slot].append((round, send))
        return True

    def released(self, payloads: Payloads) -> list[Send]:
        """Return the packets that these arriving results release."""
        out: list[Send] = []
        for payload in payloads:
            try:
                kind, _, closed, number = aggregation.identity(payload)
            except aggregation.WireError:
                continue
            if kind not in _CLOSES:
                continue
            slot = _CLOSES[kind], number
            if aggregation.ahead(closed, self._closed.get(slot, closed)) >= 0:
                self._closed[slot] = closed
            held = [
                (aggregation.ahead(round, closed), round, send)
                for round, send in self._held.pop(slot, [])
            ]
            out += [send for later, _, send in held if later <= 0]
            if left := [(round, send) for later, round, send in held if later > 0]:
                self._held[slot] = left
        return out

    def all(self) -> list[Send]:
        """Return all packets that wait, in the order of their slots, and forget them."""
        out = [send for held in self._held.values() for _, send in held]
        self._held.clear()
        return out


Receiver = Callable[[str, int, Payloads], None]  # (ip, source port, payloads)


@dataclass
class PortTraffic:
    """Packets and bytes of a port: `payload` without the protocol's header, `wire` with all;
    needed: the payload without what a stream sends again."""

    packets_up: int = 0
    packets_down: int = 0
    payload_up: int = 0
    payload_down: int = 0
    wire_up: int = 0
    wire_down: int = 0
    needed_up: int = 0
    needed_down: int = 0

    @classmethod
    def total(cls, parts: Sequence[PortTraffic]) -> PortTraffic:
        """Return the traffic of several ports together."""
        return cls(*map(sum, zip(*(vars(part).values() for part in parts), strict=True)))

    def count_up(self, packets: Payloads, payload: int) -> None:
        """Count outgoing datagrams, with `payload` bytes without the protocol's headers."""
        self.packets_up += len(packets)
        self.payload_up += payload
        self.wire_up += packets.nbytes + UDP_OVERHEAD * len(packets)

    def count_down(self, packets: Payloads, payload: int) -> None:
        """Count incoming datagrams."""
        self.packets_down += len(packets)
        self.payload_down += payload
        self.wire_down += packets.nbytes + UDP_OVERHEAD * len(packets)


class LocalPort:
    """A local UDP port: the receiver of its datagrams, a function that adds up what they carry
    beside the protocol's headers, its traffic; a switch worker's record, where a kernel may take
    its packets; and of a stream a function that returns the bytes of messages, sent and arrived,
    since its last call.
    """

    def __init__(
        self,
        receiver: Receiver,
        payload_size: Callable[[Payloads], int],
        record: WorkerRecord | None = None,
        messages: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self.receiver = receiver
        self.payload_size = payload_size
        self.record = record
        self._messages = messages
        self.traffic = PortTraffic()

    def payload_down(self, packets: Payloads) -> int:
        """Return the bytes of what arrived, without headers; a path is a part of a result's."""
        if self.record is None:
            return self.payload_size(packets)
        return packets.bytes_behind(self.record.body)

    def take_traffic(self) -> PortTraffic:
        """Return the traffic since the last call."""
        if self.record is not None:
            self._count_fast(self.record, *self.record.take_counts())
        taken, self.traffic = self.traffic, PortTraffic()
        sizes = (taken.payload_up, taken.payload_down) if not self._messages else self._messages()
        taken.needed_up, taken.needed_down = sizes
        return taken

    @classmethod
    def of_stream(cls, machines: ActionDriver, port: int | None = None) -> LocalPort:
        """Return the port of a stream of `machines`; None: the first one's."""
        receive, messages = partial(machines.receive, port=port), partial(machines.take_bytes, port)
        return cls(receive, segments.message_bytes, messages=messages)

    def _count_fast(self, record: WorkerRecord, results: int, answers: int, bare: int) -> None:
        """Count results that a kernel took, of which some are without sums, and packets of indices
        by which it answered."""
        traffic, headers = self.traffic, UDP_OVERHEAD + aggregation.HEADER_SIZE
        sums = (results - bare) * aggregation.SUMS_SIZE
        indices = answers * (record.answer_size - aggregation.HEADER_SIZE)
        traffic.packets_down += results
        traffic.payload_down += sums
        traffic.wire_down += sums + results * (UDP_OVERHEAD + record.body)
        traffic.packets_up += answers
        traffic.payload_up += indices
        traffic.wire_up += indices + answers * headers


def aggregation_payload(packets: Payloads) -> int:
    """Return the bytes of indices and sums in aggregation packets."""
    return packets.bytes_behind(aggregation.HEADER_SIZE)


class HostLink:
    """The host's ports, behind its impairments.

    Traffic counts what crosses the host's edge, including packets that the impairments then lose,
    but not the packets that a left-out straggler does not send, or only once it does.
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
            job.transport.reliability == "lossy",
            config.live,
        )
        self._late = LatePackets()
        self._each = job.transport.ecn or job.transport.nonzero_blocks
        self.ports: dict[int, LocalPort] = {}
        self.strays = 0  # datagrams for ports without a receiver

    def start_round(self, number: int) -> None:
        """Begin training round `number`: the impairments choose its stragglers."""
        self._impairments.start_round(number)
        for send in self._late.all():
            self._leave(send)

    def impair(self, intervention: Intervention) -> None:
        """Impair the link from now on, until the intervention is over. Only of a live host."""
        remove = self._impairments.add(intervention.spec)
        self._env.call_at(self._env.now() + intervention.duration_ns, remove)

    def fast_results(self, port: int) -> WorkerRecord | None:
        """Return the record on which a kernel may take packets for a local port; None where
        impairments rule on each, a window adapts to each, some are short, or the port has no
        kernel."""
        each = self._impairments.active or self._each
        return None if each else self.ports[port].record

    def send(self, send: Send) -> None:
        """Send datagrams but those that the impairments drop, after the delay that they add."""
        if not self._impairments.active:
            self._leave(send)
            return
        verdicts = self._impairments.up(send.ip, send.port, send.payloads, self._env.now())
        for fate, payloads in self._sorted(verdicts, send.payloads):
            some = replace(send, payloads=payloads)
            if fate.late and self._late.hold(some):
                continue
            if not fate.left_out:
                self._count_up(some)
            self._apply(fate, partial(self._env.send, some))

    def receive(self, port: int, ip: str, source_port: int, payloads: Payloads) -> None:
        """Take datagrams that arrived for local `port`."""
        local = self.ports.get(port)
        if local is None:
            self.strays += len(payloads)
            return
        local.traffic.count_down(payloads, local.payload_down(payloads))
        if not self._impairments.active:
            local.receiver(ip, source_port, payloads)
            return
        if source_port == aggregation.UDP_PORT:
            for send in self._late.released(payloads):
                self._leave(send)
        verdicts = self._impairments.down(ip, source_port, payloads, self._env.now())
        for fate, some in self._sorted(verdicts, payloads):
            self._apply(fate, partial(local.receiver, ip, source_port, some))

    def _leave(self, send: Send) -> None:
        self._count_up(send)
        self._env.send(send)

    def _count_up(self, send: Send) -> None:
        port = self.ports[send.source_port]
        port.traffic.count_up(send.payloads, port.payload_size(send.payloads))

    def _sorted(
        self, verdicts: Sequence[Verdict], payloads: Payloads
    ) -> Iterator[tuple[Verdict, Payloads]]:
        """Record the verdicts; yield runs of packets with the same fate."""
        now = self._env.now()
        for verdict in verdicts:
            for record in verdict.records:
                self._env.record(record.kind, **record.fields, at=now)
        start = 0
        for end in range(1, len(verdicts) + 1):
            fate = verdicts[start]
            alone = fate.single or (end < len(verdicts) and verdicts[end].single)
            if end < len(verdicts) and verdicts[end].fate == fate.fate and not alone:
                continue
            yield fate, payloads.select(np.arange(start, end))
            start = end

    def _apply(self, fate: Verdict, action: Callable[[], None]) -> None:
        for later in () if fate.drop else (0, *fate.copies):
            self._after(fate.delay_ns + later, action)

    def _after(self, delay_ns: int, action: Callable[[], None]) -> None:
        if delay_ns:
            self._env.call_at(self._env.now() + delay_ns, action)
        else:
            action()
