"""Whether a pushed P4Info speaks of the program that was pushed with it."""

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
    """What `given` says that is not so in the program; empty when they agree.

    Compared: the architecture, ids, names, ids, names, widths and kinds of fields, actions and
    implementations of tables. Annotations, documentation and sizes may differ, and objects of the
    program may be missing in `given`. What it asks of the platform must be so, too.
    """
    return list(_differences(given, program))


def _differences(given: p4i.P4Info, program: p4i.P4Info) -> Iterator[str]:
    arch, there_arch = given.pkg_info.arch, program.pkg_info.arch
    if arch not in ("", there_arch):
        yield f"its architecture is {arch}, the program's {there_arch}"
    yield from _platform(given.pkg_info.platform_properties)
    for part, kind in _KINDS.items():
        there = {o.preamble.name: o for o in getattr(program, part)}
        for told in getattr(given, part):
            name = told.preamble.name
            if name not in there:
                known = ", ".join(there) or "none"
                yield f"{kind} {name} is not in the program, which has: {known}"
            elif told.preamble.id != there[name].preamble.id:
                ids = f"{told.preamble.id}, in the program {there[name].preamble.id}"
                yield f"{kind} {name} has id {ids}"
            elif part in _FIELDS:
                yield from _fields(f"{kind} {name}", told, there[name], _FIELDS[part])
            if part == "tables" and name in there:
                yield from _table(told, there[name])
    if given.externs:
        yield f"extern {given.externs[0].extern_type_name} is not known to this switch"


def _platform(wanted: p4i.PlatformProperties) -> Iterator[str]:
    """Replicas are limited by memory only."""
    size, there = wanted.multicast_group_table_size, GROUPS - 1  # group 0 is none
    if size > there:
        yield f"it asks for {size} multicast groups, the switch has {there}"


def _table(told: p4i.Table, there: p4i.Table) -> Iterator[str]:
    known = {ref.id for ref in there.action_refs}
    for ref in told.action_refs:
        if ref.id not in known:
            yield f"table {told.preamble.name} has action {ref.id}, which it has not in the program"
    if told.implementation_id != there.implementation_id:
        ids = f"{told.implementation_id}, in the program {there.implementation_id}"
        yield f"table {told.preamble.name} has implementation {ids}"


def _fields(where: str, told: Any, there: Any, part: str) -> Iterator[str]:
    ours = {f.id: f for f in getattr(there, part)}
    theirs = {f.id: f for f in getattr(told, part)}
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
        kind = field.other_match_type or p4i.MatchField.MatchType.Name(field.match_type)
        text += f", {kind.lower()}"
    return text
