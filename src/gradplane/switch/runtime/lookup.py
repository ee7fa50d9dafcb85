"""Indices that find the entry for a key: by hash (exact), prefix length (lpm) or priority (others).

Each index has insert(entry), remove(entry) and find(key); a key is a number for each match field.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from operator import and_
from typing import Protocol

from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_fields import WITH_PRIORITY, KeyField, Match
from gradplane.switch.runtime.match_masks import LONG, Key, Masked, in_parts, whole


class Index(Protocol):
    @property
    def find(self) -> Callable[[Key], Entry | None]: ...

    def insert(self, entry: Entry) -> None: ...

    def remove(self, entry: Entry) -> None: ...


def index_for(fields: Sequence[KeyField]) -> Index:
    """Make the index that a table with these match fields needs."""
    kinds = {f.kind for f in fields}
    if kinds & WITH_PRIORITY:
        return PriorityIndex(fields)
    return PrefixIndex(fields) if "lpm" in kinds else ExactIndex()


class ExactIndex:
    """An index of exact fields: one dict."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self.find: Callable[[Key], Entry | None] = self._entries.get

    def insert(self, entry: Entry) -> None:
        self._entries[entry_values(entry)] = entry

    def remove(self, entry: Entry) -> None:
        del self._entries[entry_values(entry)]


class PrefixIndex:
    """An index of exact and lpm fields: a dict for each prefix length; the longest is tried first.

    With several lpm fields the first one's length counts first.
    """

    def __init__(self, fields: Sequence[KeyField]) -> None:
        self._fields = fields
        self._groups: dict[Key, dict[Key, Entry]] = {}  # by the masks of an entry
        self._order: list[tuple[Key, dict[Key, Entry]]] = []

    def find(self, key: Key) -> Entry | None:
        for masks, entries in self._order:
            entry = entries.get(tuple(map(and_, key, masks)))
            if entry is not None:
                return entry
        return None

    def insert(self, entry: Entry) -> None:
        masks = entry_masks(entry, self._fields)
        if masks not in self._groups:
            self._groups[masks] = {}
            self._reorder()
        self._groups[masks][entry_values(entry)] = entry

    def remove(self, entry: Entry) -> None:
        masks = entry_masks(entry, self._fields)
        del self._groups[masks][entry_values(entry)]
        if not self._groups[masks]:
            del self._groups[masks]
            self._reorder()

    def _reorder(self) -> None:
        self._order = sorted(self._groups.items(), reverse=True, key=lambda item: item[0])


class _Group:
    """The entries of a PriorityIndex that have the same masks, by their masked values."""

    def __init__(self, masks: Key, best: int) -> None:
        self.masks = masks
        self.buckets: dict[Key, list[Entry]] = {}  # best entry first
        self.best = best  # an upper bound of the priorities


class PriorityIndex:
    """An index with ternary, range and optional fields: tuple space search.

    Entries are grouped by their masks; in a group the masked key is hashed. Groups are tried by
    falling priority until none left can win.
    """

    def __init__(self, fields: Sequence[KeyField]) -> None:
        self._fields = fields
        self._ranges = [(i, f) for i, f in enumerate(fields) if f.kind == "range"]
        self._groups: dict[Key, _Group] = {}
        self._order: list[_Group] = []
        self._in_order = True
        self._parts: dict[int, list[Masked]] = {}  # of entries taken apart, by their id()

    def find(self, key: Key) -> Entry | None:
        if not self._in_order:
            self._order = sorted(self._groups.values(), key=lambda group: -group.best)
            self._in_order = True
        found: Entry | None = None
        for group in self._order:
            if found is not None and group.best < found.priority:
                break
            for entry in group.buckets.get(tuple(map(and_, key, group.masks)), ()):
                if found is not None and _rank(entry) >= _rank(found):
                    break
                if self._in_ranges(entry, key):
                    found = entry
                    break
        return found

    def insert(self, entry: Entry) -> None:
        for masks, values in self._pairs(entry):
            group = self._groups.get(masks)
            if group is None:
                group = self._groups[masks] = _Group(masks, entry.priority)
                self._in_order = False
            insort(group.buckets.setdefault(values, []), entry, key=_rank)
            if entry.priority > group.best:
                group.best = entry.priority
                self._in_order = False

    def remove(self, entry: Entry) -> None:
        parts = self._parts.pop(id(entry), None) or [whole(entry, self._fields)]
        for masks, values in parts:
            group = self._groups[masks]
            bucket = group.buckets[values]
            bucket.remove(entry)
            if not bucket:
                del group.buckets[values]
            if not group.buckets:
                del self._groups[masks]
                self._in_order = False

    def _pairs(self, entry: Entry) -> list[Masked]:
        """Return masks and values; several if an entry's ranges would go to a long bucket."""
        masks, values = whole(entry, self._fields)
        group = self._groups.get(masks)
        if not self._ranges or group is None or len(group.buckets.get(values, ())) < LONG:
            return [(masks, values)]
        self._parts[id(entry)] = in_parts(entry, self._fields)
        return self._parts[id(entry)]

    def _in_ranges(self, entry: Entry, key: Key) -> bool:
        for i, field in self._ranges:
            match = entry.matches[i]
            if match is not None:
                low, high = match
                if not field.order(low) <= field.order(key[i]) <= field.order(high):
                    return False
        return True


def _rank(entry: Entry) -> tuple[int, int]:
    return (-entry.priority, entry.serial)


def entry_values(entry: Entry) -> Key:
    """Return the value of each match of exact and lpm fields; 0 for don't care."""
    return tuple([0 if match is None else match[0] for match in entry.matches])


def entry_masks(entry: Entry, fields: Sequence[KeyField]) -> Key:
    """Return the mask of each match of exact and lpm fields."""
    return tuple(_mask(m, f) for m, f in zip(entry.matches, fields, strict=True))


def _mask(match: Match, field: KeyField) -> int:
    if match is None:
        return 0
    return field.mask(match[1]) if field.kind == "lpm" else field.full
