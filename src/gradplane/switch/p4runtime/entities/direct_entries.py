"""DirectCounterEntry and DirectMeterEntry: the counter or meter of a table entry, on its own."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.catalog import TableInfo, find
from gradplane.switch.p4runtime.entities.counter_data import (
    check_zero,
    counter_values,
    show_colours,
    show_counter,
    show_meter_config,
)
from gradplane.switch.p4runtime.entities.direct_parts import Direct
from gradplane.switch.p4runtime.entities.table_entries import find_entries, show_key
from gradplane.switch.p4runtime.pipeline import Pipeline, only_modify
from gradplane.switch.p4runtime.status_errors import RpcError, invalid

_Found = Iterator[tuple[p4r.TableEntry, Direct]]


def write_direct_counter(p: Pipeline, kind: int, message: p4r.DirectCounterEntry) -> None:
    info = _table(p, message.table_entry, "counter")
    only_modify(kind, f"table {info.name}: a direct counter")
    _, direct = _one(p, info, message.table_entry)
    if message.HasField("data"):
        packets, nbytes = counter_values(message.data, f"table {info.name}")
        p.store.counters(direct.counter).write(0, packets=packets, bytes=nbytes)


def write_direct_meter(p: Pipeline, kind: int, message: p4r.DirectMeterEntry) -> None:
    info = _table(p, message.table_entry, "meter")
    only_modify(kind, f"table {info.name}: a direct meter")
    check_zero(message.counter_data, f"table {info.name}")
    _, direct = _one(p, info, message.table_entry)
    meter = info.table.meter
    assert meter is not None
    config = message.config if message.HasField("config") else None
    direct.set_meter(p, meter.name, config, message.HasField("counter_data"))


def read_direct_counters(
    p: Pipeline, query: p4r.DirectCounterEntry
) -> Iterator[p4r.DirectCounterEntry]:
    for key, direct in _found(p, query.table_entry, "counter"):
        data = show_counter(direct.counter.packets, direct.counter.bytes)
        yield p4r.DirectCounterEntry(table_entry=key, data=data)


def read_direct_meters(p: Pipeline, query: p4r.DirectMeterEntry) -> Iterator[p4r.DirectMeterEntry]:
    for key, direct in _found(p, query.table_entry, "meter"):
        shown = p4r.DirectMeterEntry(table_entry=key)
        if direct.meter.config is not None:
            shown.config.CopyFrom(show_meter_config(direct.meter.config))
        if query.HasField("counter_data"):
            shown.counter_data.CopyFrom(show_colours(direct.meter.counts))
        yield shown


def _found(p: Pipeline, query: p4r.TableEntry, what: str) -> _Found:
    if query.table_id == 0:
        for info in p.catalog.tables.values():
            if getattr(info.table, what) is not None:
                yield from _entries(p, info, query)
        return
    info = _table(p, query, what)
    if query.match or query.is_default_action:
        yield _one(p, info, query)
    else:
        yield from _entries(p, info, query)


def _entries(p: Pipeline, info: TableInfo, query: p4r.TableEntry) -> _Found:
    for entry in find_entries(p, info, query):
        if query.priority in (0, entry.priority):
            yield show_key(info, entry), Direct(entry.counter, entry.meter)


def _one(p: Pipeline, info: TableInfo, key: p4r.TableEntry) -> tuple[p4r.TableEntry, Direct]:
    """Return the entry of this key; an empty match stands for the entry that matches anything."""
    table = p.state.tables[info.name]
    if key.is_default_action:
        shown = p4r.TableEntry(table_id=info.id, is_default_action=True)
        return shown, Direct(table.default_counter, table.default_meter)
    entries = find_entries(p, info, key)
    if not key.match:
        entries = [e for e in entries if not any(e.matches) and e.priority == key.priority]
    if not entries:
        raise RpcError("NOT_FOUND", f"table {info.name}: it has no entry with this match")
    return show_key(info, entries[0]), Direct(entries[0].counter, entries[0].meter)


def _table(p: Pipeline, key: p4r.TableEntry, what: str) -> TableInfo:
    info = find(p.catalog.tables, key.table_id, "table")
    if getattr(info.table, what) is None:
        raise invalid(f"table {info.name}: it has no direct {what}")
    return info
