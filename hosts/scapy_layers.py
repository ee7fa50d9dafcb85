"""The wire format as a Scapy layer.

    from gradplane.hosts.scapy_layers import Aggregation, bind
    bind()            # from now on UDP port 18256, either way, is Aggregation
    p = IP(dst="10.0.0.254") / UDP() / Aggregation(type="indices", slot=3, values=[1, 2, 3])
    p.show()

Fields are named as in the header, except that `pass` is `pass_`, a Python keyword. `values` are the
4-bit indices of an INDICES packet or the sums of a SUMS or PARTIAL packet, sum_bits each.
"""

import struct
from typing import Any

from scapy.compat import raw
from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    Field,
    FlagsField,
    IntField,
    ShortField,
    XLongField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers, split_layers

from gradplane.hosts import wire
from gradplane.hosts.wire import Type

_SHOWN = 16
_TYPES = {kind.value: kind.name.lower() for kind in Type}


class _NormField(Field[float, float]):
    """A float32; set with a number, kept as one."""

    def __init__(self, name: str, default: float) -> None:
        super().__init__(name, default, ">f")


class _ValuesField(Field[list[int], bytes]):
    """Indices or sums, as the packet's type and sum_bits say; bytes that do not divide are left."""

    islist = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, [], "s")

    def addfield(self, packet: Packet, data: bytes, value: Any) -> bytes:
        """Append the packed values; as many as there are, so that wrong lengths can be made."""
        return data + _pack(value, _width(packet))

    def getfield(self, packet: Packet, data: bytes) -> tuple[bytes, list[int]]:
        """Take the values of one body."""
        width = _width(packet)
        size = min(len(data), _body_size(packet)) if width else 0
        size -= size % max(width // 8, 1)
        return data[size:], _unpack(data[:size], width)

    def i2repr(self, packet: Packet | None, value: Any) -> str:
        """The first few."""
        shown = ", ".join(map(str, value[:_SHOWN]))
        more = f", ... {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return f"[{shown}{more}]"

    def i2len(self, packet: Packet, value: Any) -> int:
        """Bytes."""
        return len(_pack(value, _width(packet)))

    def any2i(self, packet: Packet | None, value: Any) -> list[int]:
        """Any sequence of numbers."""
        return [int(item) for item in value]


class Aggregation(Packet):
    """The aggregation header and what follows it."""

    name = "Aggregation"
    fields_desc = [
        BitField("version", wire.VERSION, 4),
        BitEnumField("type", int(Type.NORM), 4, _TYPES),
        FlagsField("flags", 0, 8, ["answer", "closed"]),
        ByteField("job", 0),
        ByteField("worker", 0),
        ShortField("slot", 0),
        ByteField("pass_", 0),
        ByteEnumField("sum_bits", 8, {8: "8", 16: "16"}),
        IntField("round", 1),
        XLongField("bitmap", 0),
        _NormField("norm", 0.0),
        _ValuesField("values"),
    ]

    def mysummary(self) -> str:
        """One line: what, whose, where."""
        kind = _TYPES.get(self.type, f"type {self.type}")
        return f"{kind} job {self.job} worker {self.worker} slot {self.slot} round {self.round}"

    def answers(self, other: Packet) -> bool:
        """A result answers a packet of the same slot."""
        asked = {2: 1, 4: 3, 7: 7}.get(self.type)
        return other.type in (asked, 1, 3) and (self.job, self.slot) == (other.job, other.slot)


def bind() -> None:
    """Dissect UDP port 18256 as Aggregation, and give UDP above it that destination port."""
    for way in ("sport", "dport"):
        split_layers(UDP, Aggregation, **{way: wire.UDP_PORT})
    bind_layers(UDP, Aggregation, sport=wire.UDP_PORT)
    bind_layers(UDP, Aggregation, dport=wire.UDP_PORT)


def payload(packet: Packet) -> bytes:
    """The UDP payload that an Aggregation layer makes."""
    return bytes(raw(packet[Aggregation]))


def _width(packet: Packet) -> int:
    """Bits of a value; 0: the type has none."""
    if packet.type == Type.INDICES:
        return 4
    if packet.type in (Type.SUMS, Type.PARTIAL):
        return 16 if packet.sum_bits == 16 else 8
    return 0


def _body_size(packet: Packet) -> int:
    sum_bits = packet.sum_bits if packet.sum_bits in wire.LANES else 8
    return wire.body_size(Type(packet.type), sum_bits)


def _pack(values: list[int], width: int) -> bytes:
    if width == 16:
        return struct.pack(f">{len(values)}H", *values)
    if width == 8:
        return bytes(values)
    padded = [*values, 0] if len(values) % 2 else values
    return bytes(high << 4 | low for high, low in zip(padded[0::2], padded[1::2], strict=True))


def _unpack(data: bytes, width: int) -> list[int]:
    if width == 16:
        return list(struct.unpack(f">{len(data) // 2}H", data))
    if width == 8:
        return list(data)
    return [half for byte in data for half in (byte >> 4, byte & 15)]
