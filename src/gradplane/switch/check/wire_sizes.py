"""Sizes of types on the wire (specification, chapter 9).

Headers that a compiler may lay out as it likes (`@flexible`) fill whole bytes.

    @flexible header h { bit<9> port; }   ->   header h { bit<9> port; bit<7> _padding; }

The program does not see the padding: lists and structs that are assigned have no value for it.
"""

from __future__ import annotations

from gradplane.switch.check.checker_types import AnyType
from gradplane.switch.ir.types import (
    Annotation,
    Annotations,
    Bits,
    Field,
    Fields,
    Header,
    Stack,
    Tuple,
    Type,
    Union,
    Varbit,
    bit_width,
)

MAX_WIDTH = 1 << 16  # limit on a type's or literal's width, to bound the work at compile time


def size_bits(t: Type, largest: bool) -> int | None:
    """Return minSizeInBits or maxSizeInBits of a type; a varbit counts 0, or its maximum."""
    match t:
        case Varbit(width=width):
            return width if largest else 0
        case Union(fields=fields):
            sizes = [size_bits(f.type, largest) for f in fields]
            known = [s for s in sizes if s is not None]
            if len(known) != len(sizes):
                return None
            return max(known, default=0) if largest else min(known, default=0)
        case Stack(element=element, size=size):
            one = size_bits(element, largest)
            return None if one is None else one * size
        case Fields(fields=fields):
            sizes = [size_bits(f.type, largest) for f in fields]
            return None if None in sizes else sum(s for s in sizes if s is not None)
    return bit_width(t)


def emittable(t: Type) -> bool:
    """Return whether packet_out.emit takes a value of this type."""
    match t:
        case Header() | Union():
            return True
        case Stack(element=element):
            return emittable(element)
        case Fields(fields=fields):
            return all(emittable(f.type) for f in fields)
        case Tuple(elements=elements):
            return all(map(emittable, elements))
    return isinstance(t, AnyType)


def varbits(t: Type) -> int:
    """Count the varbit fields of a header, those of its structs included."""
    match t:
        case Varbit():
            return 1
        case Fields(fields=fields):
            return sum(varbits(f.type) for f in fields)
    return 0


# -- headers that fill whole bytes ------------------------------------------------------------


_PADDING = Annotation("padding")
_NAME = "_padding_of_flexible_header"


def padded(fields: tuple[Field, ...], annotations: Annotations) -> tuple[Field, ...]:
    """Return a header's fields, with padding behind them if it or one of them is `@flexible`."""
    notes = [*annotations, *(note for field in fields for note in field.annotations)]
    widths = [bit_width(field.type) for field in fields]
    if not any(note.name == "flexible" for note in notes) or None in widths:
        return fields
    missing = -sum(width for width in widths if width is not None) % 8
    return (*fields, Field(_NAME, Bits(missing), (_PADDING,))) if missing else fields


def is_padded(t: Type) -> bool:
    """Return whether a type's last field is such padding."""
    return isinstance(t, Header) and bool(t.fields) and t.fields[-1].name == _NAME
