"""P4Data messages: values of any type, in registers and digests.

In the switch a value is a number (bits, bool, enum members; negative for int<W>), (length in bits,
value) for a varbit, a list of fields for a struct, tuple or union, and an object with `valid` and
`fields` for a header, with `items` for a stack. Types are those that the controller sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from gradplane._p4runtime import p4d
from gradplane.switch.ir import ops
from gradplane.switch.ir.types import (
    Bits,
    Bool,
    Enum,
    Error,
    Header,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Type,
    Union,
    Varbit,
    bit_width,
)
from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.catalog import Catalog, Value
from gradplane.switch.p4runtime.p4info import wire_width
from gradplane.switch.p4runtime.status_errors import invalid
from gradplane.switch.p4runtime.typespec import is_tuple

Encode = Callable[[Any], bytes]

_NUMBER = {name: field.number for name, field in p4d.P4Data.DESCRIPTOR.fields_by_name.items()}


def show_data(t: Type, value: Any, catalog: Catalog) -> p4d.P4Data:
    """Return the message of a value of type `t`."""
    shown = p4d.P4Data()
    shown.MergeFromString(encoder(t, catalog)(value))
    return shown


def encoder(t: Type, catalog: Catalog) -> Encode:
    """Return the function from values of type `t` to their messages, as bytes: of the thousands of
    digests in a second no objects are made."""
    match t:
        case NewType():
            return _part("bitstring", _sdn_value(t, catalog).show)
        case Enum(members=members):
            return _part("enum", lambda value: _name(members, value).encode())
        case Error():
            return _part("error", lambda value: _name(catalog.program.errors, value).encode())
        case SerEnum(underlying=underlying):
            return _part("enum_value", partial(_bitstring, underlying))
        case Bits(width=width, signed=False):
            return bits_encoder(partial(delimited, _NUMBER["bitstring"]), width)
        case Bits():
            return _part("bitstring", partial(_bitstring, t))
        case Bool():
            texts = [p4d.P4Data(bool=value).SerializeToString() for value in (False, True)]
            return lambda value: texts[bool(value)]
        case Varbit():
            return _part("varbit", _varbit)
        case Struct(fields=fields):
            inside = [_field_encoder(f.type, catalog) for f in fields]
            return _part("tuple" if is_tuple(t) else "struct", partial(_members, inside))
        case Header():
            return _part("header", lambda value: _header(t, value).SerializeToString())
        case Union():
            return _part("header_union", lambda value: _union(t, value).SerializeToString())
        case Stack(element=Header() as element):
            return _part("header_stack", partial(_header_stack, element))
        case Stack(element=Union() as element):
            return _part("header_union_stack", partial(_union_stack, element))
    raise AssertionError(f"no P4Data for a {t}")


def _part(field: str, encode: Encode) -> Encode:
    """Return the encoder of a message that has one field, which another encodes."""
    number = _NUMBER[field]
    return lambda value: delimited(number, encode(value))


def _field_encoder(t: Type, catalog: Catalog) -> Encode:
    """Return the encoder of a field of a P4StructLike."""
    if isinstance(t, Bits) and not t.signed:
        number = _NUMBER["bitstring"]
        return bits_encoder(lambda data: delimited(1, delimited(number, data)), t.width)
    encode = encoder(t, catalog)
    return lambda value: delimited(1, encode(value))


def _members(encoders: Sequence[Encode], values: Sequence[Any]) -> bytes:
    both = zip(encoders, values, strict=True)
    return b"".join([encode(value) for encode, value in both])


def bits_encoder(wrap: Callable[[bytes], bytes], width: int) -> Callable[[int], bytes]:
    """Return the function from unsigned bits to a message that ends with their shortest string.

    wrap: returns the message of a string; what is before that depends on its length alone.
    """
    most = (width + 7) // 8
    heads = [wrap(bytes(size))[:-size] if size else b"" for size in range(most + 1)]

    def encode(bits: int) -> bytes:
        size = (bits.bit_length() + 7) // 8 or 1
        return heads[size] + bits.to_bytes(size, "big")

    return encode


def _varbit(value: tuple[int, int]) -> bytes:
    length, bits = value
    return bytes(
        p4d.P4Varbit(bitstring=to_bytes(bits, length), bitwidth=length).SerializeToString()
    )


def _header_stack(element: Header, value: Any) -> bytes:
    entries = [_header(element, item) for item in value.items]
    return bytes(p4d.P4HeaderStack(entries=entries).SerializeToString())


def _union_stack(element: Union, value: Any) -> bytes:
    entries = [_union(element, item) for item in value.items]
    return bytes(p4d.P4HeaderUnionStack(entries=entries).SerializeToString())


def delimited(number: int, data: bytes) -> bytes:
    """Encode a field of protobuf's wire format that holds bytes, text or a message."""
    return _head(number, len(data)) + data


@lru_cache(1 << 12)
def _head(number: int, size: int) -> bytes:
    return varint(number << 3 | 2) + varint(size)


def varint(number: int) -> bytes:
    """Encode an unsigned number as protobuf does: seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_number(t: Type, message: p4d.P4Data, where: str, catalog: Catalog) -> int:
    """Return the value of a message of type `t`, which is a number in the switch."""
    form, given = _form(t), message.WhichOneof("data")
    if given != form:
        raise invalid(f"{where}: data is {given or 'not set'}, expected {form} ({t})")
    match t:
        case Bool():
            return int(message.bool)
        case Enum(members=members):
            return _member(message.enum, members, f"{where}: {t}")
        case Error():
            return _member(message.error, catalog.program.errors, f"{where}: error")
        case NewType():
            return _sdn_value(t, catalog).read(message.bitstring, where)
        case SerEnum(underlying=Bits(width=width, signed=signed)):
            return from_bytes(message.enum_value, width, where, signed)
    assert isinstance(t, Bits), t
    return from_bytes(message.bitstring, t.width, where, t.signed)


def read_cell(t: Type, inside: Type, message: p4d.P4Data, where: str, catalog: Catalog) -> int:
    """Return the number that a register's cell of type `t` holds for a message.

    `inside` is the type in the switch. The fields of a struct or tuple make one number, the first
    on top.
    """
    if not isinstance(t, Struct):
        return read_number(t, message, where, catalog)
    assert isinstance(inside, Struct), inside
    form, given = "tuple" if is_tuple(t) else "struct", message.WhichOneof("data")
    members = message.tuple.members if is_tuple(t) else message.struct.members
    if given != form or len(members) != len(t.fields):
        raise invalid(
            f"{where}: data is {given or 'not set'} ({len(members)} members), expected {form} "
            f"({t.name}: {', '.join(f.name for f in t.fields)})"
        )
    whole = 0
    for field, within, member in zip(t.fields, inside.fields, members, strict=True):
        number = read_cell(field.type, within.type, member, f"{where}: {field.name}", catalog)
        width = bit_width(within.type) or 0
        whole = whole << width | ops.wrap(Bits(width))(number)
    return whole


def unpack_cell(inside: Type, number: int) -> Any:
    """Return the value of a register's cell of type `inside`, a list of a struct's fields."""
    if not isinstance(inside, Struct):
        return number
    values: list[Any] = []
    for field in reversed(inside.fields):
        width = bit_width(field.type) or 0
        part = number & ((1 << width) - 1)
        values.append(unpack_cell(field.type, ops.wrap(field.type)(part)))
        number >>= width
    return values[::-1]


def _name(members: Sequence[str], code: int) -> str:
    """Return an enum member's name, "" for another number, which a register may hold."""
    return members[code] if code < len(members) else ""


def _form(t: Type) -> str:
    """Return the field of P4Data that holds a value of this type."""
    match t:
        case Bool():
            return "bool"
        case Enum():
            return "enum"
        case Error():
            return "error"
        case SerEnum():
            return "enum_value"
    return "bitstring"


def _member(name: str, members: Sequence[str], where: str) -> int:
    if name not in members:
        known = ", ".join(members)
        raise invalid(f"{where} has no member {name!r}; it has: {known}")
    return members.index(name)


def _sdn_value(t: NewType, catalog: Catalog) -> Value:
    wire = wire_width(t, t.name, catalog.program.types)
    return Value(0, t.name, bit_width(t) or 0, wire, names=catalog.translations.get(t.name))


def _header(t: Header, value: Any) -> p4d.P4Header:
    if not value.valid:
        return p4d.P4Header()
    return p4d.P4Header(is_valid=True, bitstrings=_bitstrings(t, value.fields))


def _union(t: Union, values: Any) -> p4d.P4HeaderUnion:
    for f, value in zip(t.fields, values, strict=True):
        if value.valid and isinstance(f.type, Header):
            return p4d.P4HeaderUnion(valid_header_name=f.name, valid_header=_header(f.type, value))
    return p4d.P4HeaderUnion()


def _bitstrings(t: Header | Struct, values: Any) -> Iterator[bytes]:
    """Yield a header's fields, those of nested structs in their place."""
    for f, value in zip(t.fields, values, strict=True):
        if isinstance(f.type, Struct):
            yield from _bitstrings(f.type, value)
        else:
            yield _bitstring(f.type, value)


def _bitstring(t: Type, value: Any) -> bytes:
    match t:
        case Bits(width=width, signed=signed):
            return to_bytes(int(value), width, signed)
        case Varbit():
            return to_bytes(value[1], value[0])
        case NewType(underlying=underlying) | SerEnum(underlying=underlying):
            return _bitstring(underlying, value)
    return to_bytes(int(value), 1)
