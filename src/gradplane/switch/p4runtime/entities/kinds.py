"""The kinds of entities of Write and Read, a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from gradplane.switch.p4runtime.entities import direct_entries as direct
from gradplane.switch.p4runtime.entities import extern_entries as externs
from gradplane.switch.p4runtime.entities import profile_entries as profiles
from gradplane.switch.p4runtime.entities import table_entries as tables
from gradplane.switch.p4runtime.entities.replication_entries import (
    read_replication,
    write_replication,
)
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError


class EntityKind(NamedTuple):
    """How entities are read and written. id: of a message, the P4Info id that it belongs to."""

    read: Callable[[Pipeline, Any], Iterable[Any]]
    write: Callable[[Pipeline, int, Any], None]
    id: Callable[[Any], int]


_TABLE, _PROFILE = attrgetter("table_entry.table_id"), attrgetter("action_profile_id")
KINDS = {
    "table_entry": EntityKind(
        tables.read_table_entries, tables.write_table_entry, attrgetter("table_id")
    ),
    "direct_counter_entry": EntityKind(
        direct.read_direct_counters, direct.write_direct_counter, _TABLE
    ),
    "direct_meter_entry": EntityKind(direct.read_direct_meters, direct.write_direct_meter, _TABLE),
    "action_profile_member": EntityKind(profiles.read_members, profiles.write_member, _PROFILE),
    "action_profile_group": EntityKind(profiles.read_groups, profiles.write_group, _PROFILE),
    "counter_entry": EntityKind(
        externs.read_counters, externs.write_counter, attrgetter("counter_id")
    ),
    "meter_entry": EntityKind(externs.read_meters, externs.write_meter, attrgetter("meter_id")),
    "register_entry": EntityKind(
        externs.read_registers, externs.write_register, attrgetter("register_id")
    ),
    "packet_replication_engine_entry": EntityKind(
        read_replication, write_replication, lambda message: 0
    ),
    "value_set_entry": EntityKind(
        externs.read_value_sets, externs.write_value_set, attrgetter("value_set_id")
    ),
    "digest_entry": EntityKind(externs.read_digests, externs.write_digest, attrgetter("digest_id")),
}
"""The kinds by their field in p4.v1.Entity."""


def kind_of(what: str, entity: Any) -> str:
    """Return the kind of the entity of an update or query. Raises RpcError without a known one."""
    kind = entity.WhichOneof("entity")
    if kind in KINDS:
        return str(kind)
    code = "INVALID_ARGUMENT" if kind is None else "UNIMPLEMENTED"
    given = "no entity" if kind is None else f"an entity of kind {kind}"
    raise RpcError(code, f"the {what} has {given}; expected one of {', '.join(KINDS)}")
