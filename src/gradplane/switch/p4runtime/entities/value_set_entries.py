"""ValueSetEntry: the members of parser value sets."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import find
from gradplane.switch.p4runtime.entities.field_matches import read_matches, show_matches
from gradplane.switch.p4runtime.pipeline import Pipeline, only_modify
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.match_fields import Match


def write_value_set(p: Pipeline, kind: int, message: p4r.ValueSetEntry) -> None:
    info = find(p.catalog.value_sets, message.value_set_id, "value set")
    owner = f"value set {info.name}"
    only_modify(kind, owner)
    members: list[tuple[Match, ...]] = []
    for given in message.members:
        member = read_matches(info.fields, given.match, owner)
        if member in members:
            raise RpcError("ALREADY_EXISTS", f"{owner}: member {len(members)} is given twice")
        members.append(member)
    p.store.cells.set_members(p.state.value_sets[info.name], members)


def read_value_sets(p: Pipeline, query: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
    known = p.catalog.value_sets
    chosen = (
        [find(known, query.value_set_id, "value set")] if query.value_set_id else known.values()
    )
    for info in chosen:
        shown = p4r.ValueSetEntry(value_set_id=info.id)
        for member in p.state.value_sets[info.name].members:
            matches: list[p4r.FieldMatch] = []
            show_matches(info.fields, member, matches)
            shown.members.add(match=matches)
        yield shown
