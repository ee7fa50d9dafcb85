"""The wire formats as Scapy layers: aggregation, and values compressed on the way.

    from gradplane.hosts.scapy_layers import Aggregation, bind
    bind()            # from now on UDP port 18256, either way, is Aggregation
    p = IP(dst="10.0.0.254") / UDP() / Aggregation(type="indices", slot=3, values=[1, 2, 3])
    p.show()

Fields are named as in the header, except that `pass` is `pass_`, a Python keyword; a checksum that
is not set is computed. `path` is there with flags.path, downwards. `values` are the
indices of an INDICES packet, code_bits each, or the sums of a SUMS or PARTIAL packet, sum_bits
each. Packets of version 1, in old captures, end with the norm, and their `worker` is a result's
count.

Compressed packets may have any port and are recognised by their ToS, which Scapy does not look at:

    frame = compressed(frame)           # the UDP payload becomes Compressed, if the ToS is 0x2C
    frame[Compressed].values            # float32, with the error that the bound allows
    IP(tos=COMPRESSED_TOS) / UDP() / Compressed.of(gradients, bound=10)
"""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from scapy.compat import raw
from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    ConditionalField,
    Field,
    FlagsField,
    IntField,
    PacketListField,
    ShortField,
    StrFixedLenField,
    StrLenField,
    XLongField,
    XShortField,
)
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet, bind_layers, split_layers

from gradplane import codecs
from gradplane.codecs import CODE_WIDTHS
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type

COMPRESSED_TOS = 0x2C
"""ToS of packets that p4/tos_compress.p4 has compressed, without the ECN bits."""

_BURST = 8
_SHIM_BYTES = 4
_MESSAGE_BYTES = 16
_SHOWN = 16
_FLAGS = ["answer", "closed", "norm", "path", "uncounted", "direct", "repeats", "bare"]
_TYPES = {kind.value: kind.name.lower() for kind in Type}


class _NormField(Field[float, float]):
    """A float32; set with a number, kept as one."""

    def __init__(self, name: str, default: float) -> None:
        super().__init__(name, default, ">f")


class _ValuesField(Field[list[int], bytes]):
    """Indices or sums, by the packet's type and sum_bits; an incomplete last value is left over."""

    islist = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, [], "s")

    def addfield(self, packet: Packet, data: bytes, value: Any) -> bytes:
        """Append all values packed, also too few or too many, so that wrong packets can be made."""
        return data + _pack(value, _width(packet))

    def getfield(self, packet: Packet, data: bytes) -> tuple[bytes, list[int]]:
        """Take the values of one body."""
        width = _width(packet)
        size = min(len(data), _body_size(packet)) if width else 0
        size -= size % max(width // 8, 1)
        return data[size:], _unpack(data[:size], width)

    def i2repr(self, packet: Packet | None, value: Any) -> str:
        """Show the first few values."""
        shown = ", ".join(map(str, value[:_SHOWN]))
        more = f", ... {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return f"[{shown}{more}]"

    def i2len(self, packet: Packet, value: Any) -> int:
        """Return the size in bytes."""
        return len(_pack(value, _width(packet)))

    def any2i(self, packet: Packet | None, value: Any) -> list[int]:
        """Accept any sequence of numbers."""
        return [int(item) for item in value]


class Aggregation(Packet):
    """The aggregation header, and the indices or sums after it."""

    name = "Aggregation"
    fields_desc = [
        BitField("version", aggregation.VERSION, 4),
        BitEnumField("type", int(Type.NORM), 4, _TYPES),
        FlagsField("flags", 0, 8, _FLAGS),
        ByteField("job", 0),
        ByteField("worker", 0),
        ShortField("slot", 0),
        ByteField("pass_", 0),
        ByteEnumField("sum_bits", 8, {bits: str(bits) for bits in aggregation.LANES}),
        IntField("round", 1),
        XLongField("bitmap", 0),
        _NormField("norm", 0.0),
        *(
            ConditionalField(field, lambda packet: packet.version > 1)
            for field in (
                ShortField("count", 0),
                ByteField("epoch", aggregation.EPOCHS[0]),
                ByteField("code_bits", aggregation.CODE_BITS),
                XShortField("checksum", None),
            )
        ),
        ConditionalField(
            XLongField("path", 0),
            lambda p: p.version > 1 and p.flags.path and p.type not in aggregation.UPWARDS,
        ),
        _ValuesField("values"),
    ]

    def post_build(self, packet: bytes, payload: bytes) -> bytes:
        """Fill in the checksum, where none is set."""
        if self.version > 1 and self.checksum is None:
            at = aggregation.CHECKSUM_AT
            fields = packet[:at] + bytes(2) + packet[at + 2 :]
            value = aggregation.checksum(fields).to_bytes(2, "big")
            packet = packet[:at] + value + packet[at + 2 :]
        return packet + payload

    @property
    def damaged(self) -> bool:
        """True if the header's checksum is wrong, as that of version 1 never is."""
        return bool(self.version > 1 and aggregation.checksum(bytes(raw(self))))

    def mysummary(self) -> str:
        """Summarise type, job, worker, slot and round in a line."""
        kind = _TYPES.get(self.type, f"type {self.type}")
        return f"{kind} job {self.job} worker {self.worker} slot {self.slot} round {self.round}"

    def answers(self, other: Packet) -> bool:
        """Return whether this is a result for a packet of the same slot."""
        asked = {2: 1, 4: 3, 7: 7}.get(self.type)
        return other.type in (asked, 1, 3) and (self.job, self.slot) == (other.job, other.slot)


class _TagsField(Field[list[int], int]):
    """Eight tags of two bits, the first in the low bits."""

    islist = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, [0] * _BURST, "H")

    def i2m(self, packet: Packet | None, value: list[int] | None) -> int:
        """Pack the tags."""
        return sum(tag << 2 * i for i, tag in enumerate(value or ()))

    def m2i(self, packet: Packet | None, value: int) -> list[int]:
        """Unpack the tags."""
        return [value >> 2 * i & 3 for i in range(_BURST)]


class Burst(Packet):
    """Eight values' tags, then their vectors: tag 1, 2 and 3 have 1, 2 and 4 bytes."""

    name = "Burst"
    fields_desc = [
        _TagsField("tags"),
        StrLenField("vectors", b"", length_from=lambda p: sum(1 << tag >> 1 for tag in p.tags)),
    ]

    def extract_padding(self, data: bytes) -> tuple[bytes, bytes]:
        """Leave the rest to the next burst."""
        return b"", data


class Compressed(Packet):
    """The shim, the message header (16 bytes) if there is one, and the bursts of float32 values."""

    name = "Compressed"
    fields_desc = [
        ShortField("count", 0),
        ByteField("bound", 10),
        FlagsField("flags", 0, 8, ["little_endian", "message"]),
        ConditionalField(
            StrFixedLenField("message", bytes(_MESSAGE_BYTES), _MESSAGE_BYTES),
            lambda packet: packet.flags.message,
        ),
        PacketListField("bursts", [], Burst, count_from=lambda p: -(-p.count // _BURST)),
    ]

    @classmethod
    def of(
        cls, values: npt.ArrayLike, bound: int = 10, message: bytes = b"", flags: int = 0
    ) -> "Compressed":
        """Compress float32 values as the network does, after a message header of 16 bytes or none.

        Raises CodecError for a bound other than 6, 8 and 10.
        """
        x = np.asarray(values, dtype=np.float32)
        data, _ = _codec(bound).encode(x)
        if message:
            flags |= 2
        return cls(struct.pack(">HBB", x.size, bound, flags) + message + data)

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The decoded values, float32[count]. Raises CodecError if bursts are damaged."""
        data = b"".join(raw(burst) for burst in self.bursts)
        return _codec(self.bound).decode(data, self.count)

    @property
    def tags(self) -> list[int]:
        """Each value's tag."""
        tags: list[int] = [tag for burst in self.bursts for tag in burst.tags]
        return tags[: self.count]

    def mysummary(self) -> str:
        """Summarise the number of values of each tag in a line."""
        counts = ", ".join(str(self.tags.count(tag)) for tag in range(4))
        return f"compressed {self.count} values, bound 2^-{self.bound}, of tags 0 to 3: {counts}"


def _codec(bound: int) -> codecs.Codec:
    return codecs.get("inceptionn", bound=bound, nonfinite=True)


def compressed(packet: Packet) -> Packet:
    """Return the packet, its UDP payload dissected as Compressed if its ToS marks it so."""
    if UDP not in packet or IP not in packet or packet[IP].tos & 0xFC != COMPRESSED_TOS:
        return packet
    body = raw(packet[UDP].payload)
    if len(body) < _SHIM_BYTES:
        return packet
    copy = packet.copy()
    copy[UDP].payload = Compressed(body)
    return copy


def bind() -> None:
    """Dissect UDP port 18256 as Aggregation, and give UDP above it that destination port."""
    for way in ("sport", "dport"):
        split_layers(UDP, Aggregation, **{way: aggregation.UDP_PORT})
    bind_layers(UDP, Aggregation, sport=aggregation.UDP_PORT)
    bind_layers(UDP, Aggregation, dport=aggregation.UDP_PORT)


def payload(packet: Packet) -> bytes:
    """Return the UDP payload that an Aggregation layer makes."""
    return bytes(raw(packet[Aggregation]))


def _width(packet: Packet) -> int:
    """Return the bits of a value, 0 for a type without values."""
    if packet.type == Type.INDICES:
        return _code_bits(packet)
    if packet.type in (Type.SUMS, Type.PARTIAL):
        return packet.sum_bits if packet.sum_bits in aggregation.LANES else 8
    return 0


def _body_size(packet: Packet) -> int:
    sum_bits = packet.sum_bits if packet.sum_bits in aggregation.LANES else 8
    flags = int(packet.flags)
    return aggregation.body_size(Type(packet.type), sum_bits, _code_bits(packet), flags)


def _code_bits(packet: Packet) -> int:
    """Return the width of a packet's indices; those of version 1 had 4 bits."""
    known = packet.version > 1 and packet.code_bits in CODE_WIDTHS
    return int(packet.code_bits) if known else aggregation.CODE_BITS


_FORMATS = {16: "H", 32: "I"}
"""struct's, by the bits of a value that takes several bytes."""


def _pack(values: list[int], width: int) -> bytes:
    if width in _FORMATS:
        return struct.pack(f">{len(values)}{_FORMATS[width]}", *values)
    if width in (0, 8):  # 0: values in a packet that has none
        return bytes(values)
    each = 8 // width
    rows = (values[at : at + each] for at in range(0, len(values), each))
    return bytes(sum(v << 8 - width * (i + 1) for i, v in enumerate(row)) for row in rows)


def _unpack(data: bytes, width: int) -> list[int]:
    if width in _FORMATS:
        return list(struct.unpack(f">{8 * len(data) // width}{_FORMATS[width]}", data))
    if width in (0, 8):
        return list(data)
    places = range(8 - width, -1, -width)
    return [byte >> place & (1 << width) - 1 for byte in data for place in places]
