"""tos_compress.p4, tos_compress_tna.p4 on the embedded switch; their rules as plain Python."""

import functools
import struct
from dataclasses import dataclass

import numpy as np

from gradplane import codecs
from gradplane.codecs import CodecError
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir

MARK, COMPRESSED = 0x28, 0x2C
OVERHEAD = 14 + 20 + 8  # bytes before the UDP payload
MAX_WORDS = 368

HOSTS, FABRIC = (1, 2), (3, 4)  # ports
NEAR, NEAR_2 = "10.0.0.1", "10.0.0.2"  # at the ports 1 and 2
# Addresses behind port 3, and their bounds.
BOUNDS = {"10.0.1.10": 10, "10.0.1.8": 8, "10.0.1.6": 6, "10.0.1.7": 7, "10.0.1.1": 0}
FAR = "10.0.1.10"
# UDP destination ports: bytes of the message header, little-endian values.
FORMATS = {18257: (16, 0), 9001: (0, 1), 9002: (16, 1), 9003: (8, 0)}
PLAIN_PORT = 9000

REASONS = (
    "local", "not UDP", "options", "fragment", "bad length", "not words", "no values", "too long",
    "bad checksum", "no bound", "unknown bound", "unknown format", "not shorter",
)  # fmt: skip


CABLE_OUT, CABLE_IN = 508, 509
ROOM = 512  # simple_switch: bytes that a packet may have more than when it was received


VARIANTS = ("v1model", "bmv2", "tna")
"""The program; as BMv2 runs it, restoring a packet in several passes; the program for Tofino."""


@functools.cache
def program(variant: str = "v1model") -> ir.Program:
    defines = {"__TARGET_BMV2__": "1"} if variant == "bmv2" else {}
    file = "tos_compress_tna.p4" if variant == "tna" else "tos_compress.p4"
    return compile_program(f"p4/{file}", defines=defines)


class TosSwitch:
    """An edge switch with hosts on its ports 1 and 2, others on 3 and 4."""

    def __init__(self, engine: str = "jit", variant: str = "v1model") -> None:
        self.switch = Switch(program(variant), engine=engine)
        self._tna = variant == "tna"
        self.most_passes = 0
        self._before = self._counters()
        routes = {NEAR: 1, NEAR_2: 2, **dict.fromkeys(BOUNDS, 3)}
        for address, port in routes.items():
            forward = {"mac": port, "port": port}
            self.switch.table("routes").add({"dst_addr": (address, 32)}, "forward", forward)
        for port in HOSTS:
            self.switch.table("host_ports").add({"port": port}, "host")
            self.switch.table("to_host_ports").add({"port": port}, "host")
        for address, k in BOUNDS.items():
            if k:
                bound = {"dst_addr": (address, 32)}
                self.switch.table("bounds").add(bound, "set_bound", {"k": k})
        for port, (size, little) in FORMATS.items():
            if port != 18257:  # that is in the program
                params = {"header_bytes": size, "little_endian": little}
                self.switch.table("formats").add({"dst_port": port}, "set_format", params)

    def send(self, port: int, packet: bytes) -> tuple[int, bytes] | None:
        """Return the packets that leave, at most one."""
        for passes in range(10):
            self.most_passes = max(self.most_passes, passes)
            out = self.switch.process(port, packet)
            assert len(out) <= 1 and self.switch.messages() == []
            if not out or out[0][0] != CABLE_OUT:
                return out[0] if out else None
            assert len(out[0][1]) <= len(packet) + ROOM
            port, packet = CABLE_IN, out[0][1]
        raise AssertionError("the packet goes round and round")

    def events(self) -> dict[str, int]:
        """Return the counts since the last call, without zeros."""
        now = self._counters()
        new = {name: now[name] - self._before[name] for name in now}
        self._before = now
        return {name: count for name, count in new.items() if count}

    def sizes(self, counter: str) -> tuple[int, int]:
        """Return the packets and bytes of `compressed` or `decompressed`."""
        if not self._tna:
            packets, size = self.switch.counter(counter).read(0)
            return int(packets), int(size)
        counts = self.switch.counter(f"{counter}_sizes").packets
        return int(counts.sum()), sum(int(n) * size for size, n in enumerate(counts))

    def tags(self) -> list[int]:
        """Return the values of each class, and the vectors of tags."""
        names = [f"value{i}.tags" for i in range(8)] if self._tna else []
        of_values = [[self._read(name, tag) for name in names] for tag in range(4)]
        whole = "TosIngress.tags" if self._tna else "tags"
        return [self._read(whole, i) + sum(of_values[i] if i < 4 else []) for i in range(5)]

    def _counters(self) -> dict[str, int]:
        counts = {name: self.sizes(name)[0] for name in ("compressed", "decompressed")}
        counts |= {"malformed": self._read("malformed", 0)}
        counts |= {name: self._read("passed", i) for i, name in enumerate(REASONS)}
        names = ("tag 0", "tag 1", "tag 2", "tag 3", "tag vectors")
        return counts | dict(zip(names, self.tags(), strict=True))

    def _read(self, counter: str, index: int) -> int:
        return int(self.switch.counter(counter).read(index)[0])


# -- packets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Datagram:
    """The parts of a frame that the tests vary; None: as it is right."""

    payload: bytes
    to: str = FAR
    port: int = PLAIN_PORT
    tos: int = MARK
    flags: int = 0x4000  # and the fragment's offset
    protocol: int = 17
    options: bytes = b""
    udp_length: int | None = None
    total_length: int | None = None
    udp_checksum: int | None = None
    ip_checksum: int | None = None
    trailer: bytes = b""

    def frame(self) -> bytes:
        source, target = (bytes(map(int, ip.split("."))) for ip in (NEAR, self.to))
        length = 8 + len(self.payload) if self.udp_length is None else self.udp_length
        udp = struct.pack(">HHHH", 7000, self.port, length, 0) + self.payload
        sum_ = udp_checksum(source + target, udp) if self.udp_checksum is None else 0
        udp = udp[:6] + struct.pack(">H", self.udp_checksum or sum_) + self.payload
        words = 5 + len(self.options) // 4
        total = 4 * words + len(udp) if self.total_length is None else self.total_length
        head = struct.pack(">BBHHHBBH", 0x40 | words, self.tos, total, 77, self.flags, 64,
                           self.protocol, 0)  # fmt: skip
        ip = head + source + target + self.options
        sum_ = ip_checksum(ip) if self.ip_checksum is None else self.ip_checksum
        ethernet = bytes.fromhex("0200000000fe 020000000001 0800")
        return ethernet + ip[:10] + struct.pack(">H", sum_) + ip[12:] + udp + self.trailer


def ip_checksum(header: bytes) -> int:
    return ~_sum(header) & 0xFFFF


def udp_checksum(addresses: bytes, udp: bytes) -> int:
    """Return the checksum that UDP requires, which is never 0."""
    sum_ = _sum(addresses + struct.pack(">HH", 17, len(udp)) + udp[:6] + b"\0\0" + udp[8:])
    return ~sum_ & 0xFFFF or 0xFFFF


def _sum(data: bytes) -> int:
    """Sum 16-bit words with end-around carry."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return (total - 1) % 0xFFFF + 1 if total else 0


# -- the rules ----------------------------------------------------------------------------------

Expected = tuple[tuple[int, bytes] | None, dict[str, int]]


@dataclass
class _Ip:
    """A frame with an IPv4 header, in parts."""

    frame: bytes

    def __post_init__(self) -> None:
        (self.version, self.tos, self.total, self.flags, self.protocol, self.checksum, self.dst) = (
            struct.unpack(">BBHxxHxBH4x4s", self.frame[14:34])
        )
        self.udp = self.frame[34:42]
        self.ports, self.length, self.udp_sum = (
            struct.unpack(">IHH", self.udp) if len(self.udp) == 8 else (0, 0, 0)
        )
        self.plain_udp = (self.version, self.protocol, self.flags & 0x3FFF) == (0x45, 17, 0)

    @property
    def consistent(self) -> bool:
        inside = self.total + 14 <= len(self.frame)
        return len(self.udp) == 8 and self.length >= 8 and self.length + 20 == self.total and inside

    @property
    def sound(self) -> bool:
        """Return whether the IP checksum is right."""
        return ip_checksum(self.frame[14:24] + b"\0\0" + self.frame[26:34]) == self.checksum

    @property
    def payload(self) -> bytes:
        return self.frame[OVERHEAD : 14 + self.total]

    def changed(self, tos: int, payload: bytes) -> bytes:
        """Return the frame with another mark and payload; an error in the UDP checksum stays."""
        before, addresses = self.frame, self.frame[26:34]
        head = struct.pack(">IHH", self.ports, 8 + len(payload), 0)
        sum_ = 0
        if self.udp_sum:
            right = udp_checksum(addresses, self.udp[:6] + b"\0\0" + self.payload)
            error = self.udp_sum - right
            sum_ = (udp_checksum(addresses, head + payload) + error) % 0xFFFF or 0xFFFF
        ip = struct.pack(">BBH", 0x45, tos | self.tos & 3, 28 + len(payload)) + before[18:24]
        ip += struct.pack(">H", ip_checksum(ip + b"\0\0" + addresses)) + addresses
        udp = head[:6] + struct.pack(">H", sum_)
        return before[:14] + ip + udp + payload + before[14 + self.total :]


def expected(port: int, frame: bytes) -> Expected:
    """Return the frames that a TosSwitch sends for a frame."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return None, {}
    ip = _Ip(frame)
    address = ".".join(map(str, ip.dst))
    ports = {NEAR: 1, NEAR_2: 2, **dict.fromkeys(BOUNDS, 3)}
    if address not in ports:
        return None, {}
    to = ports[address]
    ip = _Ip(to.to_bytes(6, "big") + frame[6:])
    mark = ip.tos & 0xFC if ip.version >> 4 == 4 else 0
    if mark == MARK and port in HOSTS:
        out, events = _compress(ip, to, BOUNDS.get(address, 0))
    elif mark == COMPRESSED and port not in HOSTS and to in HOSTS and ip.plain_udp:
        out, events = _decompress(ip)
    else:
        out, events = ip.frame, {}
    return (None if out is None else (to, out)), events


def _compress(ip: _Ip, to: int, bound: int) -> tuple[bytes, dict[str, int]]:
    header, little = FORMATS.get(ip.ports & 0xFFFF, (0, 0))
    values, size = ip.payload[header:], ip.length - 8
    checks = {
        "local": to in HOSTS,
        "not UDP": ip.protocol != 17,
        "options": ip.version != 0x45,
        "fragment": bool(ip.flags & 0x3FFF),
        "bad length": not ip.consistent,
        "no values": size == 0,
        "not words": size % 4 != 0,
        "too long": size > 4 * MAX_WORDS,
        "bad checksum": not ip.sound,
        "no bound": bound == 0,
        "unknown bound": bound not in (6, 8, 10),
        "unknown format": header not in (0, 16),
    }
    for reason, applies in checks.items():
        if applies:
            return ip.frame, {reason: 1}
    if not values:
        return ip.frame, {"no values": 1}
    x = np.frombuffer(values, "<f4" if little else ">f4").astype(np.float32)
    codec = codecs.get("inceptionn", bound=bound, nonfinite=True)
    bursts = codec.encode(x)[0]
    if 4 + len(bursts) >= len(values):
        return ip.frame, {"not shorter": 1}
    shim = struct.pack(">HBB", x.size, bound, little | (2 if header else 0))
    out = ip.changed(COMPRESSED, shim + ip.payload[:header] + bursts)
    return out, {"compressed": 1, **tag_counts(bursts, x.size)}


def _decompress(ip: _Ip) -> tuple[bytes | None, dict[str, int]]:
    bad: tuple[bytes | None, dict[str, int]] = None, {"malformed": 1}
    if not ip.consistent or not ip.sound or len(ip.payload) < 4:
        return bad
    count, bound, flags = struct.unpack(">HBB", ip.payload[:4])
    header = 16 if flags & 2 else 0
    head, bursts = ip.payload[4 : 4 + header], ip.payload[4 + header :]
    fits = 1 <= count <= MAX_WORDS - header // 4 and len(head) == header
    if bound not in (6, 8, 10) or flags > 3 or not fits:
        return bad
    try:
        codec = codecs.get("inceptionn", bound=bound, nonfinite=True)
        x = codec.decode(bursts, count)
    except CodecError:
        return bad
    body = x.astype("<f4" if flags & 1 else ">f4").tobytes()
    return ip.changed(MARK, head + body), {"decompressed": 1}


def tag_counts(bursts: bytes, n: int) -> dict[str, int]:
    """Count each class in the bursts of n values."""
    tags, at = [], 0
    for first in range(0, n, 8):
        (vector,) = struct.unpack(">H", bursts[at : at + 2])
        burst = [vector >> 2 * i & 3 for i in range(8)]
        at += 2 + sum(1 << t >> 1 for t in burst)
        tags += burst[: n - first]
    counts = {f"tag {t}": tags.count(t) for t in range(4)} | {"tag vectors": -(-n // 8)}
    return {name: count for name, count in counts.items() if count}
