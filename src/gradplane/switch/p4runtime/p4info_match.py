"""Comparison of a pushed P4Info with the program that was pushed with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4i

from gradplane.switch.runtime.replicas import GROUPS

_KINDS = {
    "tables": "table",
    "actions": "action",
    "action_profiles": "action profile",
    "counters": "counter",
    "direct_counters": "direct counter",
    "meters": "meter",
    "direct_meters": "direct meter",
    "controller_packet_metadata": "controller header",
    "value_sets": "value set",
    "registers": "register",
    "digests": "digest",
}
_FIELDS = {
    "tables": "match_fields",
    "actions": "params",
    "controller_packet_metadata": "metadata",
    "value_sets": "match",
}


def differences(given: p4i.P4Info, program: p4i.P4Info) -> list[str]:
    """List the statements of `given` that are not true of the program; empty when they agree.

    Compared: the architecture; ids and names; ids, names, widths and kinds of fields; actions and
    implementations of tables. Annotations, documentation and sizes may differ, and objects of the
    program may be missing in `given`. Requested platform properties must be available, too.
    """
    return list(_differences(given, program))


def _differences(given: p4i.P4Info, program: p4i.P4Info) -> Iterator[str]:
    arch, there_arch = given.pkg_info.arch, program.pkg_info.arch
    if arch not in ("", there_arch):
        yield f"its architecture is {arch}, the program's {there_arch}"
    yield from _platform(given.pkg_info.platform_properties)
    for part, kind in _KINDS.items():
        there = {o.preamble.name: o for o in getattr(program, part)}
        for claimed in getattr(given, part):
            name = claimed.preamble.name
            if name not in there and part == "actions" and not _is_used(claimed, given):
                continue  # p4c also lists actions that no table has
            if name not in there:
                known = ", ".join(there) or "none"
                yield f"{kind} {name} is not in the program, which has: {known}"
            elif claimed.preamble.id != there[name].preamble.id:
                ids = f"{claimed.preamble.id}, in the program {there[name].preamble.id}"
                yield f"{kind} {name} has id {ids}"
            elif part in _FIELDS:
                yield from _fields(f"{kind} {name}", claimed, there[name], _FIELDS[part])
            if part == "tables" and name in there:
                yield from _table(claimed, there[name])
    if given.externs:
        yield f"extern {given.externs[0].extern_type_name} is not known to this switch"


def _is_used(action: p4i.Action, info: p4i.P4Info) -> bool:
    """Return whether a table has the action."""
    number = action.preamble.id
    return any(ref.id == number for table in info.tables for ref in table.action_refs)


def _platform(wanted: p4i.PlatformProperties) -> Iterator[str]:
    """Check what is limited: multicast groups are; replicas are limited by memory only."""
    size, there = wanted.multicast_group_table_size, GROUPS - 1  # group 0 is none
    if size > there:
        yield f"it asks for {size} multicast groups, the switch has {there}"


def _table(claimed: p4i.Table, there: p4i.Table) -> Iterator[str]:
    name, known = claimed.preamble.name, {ref.id for ref in there.action_refs}
    for ref in claimed.action_refs:
        if ref.id not in known:
            yield f"table {name} has action {ref.id}, which the program's table does not have"
    if claimed.implementation_id != there.implementation_id:
        ids = f"{claimed.implementation_id}, in the program {there.implementation_id}"
        yield f"table {name} has implementation {ids}"


def _fields(where: str, claimed: Any, there: Any, part: str) -> Iterator[str]:
    ours = {f.id: f for f in getattr(there, part)}
    theirs = {f.id: f for f in getattr(claimed, part)}
    if set(ours) != set(theirs):
        yield f"{where} has the fields {_names(theirs)}, in the program {_names(ours)}"
        return
    for number, field in theirs.items():
        if _shape(field) != _shape(ours[number]):
            yield f"{where}: {_shape(field)}, in the program {_shape(ours[number])}"


def _names(fields: dict[int, Any]) -> str:
    return ", ".join(f"{f.name} ({number})" for number, f in fields.items()) or "none"


def _shape(field: Any) -> str:
    text = f"field {field.name}, {field.bitwidth} bits"
    if isinstance(field, p4i.MatchField):
        text += f", {field.other_match_type.lower() or _match_kind(field.match_type)}"
    return text


def _match_kind(number: int) -> str:
    """Return the name of a match kind; a message may also have a number that none has."""
    known = p4i.MatchField.MatchType.values()
    return p4i.MatchField.MatchType.Name(number).lower() if number in known else f"kind {number}"
