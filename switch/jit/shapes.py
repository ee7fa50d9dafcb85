"""How a table lies in native memory: the plan that compiled code and the mirror share.

An entry's record is [key part][action part]. The action part: addresses of the entry's counter,
meter and times (8 bytes each, where the table has them), a tag, the action's data. Tag: the
action's number, the top bit set if an entry hit. Tables with an action profile have, in place of
the tag and data, two 32-bit numbers: the first of the entry's choices and their number; choices
are action parts in an array of their own, and choice 0 is the default action.

direct   at most 16 bits of exact keys: records indexed by the key; all exist, and those of no
         entry hold the default action.
hash     exact keys: an index of record numbers, open addressing with linear probing.
prefix   exact and lpm: the same index; the key is masked and looked up for each group of masks,
         the longest first; a record holds its group's number as a last word of the key.
scan     ternary, range, optional: record numbers in order of precedence, compared one by one.
none     no key: the default action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.layout import Layouts
from gradplane.switch.runtime.keys import KeyField, key_fields

DIRECT_BITS = 16
DIRECT_BYTES = 1 << 22
TOMBSTONE = 0xFFFF_FFFF
MULTIPLIER = 0x9E37_79B9_7F4A_7C15
MASK64 = (1 << 64) - 1

WORDS = ("default", "records", "index", "mask", "order", "count", "choices")


@dataclass(frozen=True, slots=True)
class ActionPart:
    """Offsets within an action part. `args`: for each action (offset, bytes) a parameter."""

    counter: int | None
    meter: int | None
    times: int | None
    tag: int
    tag_bits: int
    args: tuple[tuple[tuple[int, int], ...], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Shape:
    """`words`: 64-bit words of the key without range fields. `ranges`: positions of those."""

    name: str
    kind: str
    fields: tuple[KeyField, ...]
    ranges: tuple[int, ...]
    bits: int
    words: int
    entry: ActionPart
    choice: ActionPart | None  # of tables with a profile
    key_size: int
    stride: int

    @property
    def hit(self) -> int:
        """The tag's top bit."""
        return 1 << (self.action.tag_bits - 1)

    @property
    def action(self) -> ActionPart:
        """The part that has tag and data."""
        return self.choice or self.entry

    def word(self, part: str) -> str:
        """Name of a state word."""
        return f"table {self.name}: {part}"

    def range_at(self, position: int) -> int:
        """Offset of a range field's bounds in a scan record: low, then high."""
        at = 16 * self.words
        for i in self.ranges:
            if i == position:
                return at
            at += 16 * _words(self.fields[i].width)
        raise AssertionError(position)

    def same_lookup(self) -> tuple[object, ...]:
        """Tables that agree in this share their lookup function."""
        fields = tuple((f.width, f.kind, f.signed) for f in self.fields)
        return self.kind, fields, self.key_size, self.stride


def shape_of(table: ir.Table, layouts: Layouts) -> Shape:
    """Plans a table's memory."""
    fields = tuple(key_fields(f"table {table.name}", table.keys))
    ranges = tuple(i for i, f in enumerate(fields) if f.kind == "range")
    bits = sum(f.width for f in fields if f.kind != "range")
    words = _words(bits)
    if table.implementation is None:
        choice, entry = None, _action_part(table, layouts, _heads(table))
    else:
        choice, entry = _action_part(table, layouts, ()), _profile_part(_heads(table))
    kind = _kind(fields, bits, table, entry)
    key_size = _key_size(kind, words, [fields[i].width for i in ranges])
    stride = key_size + entry.size
    if kind != "direct":
        stride = -(-stride // 8) * 8
    return Shape(table.name, kind, fields, ranges, bits, words, entry, choice, key_size, stride)


def _kind(fields: Sequence[KeyField], bits: int, table: ir.Table, entry: ActionPart) -> str:
    kinds = {f.kind for f in fields}
    if not fields:
        return "none"
    if kinds & {"ternary", "range", "optional"}:
        return "scan"
    if "lpm" in kinds:
        return "prefix"
    small = bits <= DIRECT_BITS and entry.size << bits <= DIRECT_BYTES
    return "direct" if small and table.implementation is None else "hash"


def _key_size(kind: str, words: int, ranges: Sequence[int]) -> int:
    if kind in ("direct", "none"):
        return 0
    if kind == "scan":
        return 16 * words + sum(16 * _words(width) for width in ranges)
    return 8 * (words + (kind == "prefix"))


def _heads(table: ir.Table) -> tuple[bool, bool, bool]:
    return table.counter is not None, table.meter is not None, table.support_timeout


def _action_part(table: ir.Table, layouts: Layouts, heads: Sequence[bool]) -> ActionPart:
    offsets, at = _head_offsets(heads)
    tag_bits = 8 if len(table.actions) <= 127 else 16
    start, most, align, args = at + tag_bits // 8, at + tag_bits // 8, tag_bits // 8, []
    for choice in table.actions:
        end, places = start, []
        for param in choice.action.params:
            place = layouts.of(param.type)
            end = -(-end // place.align) * place.align
            places.append((end, place.size))
            end += place.size
            align = max(align, place.align)
        args.append(tuple(places))
        most = max(most, end)
    align = 8 if any(heads) else align
    counter, meter, times = offsets
    size = -(-most // align) * align
    return ActionPart(counter, meter, times, at, tag_bits, tuple(args), size)


def _profile_part(heads: Sequence[bool]) -> ActionPart:
    offsets, at = _head_offsets(heads)
    counter, meter, times = offsets
    return ActionPart(counter, meter, times, at, 0, (), at + 8)


def _head_offsets(heads: Sequence[bool]) -> tuple[list[int | None], int]:
    offsets: list[int | None] = [None, None, None]
    at = 0
    for i, present in enumerate(heads):
        if present:
            offsets[i] = at
            at += 8
    return offsets, at


def _words(bits: int) -> int:
    return -(-bits // 64)


def hashed(words: Sequence[int]) -> int:
    """The hash of a key's words, as the native code computes it."""
    h = 0
    for word in words:
        h = ((h ^ word) * MULTIPLIER) & MASK64
        h ^= h >> 32
    return h
