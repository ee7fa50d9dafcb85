"""An entry's matches as masks and values, which tuple space search groups and hashes.

Ranges are compared entry by entry among entries that are equal otherwise. If these are many, the
ranges of further entries are split into prefixes (1024..65535 gives 6): such an entry becomes
several pairs of masks and values, unless that would be too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_fields import KeyField, Match

MOST = 64  # pairs an entry
LONG = 16  # entries with equal masks and values that are compared

Key = tuple[int, ...]
Masked = tuple[Key, Key]
"""Masks and values, a number a field each."""

Pair = tuple[int, int]  # mask, value


def whole(entry: Entry, fields: Sequence[KeyField]) -> Masked:
    """Return the entry as one pair, without its ranges."""
    pairs = [_pair(match, field) for match, field in zip(entry.matches, fields, strict=True)]
    return tuple(mask for mask, _ in pairs), tuple(value for _, value in pairs)


def in_parts(entry: Entry, fields: Sequence[KeyField]) -> list[Masked]:
    """Return the entry as pairs, its ranges split; a key fits at most one of them."""
    choices: list[list[Pair]] = []
    count = 1
    for match, field in zip(entry.matches, fields, strict=True):
        found = [_pair(match, field)]
        if match is not None and field.kind == "range":
            prefixes = list(_prefixes(field, *match))
            if count * len(prefixes) <= MOST:
                found = prefixes
        count *= len(found)
        choices.append(found)
    return [(tuple(m for m, _ in p), tuple(v for _, v in p)) for p in product(*choices)]


def _pair(match: Match, field: KeyField) -> Pair:
    if match is None or field.kind == "range":
        return 0, 0
    if field.kind == "lpm":
        return field.mask(match[1]), match[0]
    return (match[1] if field.kind == "ternary" else field.full), match[0]


def _prefixes(field: KeyField, low: int, high: int) -> Iterator[Pair]:
    """Return the fewest prefixes that cover a range. Signed numbers sort with the sign flipped."""
    top = field.order(0)
    at, end = field.order(low), field.order(high)
    while at <= end:
        size = at & -at or 1 << field.width
        while at + size - 1 > end:
            size >>= 1
        mask = field.full & ~(size - 1)
        yield mask, (at ^ top) & mask
        at += size
