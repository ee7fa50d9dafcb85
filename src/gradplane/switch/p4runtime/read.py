"""The Read RPC: queries of entities, with wildcards, answered in messages of limited size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.entities.direct_entries import (
    read_direct_counters,
    read_direct_meters,
)
from gradplane.switch.p4runtime.entities.extern_entries import (
    read_counters,
    read_digests,
    read_meters,
    read_registers,
    read_value_sets,
)
from gradplane.switch.p4runtime.entities.packed_cells import PackedCells
from gradplane.switch.p4runtime.entities.profile_entries import read_groups, read_members
from gradplane.switch.p4runtime.entities.replication_entries import read_replication
from gradplane.switch.p4runtime.entities.table_entries import read_table_entries
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.roles import FULL_ACCESS, RoleConfig
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, internal_error
from gradplane.switch.p4runtime.write import entity_id, unknown_entity
from gradplane.switch.runtime.control_errors import TableError

CHUNK = 256  # entities in an answer, read under one hold of the lock; more, where cells are packed

Reader = Callable[[Pipeline, Any], Iterable[Any]]

READERS: dict[str, Reader] = {
    "table_entry": read_table_entries,
    "direct_counter_entry": read_direct_counters,
    "direct_meter_entry": read_direct_meters,
    "action_profile_member": read_members,
    "action_profile_group": read_groups,
    "counter_entry": read_counters,
    "meter_entry": read_meters,
    "register_entry": read_registers,
    "packet_replication_engine_entry": read_replication,
    "value_set_entry": read_value_sets,
    "digest_entry": read_digests,
}


def read(
    p: Pipeline, queries: Sequence[p4r.Entity], rights: RoleConfig = FULL_ACCESS
) -> Iterator[p4r.ReadResponse]:
    """Yield the answers to all queries; raise BatchError at the end if some queries failed.

    Entities outside the role's rights are left out.
    """
    errors: list[RpcError | None] = []
    for query in queries:
        answers = _answers(p, query, rights)
        error = None
        while error is None:
            chunk, error = _next_chunk(p, answers)
            if chunk.entities:
                yield chunk
            elif error is None:
                break
        errors.append(error)
    failed = [(i, error) for i, error in enumerate(errors) if error is not None]
    if failed:
        i, error = failed[0]
        raise BatchError(
            f"{len(failed)} of {len(queries)} queries failed; number {i}: {error.message}", errors
        )


def _next_chunk(
    p: Pipeline, answers: Iterator[tuple[str, Any]]
) -> tuple[p4r.ReadResponse, RpcError | None]:
    chunk = p4r.ReadResponse()
    try:
        with p.switch.lock, p.store.journal.trial():  # names that are only asked for get no numbers
            for kind, message in answers:
                if isinstance(message, PackedCells):
                    chunk.MergeFromString(message.data)
                else:
                    getattr(chunk.entities.add(), kind).CopyFrom(message)
                if len(chunk.entities) >= CHUNK:
                    break
        return chunk, None
    except RpcError as error:
        return p4r.ReadResponse(), error
    except TableError as error:
        return p4r.ReadResponse(), RpcError(error.code, error.message, error.pi_text)
    except Exception as error:  # a bug of ours must not take the switch down
        return p4r.ReadResponse(), internal_error(error, "a query could not be answered")


def _answers(p: Pipeline, query: p4r.Entity, rights: RoleConfig) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each answer, and its message, which may change with the next one."""
    kind = query.WhichOneof("entity")
    if kind == "extern_entry" and not query.extern_entry.extern_type_id:
        return  # all instances of all vendor-specific externs: there are none
    if kind not in READERS:
        raise unknown_entity("query", kind, READERS)
    for message in READERS[kind](p, getattr(query, kind)):
        if rights.ids is None or rights.may_access(entity_id(kind, message)):
            yield kind, message
