"""Virtual time with the compiled event loop: the interface of `EventQueue`, and the network's
nodes and channels as rows of the loop's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gradplane._addresses import address_of
from gradplane.hosts.wire.payloads import Payloads
from gradplane.switch.runtime.packet_passes import Arrival, NativePass, Output, SharedCode
from gradplane.switch.switch import Switch
from gradplane.topologies.sim import loop
from gradplane.topologies.sim import loop_layout as at
from gradplane.topologies.sim.events import SimEvent
from gradplane.topologies.sim.frames import HEADERS, TOS_AT
from gradplane.topologies.topology_errors import NetworkError

# The memory of the compiled event loop: tables that grow, and the buffers of frames

_PACKETS, _STRIDE, _META_STRIDE = 1024, 33 * 64, 64
# An odd number of cache lines: frames a power of two apart would begin in few of a cache's sets.
_SPARE_EVENTS = 16


class LoopMemory:
    """`words`, which the kernels get, and all that they point to.

    Grows by whole copies while no kernel runs.
    """

    def __init__(self) -> None:
        self.words = np.zeros(at.WORDS, np.int64)
        self._tables: dict[int, npt.NDArray[np.int64]] = {}
        self._room: dict[int, npt.NDArray[np.int64]] = {}  # of which the tables are the beginning
        self._most_calls = 0
        self.words[at.PENDING] = self.words[at.FREE] = -1
        self._data = np.zeros((0, _STRIDE), np.uint8)
        self._metas = np.zeros((0, _META_STRIDE), np.uint8)
        self._place(at.HEAP, np.zeros((0, at.HEAP_COLUMNS), np.int64))
        self._place(at.LEAVES, np.zeros((0, at.HEAP_COLUMNS), np.int64))
        self._place(at.PACKETS, np.zeros((0, at.PACKET_COLUMNS), np.int64))
        for which, columns in (
            (at.CHANNELS, at.CHANNEL_COLUMNS),
            (at.SWITCHES, at.SWITCH_COLUMNS),
            (at.HOSTS, at.HOST_COLUMNS),
            (at.RECEIVERS, at.RECEIVER_COLUMNS),
        ):
            self._place(which, np.zeros((0, columns), np.int64))
        self._place(at.LEAVING, np.zeros(0, np.int64))
        self._place(at.PORTS, np.zeros((0, 0), np.int64))
        self.grow_packets(_PACKETS)

    def table(self, which: int) -> npt.NDArray[np.int64]:
        """Return a table of `loop_layout`."""
        return self._tables[which]

    def append(self, which: int, row: list[int]) -> int:
        """Add a row, filled up with zeros; return its number."""
        table = self._lengthened(which, 1)
        table[-1, : len(row)] = row
        return len(table) - 1

    def replace(self, which: int, table: npt.NDArray[np.int64]) -> None:
        """Set a whole table."""
        self._place(which, np.ascontiguousarray(table, np.int64))

    def add_ring(self, places: int) -> int:
        """Add places to the table of a channel's times; return the number of the first."""
        return len(self._lengthened(at.LEAVING, places)) - places

    def _lengthened(self, which: int, rows: int) -> npt.NDArray[np.int64]:
        """Add rows of zeros to a table, which has room for twice as many where it is copied."""
        table = self._tables[which]
        room, length = self._room.get(which, table), len(table) + rows
        if len(room) < length:
            room = np.zeros((2 * length, *table.shape[1:]), np.int64)
            room[: len(table)] = table
            self._room[which] = room
        self._place(which, room[:length])
        return self._tables[which]

    def _place(self, which: int, table: npt.NDArray[np.int64]) -> None:
        self._tables[which] = table
        rows = table.shape[1] if which == at.PORTS else len(table)
        self.words[which], self.words[which + 1] = address_of(table), rows

    # -- packets --------------------------------------------------------------------------------

    def need_packets(self, count: int, size: int) -> None:
        """Have so many packets free, and room for frames of `size` bytes."""
        while int(self.words[at.FREE_COUNT]) < count:
            self.grow_packets(2 * len(self._data))
        if size > self._data.shape[1]:
            lines = -(-size // 64) | 1
            self._data = self._buffers(self._data, len(self._data), lines * 64)

    def need_meta(self, size: int) -> None:
        """Have room for so many bytes of metadata beside each frame."""
        if size > self._metas.shape[1]:
            self._metas = self._buffers(self._metas, len(self._metas), -(-size // 64) * 64)

    def grow_packets(self, count: int) -> None:
        """Have `count` packets in all."""
        before = len(self._data)
        self._data = self._buffers(self._data, count, self._data.shape[1])
        self._metas = self._buffers(self._metas, count, self._metas.shape[1])
        packets = np.zeros((count, at.PACKET_COLUMNS), np.int64)
        packets[:before] = self._tables[at.PACKETS]
        packets[before:, at.NEXT] = np.arange(before + 1, count + 1)
        packets[-1, at.NEXT] = self.words[at.FREE]
        self._place(at.PACKETS, packets)
        self.words[at.FREE] = before
        self.words[at.FREE_COUNT] += count - before
        self.need_events(self._most_calls)

    def free_packets(self) -> None:
        """Give all packets back."""
        packets = self._tables[at.PACKETS]
        packets[:, at.NEXT] = np.arange(1, len(packets) + 1)
        packets[-1, at.NEXT] = -1
        self.words[at.FREE], self.words[at.FREE_COUNT] = 0, len(packets)

    def _buffers(self, old: npt.NDArray[Any], count: int, stride: int) -> npt.NDArray[Any]:
        made = np.zeros((count, stride), np.uint8)
        made[: len(old), : old.shape[1]] = old
        kept = old is self._data
        self.words[at.DATA if kept else at.METAS] = address_of(made)
        self.words[at.STRIDE if kept else at.META_STRIDE] = stride
        return made

    def frame(self, packet: int) -> bytes:
        """Return a packet's frame."""
        size = int(self._tables[at.PACKETS][packet, at.SIZE])
        return self._data[packet, :size].tobytes()

    def payload(self, packet: int, size: int) -> npt.NDArray[np.uint8]:
        """Return a copy of the payload of a packet's datagram, uint8[1, size]."""
        data: npt.NDArray[np.uint8] = self._data[packet : packet + 1, HEADERS : HEADERS + size]
        return data.copy()

    def tos(self, packet: int) -> int:
        """Return the ToS byte of a packet."""
        return int(self._data[packet, TOS_AT])

    def put_frame(self, packet: int, frame: bytes) -> None:
        """Set a packet's frame, for which there is room."""
        self._data[packet, : len(frame)] = np.frombuffer(frame, np.uint8)
        self._tables[at.PACKETS][packet, at.SIZE] = len(frame)

    def put_meta(self, packet: int, meta: bytes | None) -> None:
        """Set a packet's metadata, for which there is room, or that it has none."""
        self._tables[at.PACKETS][packet, at.HAS_META] = meta is not None
        if meta is not None:
            self._metas[packet, : len(meta)] = np.frombuffer(meta, np.uint8)

    # -- events ---------------------------------------------------------------------------------

    def need_events(self, calls: int) -> None:
        """Have room for an event of each packet and for so many calls, now and later."""
        self._most_calls = calls = max(calls, self._most_calls)
        heap = self._tables[at.HEAP]
        least = len(self._tables[at.PACKETS]) + calls + _SPARE_EVENTS
        if len(heap) < least:
            larger = np.zeros((2 * least, at.HEAP_COLUMNS), np.int64)
            larger[: len(heap)] = heap
            self._place(at.HEAP, larger)
        ring = self._tables[at.LEAVES]
        if len(ring) < len(self._tables[at.PACKETS]):
            larger = np.zeros((len(self._tables[at.PACKETS]), at.HEAP_COLUMNS), np.int64)
            first = int(self.words[at.LEAVES_FIRST])
            larger[: len(ring)] = np.concatenate((ring[first:], ring[:first]))
            self._place(at.LEAVES, larger)
            self.words[at.LEAVES_FIRST] = 0


_NEVER = 1 << 62
_RECEIVED = [at.REF, at.WHO, at.DATAGRAM, at.SOURCE_IP, at.SOURCE_PORT, at.TO_PORT]


@dataclass(frozen=True, slots=True)
class SwitchNode:
    """A switch for the loop: `engine` returns the one that runs now; `slow` takes the result of a
    pass that needs Python."""

    engine: Callable[[], Switch]
    slow: Callable[[Switch], None]


class Stack(Protocol):
    """A host for the loop, as `HostStack`."""

    def receive(self, frame: bytes) -> None:
        """Take a frame that is not in order for this host."""

    def deliver(self, port: int, source: tuple[str, int], payloads: Payloads) -> None:
        """Take the datagram of a frame that is."""


class CompiledEvents:
    """The events of a simulated network, of which `step` runs those without Python in one call.

    `now` is the virtual time in ns. Nodes and channels are numbered in the order of their adding.
    """

    def __init__(self) -> None:
        self._memory = LoopMemory()
        self._words = self._memory.words
        self._words[at.UNTIL] = _NEVER
        self._calls: dict[int, SimEvent] = {}
        self._switches: list[SwitchNode] = []
        self._engines: list[Switch | None] = []  # whose addresses the loop has
        self._code: SharedCode = {}
        self._placed: dict[int, npt.NDArray[np.int64]] = {}  # PLACED, by STATE
        self._stacks: list[Stack] = []
        self._names: dict[int, str] = {}  # IP addresses by their numbers

    # -- the interface of EventQueue --------------------------------------------------------------

    @property
    def now(self) -> int:
        """The time of the current event."""
        return int(self._words[at.NOW])

    def at(self, time: int, callback: Callable[[], None]) -> SimEvent:
        """Schedule a call at `time`, or at once if that has passed; never before this returns.

        Raises NetworkError for a time that the loop's words do not hold."""
        if time >= _NEVER:
            text = "virtual time ends after 146 years: a time in the experiment is longer"
            raise NetworkError(text)
        number = int(self._words[at.ORDER]) + 1
        event = SimEvent(max(time, self.now), number, callback)
        self._calls[number] = event
        self._memory.need_events(len(self._calls))
        loop.push(self._words, event.at, at.CALL, number)
        return event

    def clear(self) -> None:
        """Cancel all events."""
        self._calls.clear()
        self._words[at.EVENTS] = self._words[at.LEAVES_COUNT] = 0
        self._memory.table(at.CHANNELS)[:, at.LAST] = -1
        self._memory.free_packets()

    def step(self, until: int | None = None) -> bool:
        """Run events up to and with the next one that Python has a part in.

        Also returns after the first event later than `until`, and now and then. Returns False if
        there is no event.
        """
        self._words[at.UNTIL] = _NEVER if until is None else until
        reason = int(loop.run(self._words))
        if reason in (at.PREPARE, at.SLOW, at.GROW):
            with ExitStack() as passes:
                reason = self._run_switches(reason, passes)
        match reason:
            case at.EMPTY:
                return False
            case at.DUE:
                return self._call()
            case at.RECEIVE:
                self._receive()
        return True

    def _receive(self) -> None:
        """Pass a frame on to a host: its datagram, if the kernel found it in order."""
        packet, who, size, ip, source, port = self._words[_RECEIVED].tolist()
        stack = self._stacks[who]
        if size < 0:
            frame = self._memory.frame(packet)
            loop.release(self._words, packet)
            stack.receive(frame)
            return
        data, tos = self._memory.payload(packet, size), self._memory.tos(packet)
        loop.release(self._words, packet)
        payloads = Payloads(data, np.array([size])).with_tos(tos)
        stack.deliver(port, (self._name(ip), source), payloads)

    def _name(self, ip: int) -> str:
        if ip not in self._names:
            self._names[ip] = str(IPv4Address(ip))
        return self._names[ip]

    def _call(self) -> bool:
        event = self._calls.pop(int(self._words[at.WHO]))
        if event.callback is not None:
            self._words[at.NOW] = event.at
            event.callback()
        return True

    def _run_switches(self, reason: int, passes: ExitStack) -> int:
        """Run the kernel, which returned for `reason`, until it returns for more than a switch or
        memory."""
        words = self._words
        while True:
            match reason:
                case at.PREPARE:
                    passes.enter_context(self._prepared(int(words[at.WHO])))
                case at.SLOW:
                    number = int(words[at.WHO])
                    engine = self._engines[number]
                    assert engine is not None
                    self._switches[number].slow(engine)
                case at.GROW:
                    wanted = int(words[at.NEED_PACKETS]), int(words[at.NEED_STRIDE])
                    self._memory.need_packets(*wanted)
                case _:
                    return reason
            reason = int(loop.run(words))

    @contextmanager
    def _prepared(self, number: int) -> Iterator[None]:
        """Let the kernel run passes of a switch."""
        engine = self._switches[number].engine()
        if engine is not self._engines[number]:
            self._take_engine(number, engine)
        row = self._memory.table(at.SWITCHES)[number]
        with engine.native_passes():
            row[at.READY] = 1
            try:
                yield
            finally:
                row[at.READY] = 0

    def _take_engine(self, number: int, engine: Switch) -> None:
        """Use the addresses of a program that was loaded."""
        native = engine.native_pass(self._code if len(self._switches) > 1 else None)
        assert native is not None, "the compiled loop runs machine code only"
        row = self._memory.table(at.SWITCHES)[number]
        placed = self._placed.setdefault(native.state, np.zeros(1, np.int64))
        row[at.ONCE : at.PLACED] = columns(native)
        row[at.PLACED] = address_of(placed)
        self._memory.need_meta(native.meta_size)
        self._engines[number] = engine

    # -- the network ------------------------------------------------------------------------------

    def add_host(self, mac: int, ip: int, stack: Stack) -> int:
        """Add a host; `stack` gets what no kernel takes."""
        self._stacks.append(stack)
        return self._memory.append(at.HOSTS, [mac, ip, -1])

    def add_switch(
        self, node: SwitchNode, latency: int, recirculation: tuple[int | None, int]
    ) -> int:
        """Add a switch; `recirculation` is the rate and the limit of its channel."""
        number = len(self._switches)
        self._switches.append(node)
        self._engines.append(None)
        rate, limit = recirculation
        channel = self._add_channel(rate, 0, limit, [at.TO_NEXT_PASS, number, 0])
        return self._memory.append(at.SWITCHES, [0, latency, channel])

    def add_channel(
        self, rate: int | None, delay: int, limit: int, host: int | None, to: tuple[int, int]
    ) -> int:
        """Add a channel to a host, or to (switch, port) if `host` is None. See Channel."""
        ends = [at.TO_SWITCH, *to] if host is None else [at.TO_HOST, host, 0]
        return self._add_channel(rate, delay, limit, ends)

    def _add_channel(self, rate: int | None, delay: int, limit: int, ends: list[int]) -> int:
        ring = self._memory.add_ring(limit)
        row = [rate or 0, delay, limit, ring, 0, 0, 0, 0, 0, *ends, 0, -1]
        return self._memory.append(at.CHANNELS, row)

    def connect_host(self, host: int, channel: int) -> None:
        """Let a host send to a channel."""
        self._memory.table(at.HOSTS)[host, at.LINK] = channel

    def connect_ports(self, channels: Sequence[dict[int, int]]) -> None:
        """Let the switches send to channels: for each, the channel's number by port."""
        width = 1 + max((port for ports in channels for port in ports), default=0)
        table = np.full((len(channels), width), -1, np.int64)
        for row, ports in zip(table, channels, strict=True):
            for port, channel in ports.items():
                row[port] = channel
        self._memory.replace(at.PORTS, table)

    def counters(self, channel: int) -> tuple[int, int, int]:
        """Return packets, bytes and drops of a channel."""
        row = self._memory.table(at.CHANNELS)[channel]
        return int(row[at.SENT]), int(row[at.BYTES]), int(row[at.DROPPED])

    def take_peak(self, channel: int) -> int:
        """Return the most frames that have been in a channel's queue since the last call."""
        row = self._memory.table(at.CHANNELS)[channel]
        peak, row[at.PEAK] = int(row[at.PEAK]), 0
        return peak

    def set_receivers(
        self, receivers: Sequence[tuple[int, int, int, int, int, int]], origin: int
    ) -> None:
        """Let kernels take ordinary packets of hosts, which no longer do so if they are not named.

        origin: the time that counts as 0 for the hosts.
        Of each: host, local port, the peer's MAC address, IP address and port, the address of a
        record of `fast_results.WORKER`.
        """
        rows = sorted(receivers)
        hosts = self._memory.table(at.HOSTS)
        hosts[:, [at.FIRST_RECEIVER, at.RECEIVER_COUNT]] = 0
        for i in range(len(rows) - 1, -1, -1):
            hosts[rows[i][0], at.FIRST_RECEIVER] = i
            hosts[rows[i][0], at.RECEIVER_COUNT] += 1
        table = np.array([[*row[1:], origin] for row in rows], np.int64)
        self._memory.replace(at.RECEIVERS, table.reshape(-1, at.RECEIVER_COLUMNS))

    # -- what Python sends ------------------------------------------------------------------------

    def send_datagrams(
        self, host: int, local: int, mac: int, peer: tuple[int, int], tos: int, payloads: Payloads
    ) -> None:
        """Send a host's datagrams to the peer, (IP address, port); they fit the MTU."""
        count = len(payloads)
        largest = HEADERS + int(payloads.sizes.max(initial=0))
        self._memory.need_packets(count, largest)
        data, sizes = payloads.data, np.ascontiguousarray(payloads.sizes, np.int64)
        if data.strides[1] != 1:
            data = np.ascontiguousarray(data)
        loop.send_datagrams(
            self._words, host, local, mac, *peer, tos,
            address_of(data), data.strides[0], address_of(sizes), count,
        )  # fmt: skip

    def leave(self, switch: int, outputs: Sequence[Output], again: Sequence[Arrival]) -> None:
        """Let packets leave a switch after its latency, in this order."""
        frames = [frame for _, frame in outputs] + [arrival.packet for arrival in again]
        if not frames:
            return
        memory, words = self._memory, self._words
        memory.need_packets(len(frames), max(map(len, frames)))
        packets = memory.table(at.PACKETS)
        numbers = [int(loop.allocate(words)) for _ in frames]
        for number, following, frame in zip(numbers, [*numbers[1:], -1], frames, strict=True):
            memory.put_frame(number, frame)
            packets[number, at.NEXT] = following
        for number, (port, _) in zip(numbers, outputs, strict=False):
            packets[number, at.PORT] = port
        for number, arrival in zip(numbers[len(outputs) :], again, strict=True):
            passed = at.RECIRCULATE, arrival.kind, arrival.port, arrival.passes
            packets[number, [at.PORT, at.KIND, at.IN_PORT, at.PASSES]] = passed
            memory.put_meta(number, arrival.meta)
        latency = int(memory.table(at.SWITCHES)[switch, at.LATENCY])
        loop.push(words, self.now + latency, at.LEAVE | switch << 8, numbers[0])


def columns(native: NativePass) -> list[int]:
    """Return the columns of SWITCHES from ONCE on."""
    return [
        native.once, native.now, native.microseconds, native.sent, native.out, native.again,
        native.messages, native.waiting, native.start, native.node_size, native.meta_size,
        native.cpu_port, native.state, native.own, 8 * native.words,
    ]  # fmt: skip
