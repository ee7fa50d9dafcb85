"""The bytes of containers that several fields share: an ALU writes one in a stage.

The chip's compiler puts metadata of fewer than eight bits together, and keeps a byte of a header or
of a larger field in one container. Tables that set bits of one byte are in different stages, unless
no packet comes through both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from gradplane.fit.header_bytes import bytes_of, header_bytes
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.places import Place

_BYTE = 8


def shared_bytes(tables: Sequence[LogicalTable]) -> Mapping[LogicalTable, set[Hashable]]:
    """Return the bytes that each table sets bits of."""
    packed: dict[object, int] = {}
    room: dict[str, list[int]] = {}
    for table in tables:
        for place in table.writes:
            if _is_small(place) and place.field not in packed:
                packed[place.field] = _first_fit(room.setdefault(table.gress, []), place.width)
    return {table: set(_bytes(table, packed)) for table in tables}


def _bytes(table: LogicalTable, packed: Mapping[object, int]) -> Iterator[Hashable]:
    for place in table.writes:
        if place.field in packed:
            yield table.gress, packed[place.field]
        elif place.bits < place.width and header_bytes(place) is None:
            for byte in {place.low // _BYTE, place.high // _BYTE}:
                yield place.field, byte
        else:
            yield from bytes_of(place)


def _is_small(place: Place) -> bool:
    """Return whether a place is metadata of the program's own with less than a byte."""
    own = "intrinsic" not in str(place.var.type)
    return own and not place.of_header and place.width < _BYTE and header_bytes(place) is None


def _first_fit(room: list[int], bits: int) -> int:
    """Take bits of the first byte that has them; return its number."""
    for number, left in enumerate(room):
        if bits <= left:
            room[number] -= bits
            return number
    room.append(_BYTE - bits)
    return len(room) - 1
