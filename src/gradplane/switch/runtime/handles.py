"""The numbers by which simple_switch's commands know table entries."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradplane.switch.runtime.entries import Entry

_PLACE_BITS, _VERSIONS = 24, 256


class Handles:
    """A table's entries by handle. A new entry takes the lowest free place; the bits above it count
    how often it was freed, so that old handles do not refer to new entries (p4lang/
    behavioral-model, match_units.cpp). The first entry of a table has handle 0."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._free: list[int] = []  # a heap of places
        self._versions: dict[int, int] = {}

    def add(self, entry: Entry) -> None:
        """Give an entry its handle."""
        # Without a free place all places below the number of entries are taken.
        while self._free:
            handle = self._next(heapq.heappop(self._free))
            if handle not in self._entries:  # a place that was put back is taken
                break
        else:
            handle = self._next(len(self._entries))
        entry.handle = handle
        self._entries[handle] = entry

    def put_back(self, entry: Entry) -> None:
        """Give an entry that was removed its handle again; another one if its place is taken."""
        place = entry.handle & ((1 << _PLACE_BITS) - 1)
        if place < len(self._entries) + len(self._free) and self._next(place) not in self._entries:
            self._versions[place] = entry.handle >> _PLACE_BITS
            self._entries[entry.handle] = entry
        else:
            self.add(entry)

    def _next(self, place: int) -> int:
        return self._versions.get(place, 0) << _PLACE_BITS | place

    def remove(self, entry: Entry) -> None:
        """Free an entry's place."""
        del self._entries[entry.handle]
        place = entry.handle & ((1 << _PLACE_BITS) - 1)
        self._versions[place] = (self._versions.get(place, 0) + 1) % _VERSIONS
        heapq.heappush(self._free, place)

    def renumber(self, entries: Sequence[Entry], handles: Sequence[int]) -> None:
        """Give all entries these handles. Raises ValueError unless each has one of its own."""
        places = {handle & ((1 << _PLACE_BITS) - 1): handle >> _PLACE_BITS for handle in handles}
        in_range = all(0 <= version < _VERSIONS for version in places.values())
        if not len(entries) == len(handles) == len(places) or not in_range:
            raise ValueError(f"{len(entries)} entries cannot have the handles {list(handles)}")
        for entry, handle in zip(entries, handles, strict=True):
            entry.handle = handle
        self._entries = dict(zip(handles, entries, strict=True))
        self._free = [place for place in range(max(places, default=0)) if place not in places]
        self._versions = places

    def get(self, handle: int) -> Entry | None:
        return self._entries.get(handle)
