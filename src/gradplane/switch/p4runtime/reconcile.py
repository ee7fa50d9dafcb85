"""The state of a pipeline: RECONCILE_AND_COMMIT carries it over, commands save and load it.

It is the store's records. Saved state of earlier versions, a WriteRequest of P4Runtime with some
parts beside it, is loaded, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from gradplane._p4runtime import p4r
from gradplane.switch.control.records import Pause, Plain, dump, load
from gradplane.switch.p4runtime.entry_rules import NoRules
from gradplane.switch.p4runtime.pipeline import Pipeline, RunningSwitch
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError, invalid
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.pipe_scopes import Groups
from gradplane.switch.runtime.state import PipeState


def carry_over(old: Pipeline, new: Pipeline) -> None:
    """Write all of `old`'s state into the fresh `new`; the caller holds the old switch's lock.

    Raises RpcError INVALID_ARGUMENT if the new program has no place for some of it.
    """
    with _placed("the new program has no place for state of the old one"):
        load(new.store, dump(old.store))
    _keep_meters_and_times(old, new)


def saved_state(p: Pipeline, pause: Pause) -> Plain:
    """Return the state of a pipeline, for JSON; the caller holds its lock but in `pause`.

    That is all that a control plane can write (gradplane.switch.control.records). Tokens in meters'
    buckets and times are not in it, nor queues and links.
    """
    return dump(p.store, pause)


def load_state(new: Pipeline, text: str) -> None:
    """Write saved state into the fresh `new`. Raises RpcError INVALID_ARGUMENT."""
    try:
        state = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_state(error) from error
    if not isinstance(state, dict) or not {"tables", "updates"} & state.keys():
        raise _no_state("expected a JSON object, as serialize_state writes it")
    with _placed("the program has no place for the saved state"):
        try:
            if "updates" in state:
                _load_former(new, state)
            else:
                load(new.store, state)
        except (ParseError, KeyError, ValueError, TypeError, AttributeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else error
            raise _no_state(what) from error


@contextmanager
def _placed(what: str) -> Iterator[None]:
    """Raise what the store or a write refuses as RpcError."""
    try:
        yield
    except SwitchError as error:
        raise invalid(f"{what}: {error}") from error
    except BatchError as error:
        first = next(e for e in error.errors if e is not None)
        raise invalid(f"{what}: {first.message}") from error


def _no_state(what: object) -> RpcError:
    return invalid(f"this is no saved state: {what}")


def _keep_meters_and_times(old: Pipeline, new: Pipeline) -> None:
    """Copy what cannot be written: tokens in buckets, counts per colour, the bytes added to what
    meters measure, times of the last hit, and how many flow ids were given."""
    new.state.flow_ids[:] = old.state.flow_ids
    for before, after in zip(old.state.scopes.pipes, new.state.scopes.pipes, strict=False):
        for name, adjustment in after.adjustments.items():
            if name in before.adjustments:
                adjustment.set(before.adjustments[name].bytes)
        for name, meter in after.meters.items():
            former = before.meters.get(name)
            if former is not None and former.size == meter.size:
                meter.memory[:] = former.memory
        for name, table in after.tables.items():
            if name in before.tables:
                _keep_times(before.tables[name], table)


def _keep_times(before: MatchTable, table: MatchTable) -> None:
    table.default_meter.restore(before.default_meter.cells)
    for entry in before.entries():
        found = table.find(entry.matches, entry.priority)
        if found is not None:
            found.meter.restore(entry.meter.cells)
            found.last_hit_ns = entry.last_hit_ns
            found.idle_reported_ns = entry.idle_reported_ns
            table.watch_idle(found)


# -- saved state of earlier versions --------------------------------------------------------------


def _load_former(new: Pipeline, state: dict[str, Any]) -> None:
    """Write state that an earlier version saved: a WriteRequest; `scopes`, the groups of pipes by
    name, and `pipes`, a WriteRequest for each of them; `hashes`: CRCs, by name; `handles`: those of
    each table's entries; `replication`: Replication.dump."""
    scopes, pipes = state.pop("scopes", {}), state.pop("pipes", {})
    replication = state.pop("replication", None)
    hashes = {name: Crc(**crc) for name, crc in state.pop("hashes", {}).items()}
    handles = state.pop("handles", {})
    whole = ParseDict(state, p4r.WriteRequest())
    others = {int(pipe): ParseDict(one, p4r.WriteRequest()) for pipe, one in pipes.items()}
    _restore(new, whole.updates, scopes, {pipe: one.updates for pipe, one in others.items()})
    for name, crc in hashes.items():
        new.store.hashes.modify(name, crc=crc)
    for name, numbers in handles.items():
        table = new.state.tables.get(name)
        if table is not None and len(table) == len(numbers):
            table.renumber(numbers)
    if replication is not None:
        new.store.replication.load(replication)


def _restore(
    new: Pipeline,
    updates: Sequence[p4r.Update],
    scopes: Mapping[str, Groups],
    pipes: Mapping[int, Sequence[p4r.Update]],
) -> None:
    """Apply updates in place of the source's entries. Raises BatchError.

    scopes: the groups of pipes that share something, by name. pipes: the updates of other pipes.
    """
    there = new.state.scopes
    for name, groups in scopes.items():
        if not there.has(name):
            raise SwitchError(f"there is no table or extern {name}")
        there.set(name, groups)
    for table in there.every("tables"):
        if not table.table.const_entries:
            table.clear()
    new = replace(new, whole=True, rules=NoRules())
    write(new, updates)
    for pipe, found in pipes.items():
        if not 0 < pipe < len(there.pipes):
            raise SwitchError(f"there is no pipe {pipe}")
        write(_in_pipe(new, pipe), found)


class _PipeSwitch:
    """A running switch, with the state of one pipe."""

    def __init__(self, switch: RunningSwitch, pipe: int) -> None:
        self._switch = switch
        self.state = PipeState(switch.state, pipe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._switch, name)


def _in_pipe(p: Pipeline, pipe: int) -> Pipeline:
    return replace(p, switch=_PipeSwitch(p.switch, pipe))
