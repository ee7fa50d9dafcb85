"""The match fields of a table: which matches they accept, in one canonical form.

A match is a tuple by kind: exact (v,), lpm (v, length), ternary (v, mask), range (low, high),
optional (v,); None is don't care. Values are the field's bits as an unsigned number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.runtime.control_errors import TableError

Match = tuple[int, ...] | None

SHAPES = {
    "exact": "a value",
    "lpm": "(value, prefix length)",
    "ternary": "(value, mask)",
    "range": "(low, high)",
    "optional": "a value",
}
WITH_PRIORITY = frozenset({"ternary", "range", "optional"})


@dataclass(frozen=True, slots=True)
class KeyField:
    """One match field: `owner` is the table or value set, for messages."""

    owner: str
    name: str
    width: int
    kind: str
    signed: bool = False

    @property
    def full(self) -> int:
        """The greatest value, also the mask of all bits."""
        return (1 << self.width) - 1

    def canonical(self, match: Match) -> Match:
        """Return a match's canonical form; raises TableError INVALID_ARGUMENT if it has none."""
        if match is None:
            if self.kind == "exact":
                raise self.error("an exact match needs a value")
            return None
        expected = 1 if self.kind in ("exact", "optional") else 2
        if len(match) != expected:
            raise self.error(f"{match} is not {SHAPES[self.kind]}, which kind {self.kind} takes")
        for value in match if self.kind != "lpm" else match[:1]:
            self.check_value(value)
        return _CANONICAL[self.kind](self, *match)

    def check_value(self, value: int) -> None:
        if not 0 <= value <= self.full:
            raise self.error(f"value {value} does not fit {self.width} bits (0 to {self.full})")

    def mask(self, length: int) -> int:
        """Return the mask of a prefix."""
        return self.full ^ (self.full >> length)

    def order(self, value: int) -> int:
        """Map the field's bits to numbers that compare like its values: int<W> is signed."""
        return value ^ (1 << self.width >> 1) if self.signed else value

    def matches(self, match: Match, value: int) -> bool:
        """Return whether a canonical match covers a value."""
        if match is None:
            return True
        if self.kind == "range":
            return self.order(match[0]) <= self.order(value) <= self.order(match[1])
        if self.kind in ("lpm", "ternary"):
            mask = match[1] if self.kind == "ternary" else self.mask(match[1])
            return value & mask == match[0]
        return value == match[0]

    def error(self, what: str) -> TableError:
        return TableError("INVALID_ARGUMENT", f"{self.owner}: field {self.name}: {what}")


def _single(f: KeyField, value: int) -> Match:
    return (value,)


def _prefix(f: KeyField, value: int, length: int) -> Match:
    if not 0 <= length <= f.width:
        raise f.error(f"prefix length {length} is not within 0 to {f.width}")
    if value & ~f.mask(length):
        raise f.error(f"value {value:#x} has bits set beyond its prefix of {length} bits")
    return (value, length) if length else None


def _ternary(f: KeyField, value: int, mask: int) -> Match:
    if value & ~mask:
        raise f.error(f"value {value:#x} has bits set outside its mask {mask:#x}")
    return (value, mask) if mask else None


def _range(f: KeyField, low: int, high: int) -> Match:
    if f.order(low) > f.order(high):
        raise f.error(f"range {low}..{high} is empty: low is above high")
    whole = (f.order(low), f.order(high)) == (0, f.full)
    return None if whole else (low, high)


_CANONICAL: dict[str, Callable[..., Match]] = {
    "exact": _single,
    "lpm": _prefix,
    "ternary": _ternary,
    "range": _range,
    "optional": _single,
}


def key_fields(owner: str, keys: list[ir.Key]) -> list[KeyField]:
    """Return the match fields of a table or value set: its keys but the selector ones."""
    return [
        KeyField(owner, key.name, _width(key), key.match_kind, _signed(key))
        for key in keys
        if key.match_kind != "selector"
    ]


def _width(key: ir.Key) -> int:
    return key.expr.type.width if isinstance(key.expr.type, Bits) else 1


def _signed(key: ir.Key) -> bool:
    return isinstance(key.expr.type, Bits) and key.expr.type.signed


def source_match(field: KeyField, match: ir.Match) -> Match:
    """Return the canonical match of an entry given in the source."""

    def number(expr: ir.Expr) -> int:
        assert isinstance(expr, ir.Const) and not isinstance(expr.value, str), expr
        return int(expr.value) & field.full

    match match:
        case ir.MatchAny():
            return None
        case ir.MatchRange(low=low, high=high):
            return field.canonical((number(low), number(high)))
        case ir.MatchMask(value=value, mask=mask):
            return _masked(field, number(value), number(mask))
        case ir.MatchValue(value=value) if field.kind == "exact":
            return (number(value),)
        case ir.MatchValue(value=value):
            return _plain(field, number(value))
    raise AssertionError(match)


def _masked(field: KeyField, value: int, mask: int) -> Match:
    if field.kind == "lpm":
        length = mask.bit_count()
        if mask != field.mask(length):
            raise field.error(f"mask {mask:#x} is not a prefix: its ones must come first")
        return field.canonical((value & mask, length))
    if field.kind == "ternary":
        return field.canonical((value & mask, mask))
    if mask == field.full:
        return _plain(field, value)
    raise field.error(f"a match of kind {field.kind} takes no mask")


def _plain(field: KeyField, value: int) -> Match:
    second = {"lpm": field.width, "ternary": field.full, "range": value}.get(field.kind)
    return field.canonical((value,) if second is None else (value, second))
