"""Many cells of a counter as the bytes of their entities, made by NumPy.

A message of Python for each cell takes three times as long as all else that a read does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._p4runtime import p4r

_LEAST = 32  # cells; fewer are made sooner one by one
_MOST = 1024  # cells that are read under one hold of the switch's lock: a millisecond

_Words = npt.NDArray[np.uint64]
_Columns = list[tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]]
"""Bytes of all rows, [rows, columns], and which of them are there."""


@dataclass(frozen=True)
class PackedCells:
    """Cells of the counter with this id: `data` is a ReadResponse with them."""

    counter_id: int
    data: bytes


def parts(cells: range) -> list[range]:
    """Return ranges of cells to pack; none where that would take longer."""
    if len(cells) < _LEAST:
        return []
    return [cells[first : first + _MOST] for first in range(0, len(cells), _MOST)]


def pack(counter_id: int, cells: range, packets: _Words, nbytes: _Words) -> PackedCells:
    """Return the cells with these counts, one for each cell."""
    rows = len(cells)
    data = _field(p4r.CounterData, "byte_count", nbytes)
    data += _field(p4r.CounterData, "packet_count", packets)
    index = _field(p4r.Index, "index", np.arange(cells.start, cells.stop, dtype=np.uint64))
    entry = _field(p4r.CounterEntry, "counter_id", np.full(rows, counter_id, np.uint64))
    entry += _message(p4r.CounterEntry, "index", index, rows)
    entry += _message(p4r.CounterEntry, "data", data, rows)
    entity = _message(p4r.Entity, "counter_entry", entry, rows)
    whole = _message(p4r.ReadResponse, "entities", entity, rows)
    octets = np.concatenate([column for column, _ in whole], axis=1)
    there = np.concatenate([there for _, there in whole], axis=1)
    return PackedCells(counter_id, octets[there].tobytes())


def _field(message: Any, name: str, values: _Words) -> _Columns:
    """Return a field of integers, which is left out where it is 0."""
    given = (values != 0)[:, None]
    width = max(1, -(-int(values.max()).bit_length() // 7))
    left = values[:, None] >> (7 * np.arange(width, dtype=np.uint64))
    more = left[:, 1:] != 0  # whether another byte follows
    octets = (left & np.uint64(127)).astype(np.uint8)
    octets[:, :-1] |= more.astype(np.uint8) << 7
    tag = np.full((len(values), 1), _tag(message, name, 0), np.uint8)
    return [(tag, given), (octets, np.concatenate((given, more), axis=1))]


def _message(message: Any, name: str, inside: _Columns, rows: int) -> _Columns:
    """Return a field with a message of less than 128 bytes inside, which may be empty."""
    always = np.ones((rows, 1), np.bool_)
    size = sum(there.sum(axis=1, dtype=np.uint8) for _, there in inside)
    assert isinstance(size, np.ndarray) and size.max() < 128, "a cell has some 50 bytes"
    tag = np.full((rows, 1), _tag(message, name, 2), np.uint8)
    return [(tag, always), (size[:, None], always), *inside]


def _tag(message: Any, name: str, kind: int) -> int:
    """Return the byte before a field: its number, and its kind on the wire."""
    tag: int = message.DESCRIPTOR.fields_by_name[name].number << 3 | kind
    assert tag < 128, name
    return tag
