"""The state of a pipeline as updates: RECONCILE_AND_COMMIT carries it over, commands save it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from finsy.proto import p4r
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from gradplane.switch.p4runtime.pipeline import Pipeline, RunningSwitch
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.pipe_scopes import Groups
from gradplane.switch.runtime.state import PipeState

# Ordered so that an entity comes after those it refers to.
_INSERTED = (
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(
        table_entry=p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    ),
    p4r.Entity(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            multicast_group_entry=p4r.MulticastGroupEntry()
        )
    ),
    p4r.Entity(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            clone_session_entry=p4r.CloneSessionEntry()
        )
    ),
    p4r.Entity(digest_entry=p4r.DigestEntry()),
)
_MODIFIED = (
    p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
    p4r.Entity(counter_entry=p4r.CounterEntry()),
    p4r.Entity(meter_entry=p4r.MeterEntry()),
    p4r.Entity(register_entry=p4r.RegisterEntry()),
)


def carry_over(old: Pipeline, new: Pipeline) -> None:
    """Write all of `old`'s state into the fresh `new`; the caller holds the old switch's lock.

    Raises RpcError INVALID_ARGUMENT if the new program has no place for some of it.
    """
    try:
        pipes = {pipe: list(found) for pipe, found in pipe_updates(old).items()}
        scopes = old.state.scopes.own
        _restore(new, list(_updates(old)), set(old.state.tables), scopes, pipes)
        if old.store.replication.beyond_replicas:
            new.store.replication.load(old.store.replication.dump())
        _set_hashes(new, _replaced_hashes(old))
        _set_handles(new, _handles(old))
    except (RpcError, TableError) as error:
        what = f"the new program has no place for state of the old one: {error.message}"
        raise RpcError("INVALID_ARGUMENT", what) from error
    _keep_meters_and_times(old, new)


def saved_state(p: Pipeline) -> str:
    """Return the state of a pipeline in JSON; the caller holds its lock.

    That is all that a controller can write: a WriteRequest and, where pipes of a chip differ from
    the first one, `scopes`, the groups of pipes by name, and `pipes`, a WriteRequest for each;
    `hashes`: the CRCs, by name, in place of the program's algorithms; `handles`: those of each
    table's entries. `replication`: nodes, link groups and settings of sessions, where there are
    some: Replication.dump.
    Tokens in meters' buckets and times are not in it.
    """
    state = {"updates": [], **_plain(_updates(p))}
    pipes = {str(pipe): _plain(found) for pipe, found in pipe_updates(p).items()}
    if p.state.scopes.differ:
        state["scopes"] = p.state.scopes.own
    if any(pipes.values()):
        state["pipes"] = pipes
    if hashes := _replaced_hashes(p):
        state["hashes"] = {name: asdict(crc) for name, crc in hashes.items()}
    state["handles"] = _handles(p)
    if p.store.replication.beyond_replicas:
        state["replication"] = p.store.replication.dump()
    return json.dumps(state, indent=2)


def load_state(new: Pipeline, text: str) -> None:
    """Write saved state into the fresh `new`. Raises RpcError INVALID_ARGUMENT."""
    try:
        state = json.loads(text)
        if not isinstance(state, dict) or "updates" not in state:
            raise ValueError('expected a JSON object with "updates", as serialize_state writes it')
        scopes, pipes = state.pop("scopes", {}), state.pop("pipes", {})
        replication = state.pop("replication", None)
        hashes = {name: Crc(**crc) for name, crc in state.pop("hashes", {}).items()}
        handles = {name: tuple(found) for name, found in state.pop("handles", {}).items()}
        whole = ParseDict(state, p4r.WriteRequest())
        others = {int(pipe): ParseDict(one, p4r.WriteRequest()) for pipe, one in pipes.items()}
    except (ParseError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise RpcError("INVALID_ARGUMENT", f"this is no saved state: {error}") from error
    try:
        found = {pipe: one.updates for pipe, one in others.items()}
        _restore(new, whole.updates, set(new.state.tables), scopes, found)
        _set_hashes(new, hashes)
        _set_handles(new, handles)
        if replication is not None:
            new.store.replication.load(replication)
    except (RpcError, TableError) as error:
        what = f"the program has no place for the saved state: {error.message}"
        raise RpcError("INVALID_ARGUMENT", what) from error
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        what = f"this is no saved state: replication: {type(error).__name__}: {error}"
        raise RpcError("INVALID_ARGUMENT", what) from error


def _plain(updates: Iterable[p4r.Update]) -> dict[str, Any]:
    request = p4r.WriteRequest(updates=updates)
    found: dict[str, Any] = MessageToDict(request, preserving_proto_field_name=True)
    return found


def _restore(
    new: Pipeline,
    updates: Sequence[p4r.Update],
    tables: set[str],
    scopes: Mapping[str, Groups],
    pipes: Mapping[int, Sequence[p4r.Update]],
) -> None:
    """Apply updates in place of the source's entries in `tables`; raise RpcError for the first that
    fails.

    scopes: the groups of pipes that share something, by name. pipes: the updates of other pipes.
    """
    there = new.state.scopes
    for name, groups in scopes.items():
        if not there.has(name):
            raise RpcError("NOT_FOUND", f"there is no table or extern {name}")
        there.set(name, groups)
    for table in there.every("tables"):
        if table.table.name in tables and not table.table.const_entries:
            table.clear()
    new = replace(new, whole=True)
    try:
        write(new, updates)
        for pipe, found in pipes.items():
            if not 0 < pipe < len(there.pipes):
                raise RpcError("NOT_FOUND", f"there is no pipe {pipe}")
            write(_in_pipe(new, pipe), found)
    except BatchError as error:
        first = next(e for e in error.errors if e is not None)
        raise first from error


def _replaced_hashes(p: Pipeline) -> dict[str, Crc]:
    """Return the CRCs that a controller has put in place of the program's algorithms."""
    return {name: hash.crc for name, hash in p.state.hashes.items() if hash.crc is not None}


def _set_hashes(new: Pipeline, hashes: Mapping[str, Crc]) -> None:
    for name, crc in hashes.items():
        if name not in new.state.hashes:
            raise RpcError("NOT_FOUND", f"there is no hash {name}")
        new.state.hashes[name].set(crc)


def _handles(p: Pipeline) -> dict[str, list[int]]:
    """Return the handles of each table's entries, in their order."""
    return {
        name: [entry.handle for entry in table.entries()]
        for name, table in p.state.tables.items()
        if len(table)
    }


def _set_handles(new: Pipeline, handles: Mapping[str, Sequence[int]]) -> None:
    """Set handles, but for tables to which another program gives entries of its own."""
    for name, numbers in handles.items():
        table = new.state.tables.get(name)
        if table is not None and len(table) == len(numbers):
            try:
                table.renumber(numbers)
            except (ValueError, TypeError) as error:
                raise RpcError("INVALID_ARGUMENT", f"table {name}: {error}") from error


def _keep_meters_and_times(old: Pipeline, new: Pipeline) -> None:
    """Copy what cannot be written: tokens in buckets, counts per colour, the bytes added to what
    meters measure, times of the last hit."""
    for name, adjustment in new.state.byte_adjustments.items():
        if name in old.state.byte_adjustments:
            adjustment.set(old.state.byte_adjustments[name].bytes)
    for before, after in zip(old.state.scopes.pipes, new.state.scopes.pipes, strict=False):
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


# -- pipes of a chip ------------------------------------------------------------------------------


class _PipeSwitch:
    """A running switch, with the state of one pipe."""

    def __init__(self, switch: RunningSwitch, pipe: int) -> None:
        self._switch = switch
        self.state = PipeState(switch.state, pipe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._switch, name)


def _in_pipe(p: Pipeline, pipe: int) -> Pipeline:
    return replace(p, switch=_PipeSwitch(p.switch, pipe))


def pipe_updates(p: Pipeline) -> dict[int, Iterator[p4r.Update]]:
    """Return the updates, by pipe, that make the other pipes of a chip differ from the first."""
    return {pipe: _updates_of_pipe(p, pipe) for pipe in range(1, len(p.state.scopes.pipes))}


def _updates_of_pipe(whole: Pipeline, pipe: int) -> Iterator[p4r.Update]:
    p, scopes = _in_pipe(whole, pipe), whole.state.scopes

    def own(names: Mapping[int, Any]) -> list[int]:
        """Return the ids of what this pipe has and no pipe before it: the first group's is saved
        with the switch's."""
        return [
            number for number, known in names.items()
            if any(pipes[0] == pipe for pipes in scopes.groups(known.name)[1:])
        ]  # fmt: skip

    catalog = p.catalog
    queries = [
        *(p4r.Entity(action_profile_member=p4r.ActionProfileMember(action_profile_id=i))
          for i in own(catalog.profiles)),
        *(p4r.Entity(action_profile_group=p4r.ActionProfileGroup(action_profile_id=i))
          for i in own(catalog.profiles)),
        *(p4r.Entity(table_entry=p4r.TableEntry(
            table_id=i, counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig()))
          for i in own(catalog.tables)),
    ]  # fmt: skip
    for entity in _entities(p, queries):
        if not (entity.HasField("table_entry") and entity.table_entry.is_const):
            yield p4r.Update(type=p4r.Update.INSERT, entity=entity)
    cells = [
        *(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=i)) for i in own(catalog.counters)),
        *(p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=i)) for i in own(catalog.meters)),
        *(
            p4r.Entity(value_set_entry=p4r.ValueSetEntry(value_set_id=i))
            for i in own(catalog.value_sets)
        ),
    ]
    tables = set(own(catalog.tables))
    cells += [q for q in _changed_defaults(p) if q.table_entry.table_id in tables]
    for entity in _entities(p, cells):
        if not _is_zero(entity):
            yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)
    registers = [p4r.Entity(register_entry=p4r.RegisterEntry())]
    for entity, first in zip(_entities(p, registers), _entities(whole, registers), strict=True):
        if entity != first:
            yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)


# -- the updates of a pipeline --------------------------------------------------------------------


def _updates(old: Pipeline) -> Iterator[p4r.Update]:
    """Yield the updates that make a fresh pipeline equal.

    Objects in their initial state need none.
    """
    old = replace(old, whole=True)
    for entity in _entities(old, _INSERTED):
        if not (entity.HasField("table_entry") and entity.table_entry.is_const):
            yield p4r.Update(type=p4r.Update.INSERT, entity=entity)
    for entity in _entities(old, _MODIFIED):
        if not _is_zero(entity) or _has_initial_value(old, entity):
            yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)
    for entity in _entities(old, _changed_defaults(old)):
        yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def _is_zero(entity: p4r.Entity) -> bool:
    match entity.WhichOneof("entity"):
        case "counter_entry":
            data = entity.counter_entry.data
            return not (data.packet_count or data.byte_count)
        case "meter_entry":
            return not entity.meter_entry.HasField("config")
        case "register_entry":
            cell = entity.register_entry.data
            number = cell.bitstring or cell.enum_value
            return not (cell.bool or cell.enum or cell.error or any(number))
    return False


def _has_initial_value(old: Pipeline, entity: p4r.Entity) -> bool:
    """Return True for a cell of a register whose cells are not zero at the start."""
    if not entity.HasField("register_entry"):
        return False
    name = old.catalog.registers[entity.register_entry.register_id].name
    return bool(old.state.registers[name].initial)


def _changed_defaults(old: Pipeline) -> list[p4r.Entity]:
    """Return queries of the default entries that differ from the source's."""
    queries = []
    for info in old.catalog.tables.values():
        source = info.table.default
        if old.state.tables[info.name].default != ActionData(
            source.index, tuple(map(int, source.args))
        ):
            query = p4r.TableEntry(table_id=info.id, is_default_action=True)
            query.counter_data.SetInParent()
            query.meter_config.SetInParent()
            queries.append(p4r.Entity(table_entry=query))
    return queries


def _entities(p: Pipeline, queries: Sequence[p4r.Entity]) -> Iterator[p4r.Entity]:
    for response in read(p, queries):
        yield from response.entities
