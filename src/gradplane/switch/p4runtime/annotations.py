"""Annotations in P4Info: documentation, annotations passed on to the controller, numbers."""

from __future__ import annotations

from typing import Any

from gradplane._p4runtime import p4t
from gradplane.switch.control.names import P4InfoError
from gradplane.switch.ir.types import Annotation, Annotations

_IN_OTHER_FIELDS = ("name", "id", "brief", "description")


def annotate(out: Any, annotations: Annotations, handled: tuple[str, ...] = ()) -> None:
    """Write annotations to a P4Info message `out`.

    @brief and @description become its documentation. Names in `handled`, which the caller puts into
    fields of their own, are skipped; all others are passed on.
    """
    for a in annotations:
        if a.name in ("brief", "description"):
            if "doc" in out.DESCRIPTOR.fields_by_name:
                setattr(out.doc, a.name, str(a.values[0]) if a.values else a.body)
        elif a.name in _IN_OTHER_FIELDS or a.name in handled:
            continue
        elif a.structured:
            _structured(out.structured_annotations.add(name=a.name), a)
        else:
            out.annotations.append(f"@{a.name}({a.body})" if a.body else f"@{a.name}")


def _structured(out: p4t.StructuredAnnotation, annotation: Annotation) -> None:
    for value in annotation.values:
        _expression(out.expression_list.expressions.add(), value, annotation)
    for key, value in annotation.pairs:
        _expression(out.kv_pair_list.kv_pairs.add(key=key).value, value, annotation)


def _expression(out: p4t.Expression, value: int | bool | str, annotation: Annotation) -> None:
    match value:
        case bool():
            out.bool_value = value
        case str():
            out.string_value = value
        case int() if -(2**63) <= value < 2**63:
            out.int64_value = value
        case _:
            raise P4InfoError(f"@{annotation.name}[{annotation.body}]: {value} is beyond 64 bits")


def pairs_of(annotations: Annotations, name: str) -> dict[str, int | bool | str]:
    """Return the keys and values of all annotations of this name.

    Raises P4InfoError for a double key.
    """
    found: dict[str, int | bool | str] = {}
    for annotation in annotations:
        for key, value in annotation.pairs if annotation.name == name else ():
            if key in found:
                raise P4InfoError(f"@{name}({annotation.body}): {key} is given twice")
            found[key] = value
    return found


def annotated_number(annotation: Annotation) -> int:
    value = annotation.values[0] if annotation.values else None
    return number_of(value, f"@{annotation.name}({annotation.body})")


def number_of(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise P4InfoError(f"{where}: expected one number of 0 to 2^31 - 1")
    return value
