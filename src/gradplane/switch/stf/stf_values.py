"""Values in an STF file, converted for the switch's tables.

A number is decimal, 0x, 0b or 0o; in the latter three `*` is a wildcard digit. The digits written
determine how much of a field is matched, as in BMv2's reader: ternary `0x0a` compares eight bits,
whatever the field's width, and lpm `0x0a00****` has a prefix of 16.
"""

from __future__ import annotations

import re
from typing import Any

from gradplane.switch.runtime.match_fields import KeyField
from gradplane.switch.stf.stf_grammar import StfError

BITS = {"0x": 4, "0b": 1, "0o": 3}  # bits of a digit
_RANGE = re.compile(r"(.+?)(?:\.\.|->)(.+)")
_WORDS = {"true": 1, "false": 0}


def number(text: str) -> int | str:
    """Parse a number; return any other text, such as an address, unchanged."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text, 10 if text.isdecimal() else 0)  # 007 is a number too
    except ValueError:
        return text


def match(field: KeyField, text: str) -> Any:
    """Convert a match value to the form of Table.add for the field's kind. Raises StfError."""
    return _KINDS[field.kind](field, text)


def absent(field: KeyField) -> Any:
    """Return the match of a field that an entry does not name: zero for exact fields."""
    return 0 if field.kind == "exact" else None


def _single(field: KeyField, text: str) -> Any:
    if "*" in text:
        raise StfError(f"field {field.name} is matched {field.kind}: {text} has wildcards")
    return number(text)


def _optional(field: KeyField, text: str) -> Any:
    if not text.lower().removeprefix("0x").removeprefix("0b").strip("*"):
        return None
    return _single(field, text)


def _prefix(field: KeyField, text: str) -> Any:
    if "/" in text:
        return tuple(number(part) for part in text.split("/", 1))
    if text[:2].lower() not in BITS:
        return number(text)
    value, mask = _written(text)
    return value, min(mask.bit_count(), field.width)


def _ternary(field: KeyField, text: str) -> Any:
    if "&&&" in text:
        return tuple(number(part) for part in text.split("&&&", 1))
    if text == "*":
        return 0, 0
    if text[:2].lower() not in BITS:
        return number(text), field.full
    value, mask = _written(text)
    return value, mask & field.full


def _range(field: KeyField, text: str) -> Any:
    found = _RANGE.fullmatch(text)
    if found is None:
        return _single(field, text)
    return number(found[1]), number(found[2])


def _written(text: str) -> tuple[int, int]:
    """Return the value, and the mask of the digits that are not wildcards."""
    base, digits = text[:2].lower(), text[2:].replace("_", "")
    try:
        value = int(digits.replace("*", "0"), 1 << BITS[base])
    except ValueError:
        raise StfError(f"{text!r} is not a number") from None
    full = "1" * BITS[base]
    mask = "".join("0" * len(full) if digit == "*" else full for digit in digits)
    return value, int(mask, 2)


_KINDS = {
    "exact": _single,
    "lpm": _prefix,
    "ternary": _ternary,
    "range": _range,
    "optional": _optional,
}
