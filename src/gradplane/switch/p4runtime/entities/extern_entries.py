"""Entities of externs: cells of counters, meters and registers; value sets; digests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gradplane._p4runtime import p4r
from gradplane.switch.control.cells import Cells
from gradplane.switch.p4runtime.catalog import Extern, find
from gradplane.switch.p4runtime.entities import packed_cells
from gradplane.switch.p4runtime.entities.counter_data import (
    check_zero,
    counter_values,
    indices,
    read_meter_config,
    show_colours,
    show_counter,
    show_meter_config,
)
from gradplane.switch.p4runtime.entities.field_matches import read_matches, show_matches
from gradplane.switch.p4runtime.entities.packed_cells import PackedCells
from gradplane.switch.p4runtime.p4data import read_cell, show_data, unpack_cell
from gradplane.switch.p4runtime.pipeline import Pipeline, only_modify
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.match_fields import Match


def write_counter(p: Pipeline, kind: int, message: p4r.CounterEntry) -> None:
    extern = find(p.catalog.counters, message.counter_id, "counter")
    only_modify(kind, f"counter {extern.name}")
    counter = p.state.counters[extern.name]
    cells = indices(extern, "counter", message.index if message.HasField("index") else None)
    if not message.HasField("data"):
        return
    packets, nbytes = counter_values(message.data, f"counter {extern.name}")
    write_cells(p.store.counters(counter), cells, packets=packets, bytes=nbytes)


def write_cells(cells: Cells, chosen: range, **values: Any) -> None:
    """Write the same to one cell, or to all."""
    if len(chosen) > 1:
        cells.fill(**values)
    elif chosen:
        cells.write(chosen[0], **values)


def read_counters(p: Pipeline, query: p4r.CounterEntry) -> Iterator[p4r.CounterEntry | PackedCells]:
    """Yield many cells packed, or few, all in one message, which changes with the next one."""
    index = query.index if query.counter_id and query.HasField("index") else None
    for extern in _chosen(p.catalog.counters, query.counter_id, "counter"):
        counter = p.state.counters[extern.name]
        chosen = indices(extern, "counter", index)
        if packed := packed_cells.parts(chosen):
            for part in packed:
                yield packed_cells.pack(extern.id, part, *counter.counts(part))
            continue
        shown = p4r.CounterEntry(counter_id=extern.id)
        place, data = shown.index, shown.data
        place.SetInParent()
        data.SetInParent()
        for i in chosen:
            place.index = i
            data.CopyFrom(show_counter(*counter.read(i)))
            yield shown


def write_meter(p: Pipeline, kind: int, message: p4r.MeterEntry) -> None:
    extern = find(p.catalog.meters, message.meter_id, "meter")
    only_modify(kind, f"meter {extern.name}")
    check_zero(message.counter_data, f"meter {extern.name}")
    meters = p.store.meters(p.state.meters[extern.name])
    chosen = indices(extern, "meter", message.index if message.HasField("index") else None)
    given = message.HasField("config")
    config = read_meter_config(p, extern.name, message.config) if given else None
    write_cells(meters, chosen, config=config, clear=message.HasField("counter_data"))


def read_meters(p: Pipeline, query: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
    index = query.index if query.meter_id and query.HasField("index") else None
    for extern in _chosen(p.catalog.meters, query.meter_id, "meter"):
        meter = p.state.meters[extern.name]
        for i in indices(extern, "meter", index):
            shown = p4r.MeterEntry(meter_id=extern.id, index=p4r.Index(index=i))
            config = meter.read(i)
            if config is not None:
                shown.config.CopyFrom(show_meter_config(config))
            if query.HasField("counter_data"):
                shown.counter_data.CopyFrom(show_colours(meter.counts(i)))
            yield shown


def write_register(p: Pipeline, kind: int, message: p4r.RegisterEntry) -> None:
    extern = find(p.catalog.registers, message.register_id, "register")
    only_modify(kind, f"register {extern.name}")
    register = p.state.registers[extern.name]
    cells = indices(extern, "register", message.index if message.HasField("index") else None)
    assert extern.data is not None
    assert extern.inside is not None
    where = f"register {extern.name}"
    value = read_cell(extern.data, extern.inside, message.data, where, p.catalog)
    write_cells(p.store.registers(register), cells, value=value)


def read_registers(p: Pipeline, query: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
    index = query.index if query.register_id and query.HasField("index") else None
    for extern in _chosen(p.catalog.registers, query.register_id, "register"):
        register = p.state.registers[extern.name]
        assert extern.data is not None
        assert extern.inside is not None
        for i in indices(extern, "register", index):
            value = unpack_cell(extern.inside, register.read(i))
            data = show_data(extern.data, value, p.catalog)
            yield p4r.RegisterEntry(register_id=extern.id, index=p4r.Index(index=i), data=data)


def _chosen(externs: Mapping[int, Extern], number: int, what: str) -> Collection[Extern]:
    """Return the extern of this id, or all for id 0."""
    return [find(externs, number, what)] if number else externs.values()


# -- valueSetEntry: the members of parser value sets ----------------------------------------------


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
    p.store.values(p.state.value_sets[info.name]).replace(members)


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


# -- digestEntry: enables a digest and sets how its messages are gathered -------------------------


def write_digest(p: Pipeline, kind: int, message: p4r.DigestEntry) -> None:
    extern = find(p.catalog.digests, message.digest_id, "digest")
    digests = p.store.digests
    there = digests.has(extern.name)
    if kind == p4r.Update.INSERT and there:
        pi_text = f"Digest {extern.id} already configured"
        raise RpcError("ALREADY_EXISTS", f"digest {extern.name} is enabled", pi_text)
    if kind != p4r.Update.INSERT and not there:
        what = f"digest {extern.name} is not enabled; INSERT enables it"
        raise RpcError("NOT_FOUND", what, f"Digest {extern.id} not configured")
    if kind == p4r.Update.DELETE:
        digests.delete(extern.name)
        return
    _check(extern.name, message.config)
    digests.write(extern.name, **{f.name: getattr(message.config, f.name) for f in digests.fields})


def read_digests(p: Pipeline, query: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
    if query.digest_id:
        find(p.catalog.digests, query.digest_id, "digest")
    numbers = {extern.name: number for number, extern in p.catalog.digests.items()}
    for name, config in p.store.digests.records():
        if query.digest_id in (0, numbers[name]):
            shown = p4r.DigestEntry.Config(**config)
            yield p4r.DigestEntry(digest_id=numbers[name], config=shown)


def _check(name: str, config: p4r.DigestEntry.Config) -> None:
    for part in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
        if getattr(config, part) < 0:
            raise invalid(f"digest {name}: {part} {getattr(config, part)} is below 0")
