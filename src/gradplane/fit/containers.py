"""The containers of the packet header vector (PHV) that fields take.

Containers have 8, 16 or 32 bits. Fields that are never alive at once share one, and so do headers
that no packet has together. What only passes by is in containers without ALUs.

The sizes of containers that fields can have: an ALU reads containers of its own size only.

A header's bytes fill containers that have nothing else, so a header of two bytes is in none of 32
bits. A field that is added up is in one container.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradplane.fit.chip_resources import ChipResources, Overrun
from gradplane.fit.live_fields import Carried
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.places import Place, header_bytes
from gradplane.fit.values import Operation

SIZES = (32, 16, 8)


@dataclass(slots=True)
class Piece:
    """Neighbouring fields, or a part of a field, in one container of `size` bits.

    fixed: it must not be cut into smaller ones, since it is added as a whole."""

    fields: tuple[Carried, ...]
    size: int
    fixed: bool

    @property
    def first(self) -> int:
        return min(f.first for f in self.fields)

    @property
    def last(self) -> int:
        return max(f.last for f in self.fields)

    @property
    def name(self) -> str:
        more = len(self.fields) - 1
        return self.fields[0].name + (f" and {more} more" if more else "")


@dataclass(slots=True)
class Container:
    """A container and the pieces that share it."""

    size: int
    pieces: list[Piece] = field(default_factory=list)


@dataclass(slots=True)
class PhvDemand:
    """The containers with ALUs of each size, bits that only pass by, and what did not fit."""

    containers: list[Container] = field(default_factory=list)
    passive_bits: int = 0
    homeless: list[Piece] = field(default_factory=list)

    def count(self, size: int) -> int:
        return sum(c.size == size for c in self.containers)


def phv_demand(
    directions: Sequence[tuple[Sequence[Carried], Mapping[str, set[str]]]], chip: ChipResources
) -> PhvDemand:
    """Return the containers for the fields of ingress and egress, which do not share any.

    directions: the fields of each, and the parser states that go together.
    """
    found = PhvDemand()
    room = sum(size * count for size, count in chip.passive.items())
    for fields, together in directions:
        active, passive = pieces(fields)
        for piece in passive:
            if found.passive_bits + piece.size <= room or chip.family == "tf2":
                found.passive_bits += piece.size
            else:
                active.append(piece)
        own: list[Container] = []
        for piece in sorted(active, key=lambda p: (not p.fixed, -p.size)):
            _settle(piece, own, found, together, chip)
    return found


def _settle(
    piece: Piece,
    own: list[Container],
    found: PhvDemand,
    together: Mapping[str, set[str]],
    chip: ChipResources,
) -> None:
    """Put a piece into a container: a used one, a new one, a larger one, or smaller ones."""
    for container in own:
        if container.size == piece.size and not any(
            _conflict(piece, other, together) for other in container.pieces
        ):
            container.pieces.append(piece)
            return
    for size in sorted(chip.containers):
        own_count = sum(c.size == size for c in own)
        free = found.count(size) < chip.containers[size] and own_count < chip.most_in_one[size]
        if size >= piece.size and free:
            made = Container(size, [piece])
            own.append(made)
            found.containers.append(made)
            return
    if piece.size > min(SIZES) and not piece.fixed:
        half = piece.size // 2
        for _ in range(2):
            _settle(Piece(piece.fields, half, False), own, found, together, chip)
        return
    found.homeless.append(piece)


def _conflict(a: Piece, b: Piece, together: Mapping[str, set[str]]) -> bool:
    """Return whether two pieces are alive at once, in some packet."""
    if a.last <= b.first or b.last <= a.first:
        return False
    states_a = {s for f in a.fields for s in f.states}
    states_b = {s for f in b.fields for s in f.states}
    if not states_a or not states_b or any(f.made for f in (*a.fields, *b.fields)):
        return True
    return any(t in together.get(s, ()) for s in states_a for t in states_b)


def pieces(fields: Sequence[Carried]) -> tuple[list[Piece], list[Piece]]:
    """Return the pieces that fields are cut into or joined to: computed ones, and passing ones."""
    active: list[Piece] = []
    passive: list[Piece] = []
    headers: dict[str, list[Carried]] = {}
    small: list[Carried] = []
    for each in fields:
        if each.last <= each.first and not each.computed:
            continue  # extracted, and neither used nor emitted
        if each.header:
            headers.setdefault(each.header, []).append(each)
        elif each.width < min(SIZES) and not each.carries:
            small.append(each)
        else:
            active += _cut((each,), each.width, each.carries)
    for members in headers.values():
        for run in _byte_runs(sorted(members, key=lambda f: f.offset)):
            width = sum(f.width for f in run)
            fixed = any(f.carries for f in run) and len(run) == 1
            computed = any(f.computed for f in run)
            (active if computed else passive).extend(_cut(tuple(run), width, fixed))
    active += _flags(small)
    return active, passive


def _byte_runs(fields: Sequence[Carried]) -> list[list[Carried]]:
    """Join neighbours until they fill whole bytes."""
    runs: list[list[Carried]] = []
    run: list[Carried] = []
    for each in fields:
        run.append(each)
        if (each.offset + each.width) % 8 == 0:
            runs.append(run)
            run = []
    return [*runs, run] if run else runs


def _cut(fields: tuple[Carried, ...], width: int, fixed: bool) -> list[Piece]:
    """Cut bits into containers, the largest first of which less than a byte is left over; a number
    that is added stays whole."""
    found: list[Piece] = []
    if fixed and width <= max(SIZES):
        size = next(s for s in reversed(SIZES) if s >= width)
        return [Piece(fields, size, True)]
    left = width
    while left > 0:
        size = next((s for s in SIZES if s - min(SIZES) < left), min(SIZES))
        found.append(Piece(fields, size, fixed))
        left -= size
    return found


def _flags(fields: Sequence[Carried]) -> list[Piece]:
    """Put small numbers that are alive at the same time together into containers of 8 bits."""
    found: list[Piece] = []
    group: list[Carried] = []
    for each in sorted(fields, key=lambda f: (f.first, f.last)):
        if group and sum(f.width for f in group) + each.width > min(SIZES):
            found.append(Piece(tuple(group), min(SIZES), False))
            group = []
        group.append(each)
    if group:
        found.append(Piece(tuple(group), min(SIZES), False))
    return found


# -- sizes ------------------------------------------------------------------------------------


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
