"""P4Data messages: values of any type, in registers and digests.

In the switch a value is a number (bool and bits; negative for int<W>), or a list for a struct.
"""

from __future__ import annotations

from typing import Any

from finsy.proto import p4d

from gradplane.switch.ir.types import Bits, Bool, Struct, Type
from gradplane.switch.p4runtime.errors import RpcError
from gradplane.switch.p4runtime.values import from_bytes, to_bytes


def show_data(t: Type, value: Any) -> p4d.P4Data:
    """The message of a value of type `t`."""
    match t:
        case Bits(width=width, signed=signed):
            return p4d.P4Data(bitstring=to_bytes(int(value), width, signed))
        case Bool():
            return p4d.P4Data(bool=bool(value))
        case Struct(fields=fields):
            members = [show_data(f.type, v) for f, v in zip(fields, value, strict=True)]
            return p4d.P4Data(struct=p4d.P4StructLike(members=members))
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
