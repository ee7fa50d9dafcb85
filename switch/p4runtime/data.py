"""P4Data messages: values of any type, in registers and digests.

In the switch a number (bits, bool; negative for int<W>), (length in bits, value) for a varbit, a
list of fields for a struct, tuple or union, and objects with `valid` and `fields` for a header,
with `items` for a stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4d

from gradplane.switch.ir.types import Bits, Bool, Header, Stack, Struct, Type, Union, Varbit
from gradplane.switch.p4runtime.errors import RpcError
from gradplane.switch.p4runtime.typespec import is_tuple
from gradplane.switch.p4runtime.values import from_bytes, to_bytes


def show_data(t: Type, value: Any) -> p4d.P4Data:
    """The message of a value of type `t`."""
    match t:
        case Bits():
            return p4d.P4Data(bitstring=_bitstring(t, value))
        case Bool():
            return p4d.P4Data(bool=bool(value))
        case Varbit():
            length, bits = value
            varbit = p4d.P4Varbit(bitstring=to_bytes(bits, length), bitwidth=length)
            return p4d.P4Data(varbit=varbit)
        case Struct(fields=fields):
            members = [show_data(f.type, v) for f, v in zip(fields, value, strict=True)]
            both = p4d.P4StructLike(members=members)
            return p4d.P4Data(tuple=both) if is_tuple(t) else p4d.P4Data(struct=both)
        case Header():
            return p4d.P4Data(header=_header(t, value))
        case Union():
            return p4d.P4Data(header_union=_union(t, value))
        case Stack(element=Header() as element):
            entries = [_header(element, item) for item in value.items]
            return p4d.P4Data(header_stack=p4d.P4HeaderStack(entries=entries))
        case Stack(element=Union() as element):
            unions = [_union(element, item) for item in value.items]
            return p4d.P4Data(header_union_stack=p4d.P4HeaderUnionStack(entries=unions))
    raise AssertionError(f"no P4Data for a {t}")


def read_number(t: Type, message: p4d.P4Data, where: str) -> int:
    """The value of a message that must be of type `t`, bits or bool."""
    form = "bool" if isinstance(t, Bool) else "bitstring"
    given = message.WhichOneof("data")
    if given != form:
        raise RpcError(
            "INVALID_ARGUMENT", f"{where}: data is {given or 'not set'}, expected a {form} ({t})"
        )
    if isinstance(t, Bool):
        return int(message.bool)
    assert isinstance(t, Bits), t
    return from_bytes(message.bitstring, t.width, where, t.signed)


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
    """A header's fields, those of nested structs in their place."""
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
    return to_bytes(int(value), 1)
