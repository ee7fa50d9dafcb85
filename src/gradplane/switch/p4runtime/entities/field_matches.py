"""FieldMatch messages and the runtime's matches.

kind      message                      match             "don't care"
exact     exact.value                  (value,)          not possible
lpm       lpm.value, lpm.prefix_len    (value, length)   left out
ternary   ternary.value, ternary.mask  (value, mask)     left out
range     range.low, range.high        (low, high)       left out
optional  optional.value               (value,)          left out
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.catalog import FieldInfo, find
from gradplane.switch.p4runtime.status_errors import invalid
from gradplane.switch.runtime.match_fields import Match


def read_matches(
    fields: Mapping[int, FieldInfo], messages: Iterable[p4r.FieldMatch], owner: str
) -> tuple[Match, ...]:
    """Decode a match for each field of a request.

    `owner` names the table or value set in errors.
    """
    matches: list[Match] = [None] * len(fields)
    for message in messages:
        field = find(fields, message.field_id, "match field", owner)
        if matches[field.position] is not None:
            raise invalid(f"{owner}: field {field.value} is given twice")
        matches[field.position] = _read(field, message, owner)
    for field in fields.values():
        if field.kind == "exact" and matches[field.position] is None:
            raise invalid(f"{owner}: field {field.value} is missing; an exact match needs a value")
    return tuple(matches)


def show_matches(
    fields: Mapping[int, FieldInfo], matches: Sequence[Match], out: list[p4r.FieldMatch]
) -> None:
    """Append the messages of the fields that are matched, in canonical form."""
    for field in fields.values():
        match = matches[field.position]
        if match is None:
            continue
        message = p4r.FieldMatch(field_id=field.value.id)
        show = field.value.show
        match field.kind:
            case "exact":
                message.exact.value = show(match[0])
            case "lpm":
                message.lpm.value, message.lpm.prefix_len = show(match[0]), match[1]
            case "ternary":
                message.ternary.value = show(match[0])
                message.ternary.mask = field.value.show_mask(match[1])
            case "range":
                message.range.low, message.range.high = show(match[0]), show(match[1])
            case "optional":
                message.optional.value = show(match[0])
        out.append(message)


def _read(field: FieldInfo, message: p4r.FieldMatch, owner: str) -> Match:
    where = f"{owner}: field {field.value}"
    given = message.WhichOneof("field_match_type")
    if given != field.kind:
        raise invalid(
            f"{where}: the match is of kind {given or '(none)'}, the field's is {field.kind}"
        )
    return _READERS[field.kind](field, message, where)


def _exact(field: FieldInfo, message: p4r.FieldMatch, where: str) -> Match:
    return (field.value.read(message.exact.value, where),)


def _optional(field: FieldInfo, message: p4r.FieldMatch, where: str) -> Match:
    return (field.value.read(message.optional.value, where),)


def _lpm(field: FieldInfo, message: p4r.FieldMatch, where: str) -> Match:
    length, width = message.lpm.prefix_len, field.value.width
    if not 0 < length <= width:
        hint = "; leave the field out to match any value" if length == 0 else ""
        raise invalid(f"{where}: prefix length {length} is not within 1 to {width}{hint}")
    value = field.value.read(message.lpm.value, where)
    if value & ((1 << width - length) - 1):
        raise invalid(f"{where}: value {value:#x} has bits set beyond its prefix of {length} bits")
    return (value, length)


def _ternary(field: FieldInfo, message: p4r.FieldMatch, where: str) -> Match:
    value = field.value.read(message.ternary.value, where)
    mask = field.value.read_mask(message.ternary.mask, f"{where}: mask")
    if mask == 0:
        raise invalid(f"{where}: mask 0; leave the field out to match any value")
    if value & ~mask:
        raise invalid(f"{where}: value {value:#x} has bits set outside its mask {mask:#x}")
    return (value, mask)


def _range(field: FieldInfo, message: p4r.FieldMatch, where: str) -> Match:
    low = field.value.read(message.range.low, f"{where}: low")
    high = field.value.read(message.range.high, f"{where}: high")
    if low > high and not field.value.signed:
        raise invalid(f"{where}: low {low} is above high {high}")
    if (low, high) == (0, (1 << field.value.width) - 1) and not field.value.signed:
        raise invalid(
            f"{where}: range {low} to {high} covers all values; leave the field out to match any"
            " value"
        )
    return (low, high)


_READERS: dict[str, Callable[[FieldInfo, p4r.FieldMatch, str], Match]] = {
    "exact": _exact,
    "lpm": _lpm,
    "ternary": _ternary,
    "range": _range,
    "optional": _optional,
}
