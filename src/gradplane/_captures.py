"""Packet captures as input: pcap (times in us or ns, both byte orders) and pcapng, also gzipped."""

from __future__ import annotations

import gzip
import logging
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gradplane._suggestions import near_file

log = logging.getLogger(__name__)

ETHERNET = 1  # link types, of tcpdump.org/linktypes.html
RAW_IP = (12, 101, 228, 229)
_HEADERS = {ETHERNET: 14, 0: 4, 108: 4, 113: 16, 276: 20, **dict.fromkeys(RAW_IP, 0)}
"""Bytes before the packet of the network's layer, by link type: of Ethernet, of loopback interfaces
(NULL, LOOP), of Linux's "any" (SLL, SLL2), and of none."""

_GZIP = b"\x1f\x8b"
_PCAP = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # ns in a unit of the packets' times, by magic number
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_STATISTICS = 5
_RESOLUTION, _OFFSET = 9, 14  # options of an interface
_DROPPED = {_PACKET: (4,), _STATISTICS: (5, 7)}  # options that count drops
_UNKNOWN = 0xFFFF  # an old packet's count of drops
_BEGINS = ("neither pcap nor pcapng begins like this", "the file is empty")
_MOST = 1 << 26  # bytes of a block or packet; more is damage
_SECOND = 1_000_000_000


class CaptureError(Exception):
    """A file that cannot be read as a capture; the message names the file, the place and why."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A packet of a capture: its time in ns since 1970, its bytes, and its size on the link."""

    time: int
    data: bytes
    size: int
    link_type: int


def read_capture(path: str | Path, link_type: int | None = None) -> Iterator[Captured]:
    """Yield the packets of a capture in the file's order, as they are read.

    link_type: the only one that is accepted, with whole packets. Where the capture counts packets
    that were dropped while it was made, a warning says how many. Raises CaptureError."""
    dropped: Counter[int] = Counter()
    try:
        with open(path, "rb") as file:
            start = file.read(4)
            file.seek(0)
            packed = start[:2] == _GZIP
            with gzip.open(file) if packed else file as plain:
                for number, packet in enumerate(_packets(plain, dropped), 1):  # type: ignore[arg-type]
                    _check(packet, number, link_type)
                    yield packet
    except _Damage as damage:
        raise CaptureError(f"{path}: {damage}") from None
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}{near_file(Path(path))}") from None
    except EOFError as error:
        raise CaptureError(f"{path}: {error}") from None
    if dropped.total():
        log.warning(
            "%s: the capture lacks %d packets, which were dropped while it was made; compared with"
            " that of another place they look lost: capture again with a larger buffer (dumpcap"
            " -B)",
            path, dropped.total(),
        )  # fmt: skip


def frame_sizes(path: str | Path) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the time in ns and the size as an Ethernet frame of each of a capture's packets, in
    the order of their times, and in words what was done for it.

    Packets that were cut have their whole size, and those of another link an Ethernet header in
    place of that link's. Raises CaptureError, also for a capture without packets, and for a link
    whose headers are not known."""
    found: list[tuple[int, int]] = []
    notes: dict[str, None] = {}
    marked: Counter[int] = Counter()  # packets by their ToS
    for number, packet in enumerate(read_capture(path), 1):
        if packet.link_type not in _HEADERS:
            raise CaptureError(
                f"{path}: packet {number}: link type {packet.link_type}, whose headers are not"
                " known here: capture on an Ethernet interface, or cut them off and say what is"
                f" left: editcap -C BYTES -T rawip {path} NEW.pcap"
            )
        if len(packet.data) < packet.size:
            notes["packets that were cut count with their whole size"] = None
        if packet.link_type != ETHERNET:
            notes["packets get an Ethernet header in place of the captured link's"] = None
        marked[_tos(packet)] += 1
        inside = max(0, packet.size - _HEADERS[packet.link_type])
        found.append((packet.time, inside + _HEADERS[ETHERNET]))
    if not found:
        raise CaptureError(f"{path}: the capture has no packets")
    del marked[0]
    if marked:
        most, total = marked.most_common(1)[0][0], marked.total()
        kinds = f"{most:#04x}" + " and others" * (len(marked) > 1)
        text = f"ToS ({kinds}) and contents of {total} packets are not kept"
        notes[f"{text}; gradplane switch --use-files gives a program whole packets"] = None
    return sorted(found), list(notes)


def _tos(packet: Captured) -> int:
    """Return the IPv4 ToS or IPv6 traffic class of a packet; 0 if it is neither."""
    at = _HEADERS[packet.link_type]
    if packet.link_type == ETHERNET and packet.data[12:14] not in (b"\x08\0", b"\x86\xdd"):
        return 0
    start = int.from_bytes(packet.data[at : at + 2])
    version = start >> 12
    return start & 0xFF if version == 4 else start >> 4 & 0xFF if version == 6 else 0


def ethernet_packets(path: str | Path, *, silent: bool = False) -> list[Captured]:
    """Return a capture's packets, whole ones from Ethernet on, in the order of their times.

    Raises CaptureError, also for a capture without packets, unless it may be `silent`."""
    found = sorted(read_capture(path, ETHERNET), key=lambda packet: packet.time)
    if not (found or silent):
        raise CaptureError(f"{path}: the capture has no packets")
    return found


class _Damage(Exception):
    pass


def _check(packet: Captured, number: int, link_type: int | None) -> None:
    if link_type is None:
        return
    if packet.link_type != link_type:
        raise _Damage(
            f"packet {number}: link type {packet.link_type}; expected {link_type} (Ethernet):"
            " capture on an Ethernet interface, not on any or lo; tcprewrite --dlt=enet gives"
            " packets an Ethernet header"
        )
    if len(packet.data) < packet.size:
        raise _Damage(
            f"packet {number}: only {len(packet.data)} of its {packet.size} bytes were captured:"
            " capture whole packets (tcpdump -s 0)"
        )


def _packets(file: BinaryIO, dropped: Counter[int]) -> Iterator[Captured]:
    start = file.read(4)
    if struct.unpack("<I", start.ljust(4, b"\0"))[0] == _SECTION:
        yield from _Blocks(file, dropped).packets()
        return
    for order in "<>":
        if len(start) == 4 and (unit := _PCAP.get(struct.unpack(order + "I", start)[0])):
            yield from _records(file, order, unit)
            return
    raise _Damage("not a capture: " + _BEGINS[start == b""])


def _records(file: BinaryIO, order: str, unit: int) -> Iterator[Captured]:
    """Yield the packets of a pcap file behind its magic number."""
    link_type = struct.unpack(order + "I", _exactly(file, 20, "the file's header")[16:])[0] & 0xFFFF
    header = struct.Struct(order + "IIII")
    number = 1
    while first := file.read(16):
        what = f"packet {number}"
        head = first + _exactly(file, 16 - len(first), what)
        seconds, fraction, kept, size = header.unpack(head)
        data = _exactly(file, kept, what)
        yield Captured(seconds * _SECOND + fraction * unit, data, size, link_type)
        number += 1


def _exactly(file: BinaryIO, size: int, what: str) -> bytes:
    if size > _MOST:
        raise _Damage(f"{what}: damaged: it has {size} bytes by its header")
    data = file.read(size)
    if len(data) < size:
        raise _Damage(
            f"{what}: the file ends in it; what is before is whole: tcpdump -r FILE -w WHOLE"
        )
    return data


@dataclass(frozen=True, slots=True)
class _Interface:
    """An interface of a pcapng section; `units` of its times are a second."""

    link_type: int
    units: int = 1_000_000
    offset: int = 0

    def time(self, high: int, low: int) -> int:
        """Return a packet's time in ns since 1970."""
        return self.offset * _SECOND + ((high << 32) + low) * _SECOND // self.units


class _Blocks:
    """The blocks of a pcapng file, whose first four bytes were read.

    dropped: counts the packets dropped at each interface, by its number in the file."""

    def __init__(self, file: BinaryIO, dropped: Counter[int]) -> None:
        self._file = file
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._earlier = 0  # interfaces of earlier sections
        self._dropped = dropped

    def packets(self) -> Iterator[Captured]:
        kind, number = _SECTION, 1
        while True:
            body = self._body(kind, f"block {number}")
            try:
                if kind == _INTERFACE:
                    self._interfaces.append(self._interface(body))
                elif kind == _STATISTICS:
                    self._statistics(body)
                elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                    yield self._packet(kind, body)
            except (struct.error, IndexError):
                raise _Damage(f"block {number}: damaged") from None
            start = self._file.read(4)
            if not start:
                return
            number += 1
            start += _exactly(self._file, 4 - len(start), f"block {number}")
            kind = struct.unpack(self._order + "I", start)[0]

    def _body(self, kind: int, what: str) -> bytes:
        """Read a block behind its type; of a section, which has a byte order of its own."""
        length = _exactly(self._file, 4, what)
        taken = b""
        if kind == _SECTION:
            taken = _exactly(self._file, 4, what)
            little = struct.unpack("<I", taken)[0] == _BYTE_ORDER
            if not little and struct.unpack(">I", taken)[0] != _BYTE_ORDER:
                raise _Damage(f"{what}: damaged: no byte order")
            self._earlier += len(self._interfaces)
            self._order, self._interfaces = "<" if little else ">", []
        size = struct.unpack(self._order + "I", length)[0]
        if size < 12 + len(taken) or size % 4:
            raise _Damage(f"{what}: damaged: {size} bytes by its header")
        rest = _exactly(self._file, size - 8 - len(taken), what)
        return taken + rest[:-4]

    def _interface(self, body: bytes) -> _Interface:
        link_type, units, offset = self._unpack("H", body[:2])[0], 1_000_000, 0
        for code, value in self._options(body[8:]):
            if code == _RESOLUTION and len(value) == 1:
                units = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == _OFFSET and len(value) == 8:
                offset = self._unpack("q", value)[0]
        return _Interface(link_type, units, offset)

    def _packet(self, kind: int, body: bytes) -> Captured:
        if kind == _SIMPLE_PACKET:  # it has no time
            size = self._unpack("I", body[:4])[0]
            return Captured(0, body[4 : 4 + size], size, self._interfaces[0].link_type)
        high, low, kept, size = self._unpack("IIII", body[4:20])
        if kind == _PACKET:
            number = self._unpack("I", body[:4])[0]
            drops = self._drops(_PACKET, body[20 + kept + -kept % 4 :])
        else:
            number, drops = self._unpack("HH", body[:4])
            drops = 0 if drops == _UNKNOWN else drops
        interface = self._interfaces[number]
        data = body[20 : 20 + kept]
        self._dropped[self._earlier + number] += drops
        return Captured(interface.time(high, low), data, size, interface.link_type)

    def _drops(self, kind: int, options: bytes) -> int:
        """Return the drops that a block's options count: a packet's since the packet before it, an
        interface's since the start."""
        return sum(
            self._unpack("Q", value)[0]
            for code, value in self._options(options)
            if code in _DROPPED[kind] and len(value) == 8
        )

    def _statistics(self, body: bytes) -> None:
        """Note an interface's drops since the capture began; its packets may have counted some."""
        number = self._earlier + self._unpack("I", body[:4])[0]
        self._dropped[number] = max(self._dropped[number], self._drops(_STATISTICS, body[12:]))

    def _options(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(text):
            code, size = self._unpack("HH", text[at : at + 4])
            at += 4
            yield code, struct.unpack_from(f"{size}s", text, at)[0]
            at += size + -size % 4

    def _unpack(self, form: str, data: bytes) -> tuple[int, ...]:
        return struct.unpack(self._order + form, data)
