"""A packet being processed, and the decoding and encoding of headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue, Value
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Bool,
    Fields,
    Header,
    Stack,
    Struct,
    Type,
    Varbit,
    bit_width,
)

MOST_EMITTED = 1 << 16  # bytes: more than any link carries; it bounds emits in a loop
CHUNK_BITS = 128  # headers are cut into byte-aligned runs of about so many bits


class Reject(Exception):
    """Raised where parsing ends with an error; `code` is the error's."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Abort(Exception):
    """Raised to drop a packet because of a fault of its program.

    `detail`: the text of this packet's message, if it says more than the reason.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail or reason


class Packet:
    """Input bits with the parser's position, and the output the deparser has emitted.

    Slot 0 of the interpreter's frame. Architectures add their own per-packet fields by
    subclassing. `events` is None unless this packet is traced. `grown`: bits by which setValid
    and setInvalid made the packet longer.
    """

    __slots__ = ("data", "bits", "position", "length", "chunks", "odd", "odd_bits", "emitted",
                 "grown", "events")  # fmt: skip

    def __init__(self, data: bytes, events: list[Any] | None = None) -> None:
        self.data = data
        self.bits = len(data) * 8
        self.position = 0  # in bits
        self.length = len(data)
        self.chunks: list[bytes] = []
        self.odd = 0  # emitted bits that do not fill a byte yet
        self.odd_bits = 0
        self.emitted = 0  # bits
        self.grown = 0
        self.events = events

    def take(self, width: int) -> bytes:
        """Return the next `width` bits, which must exist, left-aligned, without advancing."""
        start, end = self.position, self.position + width
        if not start & 7:
            return self.data[start >> 3 : (end + 7) >> 3]
        return self.number(width).__lshift__(-width & 7).to_bytes((width + 7) >> 3, "big")

    def number(self, width: int) -> int:
        """Return the next `width` bits, which must exist, as a number, without advancing."""
        end = self.position + width
        last = (end + 7) >> 3
        number = int.from_bytes(self.data[self.position >> 3 : last], "big") >> (last * 8 - end)
        return number & ((1 << width) - 1)

    def put(self, data: bytes, width: int) -> None:
        """Emit `width` bits, left-aligned in `data`."""
        self.emitted += width
        if not self.odd_bits and not width & 7:
            self.chunks.append(data)
            return
        value = int.from_bytes(data, "big") >> (-width & 7)
        value |= self.odd << width
        width += self.odd_bits
        self.odd_bits = width & 7
        self.odd = value & ((1 << self.odd_bits) - 1)
        self.chunks.append((value >> self.odd_bits).to_bytes(width >> 3, "big"))

    def payload(self) -> bytes:
        """Return the bytes that were not parsed; a byte that was begun counts as parsed."""
        return self.data[(self.position + 7) >> 3 :]

    def output(self) -> bytes:
        """Return the emitted bits, then those not parsed; the last byte is filled up with zeros."""
        left = self.bits - self.position
        if left and (self.odd_bits or self.position & 7):
            self.put(self.take(left), left)
        elif left:
            self.chunks.append(self.data[self.position >> 3 :])
        if self.odd_bits:
            self.chunks.append((self.odd << (8 - self.odd_bits)).to_bytes(1, "big"))
        return b"".join(self.chunks)


# -- layouts ------------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    width: int
    signed: bool
    is_bool: bool


class _Chunk(NamedTuple):
    """Bytes start:end of a header and the (shift, mask) of each leaf in them."""

    start: int
    end: int
    pad: int  # bits after the last leaf, in the last byte
    leaves: tuple[tuple[int, int], ...]


class Layout:
    """A run of fixed-width fields: decode bytes to a list of field values, and back.

    `fields` may hold structs and arrays; their values are nested lists.
    """

    def __init__(self, types: list[Type]) -> None:
        self._leaves = [leaf for t in types for leaf in _leaves(t)]
        self.width = sum(leaf.width for leaf in self._leaves)
        self.size = (self.width + 7) // 8
        self._chunks = _chunks([leaf.width for leaf in self._leaves])
        self._special = [
            (i, leaf) for i, leaf in enumerate(self._leaves) if leaf.signed or leaf.is_bool
        ]
        self._nest = _nester(types) if any(isinstance(t, Struct | Array) for t in types) else None

    def decode(self, data: bytes) -> list[Value]:
        """Return field values from left-aligned bits."""
        out: list[Value] = []
        for chunk in self._chunks:
            number = int.from_bytes(data[chunk.start : chunk.end], "big")
            out += [number >> shift & mask for shift, mask in chunk.leaves]
        for i, leaf in self._special:
            out[i] = _special_value(leaf, out[i])
        return self._nest(iter(out)) if self._nest else out

    def encode(self, fields: list[Value]) -> bytes:
        """Return left-aligned bits from field values."""
        values = iter(_flat(fields) if self._nest else fields)
        parts = []
        for chunk in self._chunks:
            number = 0
            for shift, mask in chunk.leaves:
                number |= (next(values) & mask) << shift
            parts.append(number.to_bytes(chunk.end - chunk.start, "big"))
        return b"".join(parts)


def _leaves(t: Type) -> list[_Leaf]:
    match t:
        case Bits():
            return [_Leaf(t.width, t.signed, False)]
        case Bool():
            return [_Leaf(1, False, True)]
        case Struct():
            return [leaf for f in t.fields for leaf in _leaves(f.type)]
        case Array():
            return _leaves(t.element) * t.size
    raise AssertionError(t)


def _chunks(widths: list[int]) -> list[_Chunk]:
    out: list[_Chunk] = []
    start, run = 0, 0  # in bits
    pending: list[int] = []
    for i, width in enumerate(widths):
        pending.append(width)
        run += width
        last = i == len(widths) - 1
        if last or (run >= CHUNK_BITS and not run & 7):
            out.append(_chunk(start, run, pending))
            start, run, pending = start + run, 0, []
    return out


def _chunk(start: int, run: int, widths: list[int]) -> _Chunk:
    pad = -run % 8
    shift = run + pad
    leaves = []
    for width in widths:
        shift -= width
        leaves.append((shift, (1 << width) - 1))
    return _Chunk(start // 8, (start + run + pad) // 8, pad, tuple(leaves))


def _special_value(leaf: _Leaf, value: int) -> Value:
    if leaf.is_bool:
        return bool(value)
    half = 1 << leaf.width >> 1
    return (value ^ half) - half


def _nester(types: list[Type]) -> Callable[[Any], list[Value]]:
    builders = [_builder(t) for t in types]
    return lambda values: [build(values) for build in builders]


def _builder(t: Type) -> Callable[[Any], Value]:
    match t:
        case Struct(fields=fields):
            return _nester([f.type for f in fields])
        case Array(element=element, size=size):
            return _nester([element] * size)
    return next


def _flat(fields: list[Value]) -> list[Value]:
    return [leaf for f in fields for leaf in (_flat(f) if isinstance(f, list) else (f,))]


# -- whole values -------------------------------------------------------------------------------

Decode = Callable[[Packet], Value]
Encode = Callable[[Packet, Value], None]


class HeaderCodec:
    """A header's wire form: fixed fields, with at most one varbit between them."""

    def __init__(self, t: Header) -> None:
        types = [f.type for f in t.fields]
        self.at = next((i for i, f in enumerate(types) if isinstance(f, Varbit)), None)
        split = len(types) if self.at is None else self.at
        self.front = Layout(types[:split])
        self.back = Layout(types[split + 1 :])
        self.fixed = self.front.width + self.back.width
        self.limit = 0 if self.at is None else bit_limit(types[self.at])

    def decode(self, packet: Packet, varying: int) -> list[Value]:
        """Return field values of the next bits, `varying` in the varbit, without advancing."""
        if self.at is None:
            return self.front.decode(packet.take(self.fixed))
        number = packet.number(self.fixed + varying)
        back = number & ((1 << self.back.width) - 1)
        middle = (number >> self.back.width) & ((1 << varying) - 1)
        front = number >> (self.back.width + varying)
        fields = self.front.decode(_aligned(front, self.front.width))
        return [*fields, (varying, middle), *self.back.decode(_aligned(back, self.back.width))]

    def encode(self, packet: Packet, fields: list[Value]) -> None:
        """Emit the fields."""
        if self.at is None:
            packet.put(self.front.encode(fields), self.fixed)
            return
        varying, middle = fields[self.at]
        packet.put(self.front.encode(fields[: self.at]), self.front.width)
        packet.put(_aligned(middle, varying), varying)
        packet.put(self.back.encode(fields[self.at + 1 :]), self.back.width)

    def bits_of(self, fields: list[Value]) -> int:
        """Return the current size in bits."""
        return self.fixed + (0 if self.at is None else fields[self.at][0])


def bit_limit(t: Type) -> int:
    assert isinstance(t, Varbit), t
    return t.width


def _aligned(number: int, width: int) -> bytes:
    return (number << (-width & 7)).to_bytes((width + 7) >> 3, "big")


def decoder(t: Type) -> Decode:
    """Return lookahead's function, which reads a fixed-width value without advancing."""
    width = bit_width(t)
    assert width is not None, t
    if isinstance(t, Header):
        codec = HeaderCodec(t)
        return lambda packet: HeaderValue(True, codec.decode(packet, 0))
    layout = Layout([t])
    return lambda packet: layout.decode(packet.take(width))[0]


def encoder(t: Type) -> Encode:
    """Return emit's function: a header when valid; stacks, unions and structs member by member."""
    if isinstance(t, Header):
        codec = HeaderCodec(t)
        return lambda packet, v: codec.encode(packet, v.fields) if v.valid else None
    if isinstance(t, Stack):
        return _items_encoder(encoder(t.element))
    if isinstance(t, Array):
        return _members_encoder([encoder(t.element)] * t.size)
    assert isinstance(t, Fields), t
    return _members_encoder([encoder(f.type) for f in t.fields])


def _items_encoder(item: Encode) -> Encode:
    def encode(packet: Packet, stack: StackValue) -> None:
        for value in stack.items:
            item(packet, value)

    return encode


def _members_encoder(members: list[Encode]) -> Encode:
    def encode(packet: Packet, values: list[Value]) -> None:
        for member, value in zip(members, values, strict=True):
            member(packet, value)

    return encode
