"""The neighbours of a header's fields: the chip keeps a byte of a packet in one container."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradplane.fit.places import Place
from gradplane.switch.ir.nodes import Var
from gradplane.switch.ir.types import Annotations, Fields, Header, Stack, Type, bit_width

HeaderByte = tuple[Var, tuple[int, ...], int]
"""A byte of a header: the header's variable and path, and the byte's number."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a header: where it begins, counted from the header's first bit."""

    path: tuple[int, ...]
    name: str
    start: int
    width: int
    padding: bool  # or laid out by the compiler

    def bytes_of(self, high: int, low: int) -> range:
        """Return the bytes of the header that bits of the field lie in."""
        last = self.start + self.width - 1
        return range((last - high) // 8, (last - low) // 8 + 1)


def header_bytes(place: Place) -> int | None:
    """Return the bytes of the header that a field is in, None of metadata and `@flexible` ones."""
    header, _ = _header_of(place)
    if header is None or _has(header.annotations, "flexible"):
        return None
    return sum(f.width for f in _flat(header, (), 0)) // 8


def bytes_of(place: Place) -> Iterator[HeaderByte]:
    """Yield the bytes of headers that a place lies in, if other fields may be in them."""
    header, path = _header_of(place)
    if header is None or place.of_header or _has(header.annotations, "flexible"):
        return
    own = next((f for f in _flat(header, (), 0) if f.path == path), None)
    if own is not None and not own.padding:
        before = place.path[: len(place.path) - len(path)]
        for byte in own.bytes_of(place.high, place.low):
            yield place.var, before, byte


def neighbours(place: Place) -> list[str]:
    """Return the names of the other fields in the bytes of a header's field, without padding.

    The chip's compiler lays out `@flexible` fields itself, so they have none."""
    header, path = _header_of(place)
    if header is None or place.of_header or _has(header.annotations, "flexible"):
        return []
    fields = list(_flat(header, (), 0))
    own = next((f for f in fields if f.path == path), None)
    if own is None or own.padding:
        return []
    taken = set(own.bytes_of(place.high, place.low))
    others = (f for f in fields if f is not own and not f.padding)
    return [f.name for f in others if taken.intersection(f.bytes_of(f.width - 1, 0))]


def _has(annotations: Annotations, name: str) -> bool:
    return any(a.name == name for a in annotations)


def _header_of(place: Place) -> tuple[Header | None, tuple[int, ...]]:
    """Return the header that a place is in, and the field's path inside it."""
    found: tuple[Header | None, tuple[int, ...]] = (None, ())
    t: Type = place.var.type
    for n, step in enumerate(place.path):
        if isinstance(t, Header):
            found = t, place.path[n:]
        if isinstance(t, Stack):
            t = t.element
        elif isinstance(t, Fields) and step >= 0:
            t = t.fields[step].type
    return found


def _flat(t: Fields, path: tuple[int, ...], start: int) -> Iterator[_Field]:
    for n, field in enumerate(t.fields):
        width = bit_width(field.type) or 0
        if isinstance(field.type, Fields):
            yield from _flat(field.type, (*path, n), start)
            width = sum(f.width for f in _flat(field.type, (), 0))
        else:
            padding = _has(field.annotations, "padding") or _has(field.annotations, "flexible")
            yield _Field((*path, n), field.name, start, width, padding)
        start += width
