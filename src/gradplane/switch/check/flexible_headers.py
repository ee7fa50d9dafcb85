"""Headers that a compiler may lay out as it likes (`@flexible`) fill whole bytes.

    @flexible header h { bit<9> port; }   ->   header h { bit<9> port; bit<7> _padding; }

The program does not see the padding: lists and structs that are assigned have no value for it.
"""

from __future__ import annotations

from gradplane.switch.ir.types import Annotation, Annotations, Bits, Field, Header, Type, bit_width

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
