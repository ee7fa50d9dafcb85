"""The state of a pipeline as updates: RECONCILE_AND_COMMIT carries it over, commands save it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4r
from google.protobuf.json_format import MessageToJson, Parse, ParseError

from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.entries import ActionData

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
        _restore(new, list(_updates(old)), set(old.state.tables))
    except RpcError as error:
        what = f"the new program has no place for state of the old one: {error.message}"
        raise RpcError("INVALID_ARGUMENT", what) from error
    _keep_meters_and_times(old, new)


def saved_state(p: Pipeline) -> str:
    """Return the state of a pipeline as a WriteRequest in JSON; the caller holds its lock.

    That is all that a controller can write. Tokens in meters' buckets and times are not in it.
    """
    state = p4r.WriteRequest(updates=_updates(p))
    text: str = MessageToJson(state, preserving_proto_field_name=True)
    return text


def load_state(new: Pipeline, text: str) -> None:
    """Write saved state into the fresh `new`. Raises RpcError INVALID_ARGUMENT."""
    request = p4r.WriteRequest()
    try:
        Parse(text, request)
    except ParseError as error:
        raise RpcError("INVALID_ARGUMENT", f"this is no saved state: {error}") from error
    try:
        _restore(new, request.updates, set(new.state.tables))
    except RpcError as error:
        what = f"the program has no place for the saved state: {error.message}"
        raise RpcError("INVALID_ARGUMENT", what) from error


def _restore(new: Pipeline, updates: Sequence[p4r.Update], tables: set[str]) -> None:
    """Apply updates in place of the source's entries in `tables`; raise RpcError for the first."""
    for name, table in new.state.tables.items():
        if name in tables and not table.table.const_entries:
            table.clear()
    try:
        write(new, updates)
    except BatchError as error:
        first = next(e for e in error.errors if e is not None)
        raise first from error


def _keep_meters_and_times(old: Pipeline, new: Pipeline) -> None:
    """Copy what cannot be written: tokens in buckets, counts per colour, times of the last hit."""
    for name, meter in new.state.meters.items():
        former = old.state.meters.get(name)
        if former is not None and former.size == meter.size:
            meter.memory[:] = former.memory
    for name, table in new.state.tables.items():
        if name not in old.state.tables:
            continue
        before = old.state.tables[name]
        table.default_meter.restore(before.default_meter.cells)
        for entry in before.entries():
            found = table.find(entry.matches, entry.priority)
            if found is not None:
                found.meter.restore(entry.meter.cells)
                found.last_hit_ns = entry.last_hit_ns
                found.idle_reported_ns = entry.idle_reported_ns


def _updates(old: Pipeline) -> Iterator[p4r.Update]:
    """Yield the updates that make a fresh pipeline equal.

    Objects in their initial state need none.
    """
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
