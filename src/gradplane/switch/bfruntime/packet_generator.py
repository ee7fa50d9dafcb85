"""The chip's packet generators: one in each pipe, with applications that a timer, a port without a
link, a packet that comes back, or a deparser triggers. It does no I/O and has no threads: time is
an argument, in ns.

A generated packet begins with six bytes that say where it comes from (pipe, application, batch and
packet, the port, or bytes of the packet that came back), then has the deparser's prefix, if it was
asked for there, and bytes of the packet buffer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

BUFFER = 16384
"""Bytes of a pipe's packet buffer."""

_PATTERN, _WIDE_PATTERN = 4, 16  # bytes that are compared with an application's pattern

Generated = tuple[int, bytes]
"""The port that a packet comes in by, and its bytes."""

ONE_SHOT, PERIODIC = "trigger_timer_one_shot", "trigger_timer_periodic"
PORT_DOWN = "trigger_port_down"
RETURNED, DEPARSER = "trigger_recirc_pattern", "trigger_dprsr"
REPLAY_NONE, REPLAY_ALL = "REPLAY_NONE", "REPLAY_ALL"
MASKS, MASKED_PORTS = 2, 72
"""Masks of a pipe's ports whose links trigger applications, on Tofino 2, and the ports in each."""
TRIGGERS = (ONE_SHOT, PERIODIC, PORT_DOWN, RETURNED, DEPARSER)


@dataclass(slots=True)
class Application:
    """An application of a pipe. values: the fields of its table. trigger: the table's action.

    due: when the next trigger or packet is, None for none. batch, packet: which is next. middle:
    the header's bytes in place of the batch's number. prefix: the bytes after it. span: the
    place and size of the buffer's bytes, None: the table's. waiting: of the links that went down
    while it made packets, what is in place of the batch's number.
    """

    pipe: int
    number: int
    trigger: str
    values: dict[str, Any]
    due: int | None = None
    batch: int = 0
    packet: int = 0
    started: int = 0
    middle: bytes | None = None
    prefix: bytes = b""
    span: tuple[int, int] | None = None
    waiting: list[bytes] = field(default_factory=list)

    @property
    def enabled(self) -> bool:
        return bool(self.values.get("app_enable"))

    def start(self, now: int, middle: bytes | None = None) -> None:
        """Begin with the first packet of the first batch."""
        self.due, self.middle = now, middle
        self.batch = self.packet = 0

    def count(self, name: str) -> None:
        self.values[name] = self.values.get(name, 0) + 1

    def number_of(self, name: str) -> int:
        return int(self.values.get(name, 0))


@dataclass(slots=True)
class PacketGenerator:
    """The generators of a chip. pipe_bits: of a port's number below the pipe's. wide: whether
    application numbers have four bits (Tofino 2), not three. down: gives the ports without a link.

    masks: for each pipe and number of a mask, the ports whose links trigger applications, the first
    eight in the first byte; all, if none is set. replays: each pipe's way with links that are down
    already as an application is enabled.
    """

    pipe_bits: int
    wide: bool
    down: Callable[[], frozenset[int]] = frozenset
    masks: dict[tuple[int, int], int] = field(default_factory=dict)
    replays: dict[int, str] = field(default_factory=dict)
    applications: dict[tuple[int, int], Application] = field(default_factory=dict)
    buffers: dict[int, bytearray] = field(default_factory=dict)
    ports: dict[int, dict[str, Any]] = field(default_factory=dict)
    _told: set[int] = field(default_factory=set)  # ports that triggered since they went down
    _jitter: random.Random = field(default_factory=lambda: random.Random(0))

    def buffer(self, pipe: int) -> bytearray:
        return self.buffers.setdefault(pipe, bytearray(BUFFER))

    def configure(
        self, pipe: int, number: int, trigger: str, values: dict[str, Any], now: int
    ) -> None:
        """Set an application; enabling a timer starts it."""
        made = self.configured(pipe, number, trigger, values, now)
        self.applications[pipe, number] = made

    def configured(
        self, pipe: int, number: int, trigger: str, values: dict[str, Any], now: int
    ) -> Application:
        """Return an application that takes the place of the one that there is."""
        old = self.applications.get((pipe, number))
        new = Application(pipe, number, trigger, values)
        if not new.enabled or trigger not in (ONE_SHOT, PERIODIC, PORT_DOWN):
            return new
        if old is not None and old.enabled and old.trigger == trigger:
            new.due, new.batch, new.packet = old.due, old.batch, old.packet
            new.started, new.middle, new.waiting = old.started, old.middle, list(old.waiting)
        elif trigger == PORT_DOWN:
            self._replay(new, now)
        else:
            new.due = now + new.number_of("timer_nanosec")
        return new

    def link_down(self, port: int, now: int) -> None:
        """Trigger the applications of a port's pipe that wait for a link to go down."""
        self._told &= self.down()
        for application in self.applications.values():
            if application.enabled and application.trigger == PORT_DOWN:
                self._tell(application, port, now)

    def _replay(self, application: Application, now: int) -> None:
        """Trigger an application that was just enabled for links that went down before."""
        mode = self.replays.get(application.pipe, REPLAY_NONE)
        if mode == REPLAY_NONE:
            return
        down = self.down()
        self._told &= down
        for port in sorted(down if mode == REPLAY_ALL else down - self._told):
            self._tell(application, port, now)

    def _tell(self, application: Application, port: int, now: int) -> None:
        """Trigger an application for a port of its pipe, unless its mask leaves the port out."""
        pipe, local = divmod(port, 1 << self.pipe_bits)
        mask = self.mask(pipe, application.number_of("port_mask_sel"))
        byte, bit = divmod(local, 8)
        wanted = local < MASKED_PORTS and mask >> (MASKED_PORTS - 8 - 8 * byte + bit) & 1
        if pipe != application.pipe or not wanted:
            return
        self._told.add(port)
        middle = (port & 0x1FF).to_bytes(2, "big")
        if application.due is None:
            application.start(now, middle)
        else:
            application.waiting.append(middle)

    def mask(self, pipe: int, number: int) -> int:
        """Return the ports of a pipe whose links trigger the applications with a mask."""
        return self.masks.get((pipe, number), (1 << MASKED_PORTS) - 1)

    @property
    def watches_returned(self) -> bool:
        """Whether an application waits for a packet that comes back."""
        return any(a.enabled and a.trigger == RETURNED for a in self.applications.values())

    def returned(self, port: int, head: bytes, now: int) -> None:
        """Trigger the applications of a port's pipe that wait for a packet that begins so."""
        if not self.ports.get(port, {}).get("pattern_matching_enable"):
            return
        size = _WIDE_PATTERN if self.wide else _PATTERN
        for application in self._waiting(RETURNED, head[:size]):
            if application.pipe == port >> self.pipe_bits:
                application.start(now, None if self.wide else head[1:4])

    def requested(self, prefix: bytes, address: int, size: int, now: int) -> None:
        """Trigger the applications that wait for a deparser's request with such a prefix. A size of
        0: that of the application."""
        for application in self._waiting(DEPARSER, prefix):
            application.start(now)
            application.prefix = prefix
            application.span = (address, size) if size else None

    def _waiting(self, trigger: str, head: bytes) -> Iterator[Application]:
        found = int.from_bytes(head, "big")
        for application in self.applications.values():
            if application.enabled and application.trigger == trigger:
                mask, value = (application.number_of(f"pattern_{n}") for n in ("mask", "value"))
                if found & mask == value & mask:
                    yield application

    def next_due(self) -> int | None:
        """Return when the next packet is due, None if none is to come."""
        return min((a.due for a in self.applications.values() if a.due is not None), default=None)

    def packets(self, now: int, most: int = 1024) -> Iterator[Generated]:
        """Yield the packets that are due by now, at most so many."""
        for _ in range(most):
            due = [a for a in self.applications.values() if a.due is not None and a.due <= now]
            if not due:
                return
            first = min(due, key=lambda a: a.due or 0)
            packet = self._packet(first)
            self._advance(first)
            if packet is not None:
                yield packet

    # -- parts ----------------------------------------------------------------------------------

    def _packet(self, a: Application) -> Generated | None:
        """Return the packet that an application makes now; None if its port is not enabled."""
        local = a.number_of("pipe_local_source_port")
        if a.values.get("increment_source_port"):
            local += a.packet
        port = a.pipe << self.pipe_bits | local & (1 << self.pipe_bits) - 1
        offset, size = a.span or (a.number_of("pkt_buffer_offset"), a.number_of("pkt_len"))
        if not a.batch and not a.packet:
            a.count("trigger_counter")
        if not a.packet:
            a.count("batch_counter")
        a.count("pkt_counter")
        if not self._enabled(a.pipe):
            return None
        first = bytes([a.pipe << (4 if self.wide else 3) | a.number])
        middle = a.batch.to_bytes(2, "big") if a.middle is None else a.middle
        header = first + middle.rjust(3, b"\0") + a.packet.to_bytes(2, "big")
        return port, header + a.prefix + bytes(self.buffer(a.pipe)[offset : offset + size])

    def _enabled(self, pipe: int) -> bool:
        return any(
            values.get("pktgen_enable") and port >> self.pipe_bits == pipe
            for port, values in self.ports.items()
        )

    def _advance(self, a: Application) -> None:
        """Go on to the next packet, batch or period."""
        assert a.due is not None
        if not a.batch and not a.packet:
            a.started = a.due
        if a.packet < a.number_of("packets_per_batch_cfg"):
            a.packet += 1
            a.due += self._gap(a, "ipg")
        elif a.batch < a.number_of("batch_count_cfg"):
            a.packet, a.batch = 0, a.batch + 1
            a.due += self._gap(a, "ibg")
        else:
            a.packet = a.batch = 0
            ended, a.due = a.due, None
            if a.trigger == PERIODIC:
                a.due = a.started + max(a.number_of("timer_nanosec"), 1)
            elif a.waiting:
                a.start(ended, a.waiting.pop(0))

    def _gap(self, a: Application, name: str) -> int:
        jitter = a.number_of(f"{name}_jitter")
        return a.number_of(name) + (self._jitter.randrange(jitter + 1) if jitter else 0)
