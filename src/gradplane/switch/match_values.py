"""Parse match values and action parameters in the forms that people write.

A value is an int (negative for int<W>), bytes, or text: a MAC, IPv4 or IPv6 address, or a number in
Python's syntax. A match is a value or, depending on its kind, (value, prefix length) or
"10.0.0.0/8", (value, mask), (low, high).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.match_fields import SHAPES, KeyField, Match

MAC = re.compile(r"[0-9a-fA-F]{1,2}([:-])[0-9a-fA-F]{1,2}(\1[0-9a-fA-F]{1,2}){4}")


def number(value: Any, what: str) -> int:
    """Return the int that a value stands for; `what` names the field in the SwitchError."""
    match value:
        case int():
            return int(value)
        case bytes() | bytearray():
            return int.from_bytes(value, "big")
        case str():
            return _from_text(value, what)
    try:
        return int(value.__index__())  # NumPy's integers, enums
    except (AttributeError, TypeError):
        raise SwitchError(f"{what}: {value!r} is not a number, bytes or an address") from None


def unsigned(value: Any, width: int, what: str) -> int:
    """Return the bits of a value: as number(), but a negative one as its two's complement."""
    n = number(value, what)
    return n + (1 << width) if -(1 << width >> 1) <= n < 0 else n


def match_of(field: KeyField, value: Any) -> Match:
    """Return a match in canonical form; bits outside a prefix or mask are cleared."""
    what = f"{field.owner}: field {field.name}"
    if value is None:
        return field.canonical(None)
    if field.kind == "lpm" and isinstance(value, str) and "/" in value:
        value = tuple(value.split("/", 1))
    if isinstance(value, tuple | list):
        if field.kind in ("exact", "optional") or len(value) != 2:
            raise SwitchError(f"{what}: {value!r} is not {SHAPES[field.kind]}")
        first, second = value
    else:
        first, second = value, _whole(field, value)
    return field.canonical(_pair(field, first, second, what))


def _whole(field: KeyField, value: Any) -> Any:
    """Return the second part that turns a single value into an exact match on it."""
    return {"lpm": field.width, "ternary": field.full, "range": value}.get(field.kind)


def _pair(field: KeyField, first: Any, second: Any, what: str) -> tuple[int, ...]:
    value = unsigned(first, field.width, what)
    field.check_value(value)
    match field.kind:
        case "lpm":
            length = number(second, what)
            return (value & field.mask(min(max(length, 0), field.width)), length)
        case "ternary":
            mask = unsigned(second, field.width, what)
            return (value & mask, mask)
        case "range":
            return (value, unsigned(second, field.width, what))
    return (value,)


def _from_text(text: str, what: str) -> int:
    if MAC.fullmatch(text):
        return int("".join(part.zfill(2) for part in re.split("[:-]", text)), 16)
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(ipaddress.ip_address(text))
    except ValueError:
        raise SwitchError(
            f"{what}: {text!r} is not a number or a MAC, IPv4 or IPv6 address"
        ) from None
