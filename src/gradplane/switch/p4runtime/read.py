"""The Read RPC: queries of entities, with wildcards, answered in messages of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.entities.kinds import KINDS, kind_of
from gradplane.switch.p4runtime.entities.packed_cells import PackedCells
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.roles import FULL_ACCESS, RoleConfig
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, internal_error
from gradplane.switch.runtime.control_errors import TableError

CHUNK = 256  # entities in an answer, read under one hold of the lock; more, where cells are packed


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
    if query.HasField("extern_entry") and not query.extern_entry.extern_type_id:
        return  # all instances of all vendor-specific externs: there are none
    kind = kind_of("query", query)
    row = KINDS[kind]
    for message in row.read(p, getattr(query, kind)):
        if rights.ids is None or rights.may_access(row.id(message)):
            yield kind, message
