"""The sizes of containers that fields can have: an ALU reads containers of its own size only.

A header's bytes fill containers that have nothing else, so a header of two bytes is in none of 32
bits. A field that is added up is in one container.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gradplane.fit.header_bytes import header_bytes
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.overruns import Overrun
from gradplane.fit.places import Place
from gradplane.fit.values import Operation

_SIZES = (8, 16, 32)


def without_common_size(tables: Sequence[LogicalTable]) -> Iterator[Overrun]:
    """Yield the operations that take fields which no containers of one size can hold, one of each
    place in the source."""
    operations = [o for t in tables for a in t.actions for o in a.operations]
    added = {p.field for o in operations if o.carries for p in (*o.writes, *o.reads)}
    plain = {o.span: o for o in operations if not o.value.uses and not o.value.impossible}
    for operation in plain.values():
        yield from _unlike(operation, added)


def _unlike(operation: Operation, added: Collection[object]) -> Iterator[Overrun]:
    if len(operation.writes) != 1:
        return
    target = operation.writes[0]
    for source in operation.reads:
        if source.of_header or target.of_header or source.field == target.field:
            continue
        one, other = _sizes(target, added), _sizes(source, added)
        if not one & other:
            smaller, larger = sorted(((one, target), (other, source)), key=lambda x: max(x[0]))
            what = f"an ALU works on containers of one size: {smaller[1].name} is in one of"
            what += f" {max(smaller[0])} bits at most, {larger[1].name} in one of {min(larger[0])}"
            way_out = "keep both in fields of one width; or get the smaller one from the larger by"
            way_out += " Hash with IDENTITY, the larger one from the packet by the parser"
            yield Overrun("phv", what, operation.span, way_out)
            return


def _sizes(place: Place, added: Collection[object]) -> set[int]:
    """Return the sizes of the containers that a field, or parts of it, can be in."""
    whole = header_bytes(place)
    found = {size for size in _SIZES if whole is None or size <= 8 * whole}
    if place.field in added and place.width <= max(_SIZES):
        found -= {size for size in _SIZES if size < place.width}
    return found or {min(_SIZES)}
