"""The Write RPC: a batch of updates, each by the rules of its entity.

All, some or none are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.entities.kinds import KINDS, kind_of
from gradplane.switch.p4runtime.entities.table_entries import insert_plain
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.roles import FULL_ACCESS, RoleConfig
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, internal_error, invalid
from gradplane.switch.runtime.control_errors import TableError

_TOGETHER = 32  # updates that are applied in one step, while packets wait


def write(
    p: Pipeline,
    updates: Sequence[p4r.Update],
    atomicity: int = p4r.WriteRequest.CONTINUE_ON_ERROR,
    rights: RoleConfig = FULL_ACCESS,
    pause: Callable[[], None] = lambda: None,
) -> None:
    """Apply the updates in order. Raises BatchError, with one result an update, if one failed.

    CONTINUE_ON_ERROR attempts every update. ROLLBACK_ON_ERROR stops at the first that fails and
    undoes those before it; DATAPLANE_ATOMIC does too, and no packet sees a part of the batch.
    pause: called between updates that do not depend on each other; raises RpcError if those that
    are left may not be made any more. To undo a batch, nobody may have written in between.
    """
    if atomicity not in p4r.WriteRequest.Atomicity.values():
        raise invalid(f"atomicity {atomicity} is not known")
    one_step = atomicity == p4r.WriteRequest.DATAPLANE_ATOMIC
    with p.switch.lock if one_step else nullcontext():
        if atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
            errors = _each(p, updates, rights, pause)
        else:
            errors = _all_or_none(p, updates, rights)
    failed = [(i, error) for i, error in enumerate(errors) if error is not None]
    if failed:
        first, error = next(((i, e) for i, e in failed if e.code != "ABORTED"), failed[0])
        raise BatchError(
            f"{len(failed)} of {len(updates)} updates failed; number {first}: {error.message}",
            errors,
        )


def _each(
    p: Pipeline, updates: Sequence[p4r.Update], rights: RoleConfig, pause: Callable[[], None]
) -> list[RpcError | None]:
    errors: list[RpcError | None] = []
    for found in _attempts(p, updates, rights):
        errors += found
        try:
            if len(errors) < len(updates):
                pause()
        except RpcError as error:
            return errors + [error] * (len(updates) - len(errors))
    return errors


class _Failed(Exception):
    """An update failed, so the batch is undone."""


def _all_or_none(
    p: Pipeline, updates: Sequence[p4r.Update], rights: RoleConfig
) -> list[RpcError | None]:
    errors: list[RpcError | None] = [None] * len(updates)
    i = 0
    try:
        with p.store.batch():
            for found in _attempts(p, updates, rights):
                errors[i : i + len(found)] = found
                if any(found):
                    raise _Failed
                i += len(found)
    except _Failed:
        text = f"not applied, since update {i} of the batch failed"
        return [error or RpcError("ABORTED", text) for error in errors]
    return errors


def _attempts(
    p: Pipeline, updates: Sequence[p4r.Update], rights: RoleConfig
) -> Iterator[list[RpcError | None]]:
    """Apply the updates in order; yield the results of those that were applied in one step."""
    for run in _runs(updates):
        if _together(p, run, rights):
            yield [None] * len(run)
        else:
            for update in run:
                yield [_attempt(p, update, rights)]


def _runs(updates: Sequence[p4r.Update]) -> Iterator[Sequence[p4r.Update]]:
    """Yield the updates in runs of a few, each of one table."""
    for _, found in groupby(updates, key=lambda update: update.entity.table_entry.table_id):
        run = list(found)
        yield from (run[at : at + _TOGETHER] for at in range(0, len(run), _TOGETHER))


def _together(p: Pipeline, updates: Sequence[p4r.Update], rights: RoleConfig) -> bool:
    """Apply updates that insert plain entries at once; return whether that is done."""
    try:
        with p.switch.lock:
            return insert_plain(p, updates, rights)
    except Exception:  # the one that fails does so again by itself, and is answered and logged
        return False


def _attempt(p: Pipeline, update: p4r.Update, rights: RoleConfig) -> RpcError | None:
    try:
        with p.switch.lock, p.store.batch():
            _apply(p, update, rights)
    except RpcError as error:
        return error
    except TableError as error:
        return RpcError(error.code, error.message, error.pi_text)
    except Exception as error:  # a bug of ours must not take the switch down
        return internal_error(error, f"an update could not be applied: {update}")
    return None


def _apply(p: Pipeline, update: p4r.Update, rights: RoleConfig) -> None:
    kind = kind_of("update", update.entity)
    if update.type not in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
        given = f"type {update.type}" if update.type else "no type"
        raise invalid(f"the update has {given}; expected INSERT, MODIFY or DELETE")
    message = getattr(update.entity, kind)
    number = KINDS[kind].id(message)
    if not rights.may_access(number):
        raise RpcError("PERMISSION_DENIED", f"the role may not write id {number}")
    KINDS[kind].write(p, update.type, message)
