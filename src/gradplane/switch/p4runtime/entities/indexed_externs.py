"""CounterEntry, MeterEntry and RegisterEntry: cells of indexed externs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import Extern, find
from gradplane.switch.p4runtime.entities.counter_data import (
    check_zero,
    counter_values,
    indices,
    read_meter_config,
    show_colours,
    show_counter,
    show_meter_config,
)
from gradplane.switch.p4runtime.p4data import read_cell, show_data, unpack_cell
from gradplane.switch.p4runtime.pipeline import Pipeline, only_modify


def write_counter(p: Pipeline, kind: int, message: p4r.CounterEntry) -> None:
    extern = find(p.catalog.counters, message.counter_id, "counter")
    only_modify(kind, f"counter {extern.name}")
    counter = p.state.counters[extern.name]
    cells = indices(extern, "counter", message.index if message.HasField("index") else None)
    if not message.HasField("data"):
        return
    packets, nbytes = counter_values(message.data, f"counter {extern.name}")
    for i in cells:
        p.store.cells.set_counter(counter, i, packets, nbytes)


def read_counters(p: Pipeline, query: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
    index = query.index if query.counter_id and query.HasField("index") else None
    for extern in _chosen(p.catalog.counters, query.counter_id, "counter"):
        counter = p.state.counters[extern.name]
        for i in indices(extern, "counter", index):
            data = show_counter(*counter.read(i))
            yield p4r.CounterEntry(counter_id=extern.id, index=p4r.Index(index=i), data=data)


def write_meter(p: Pipeline, kind: int, message: p4r.MeterEntry) -> None:
    extern = find(p.catalog.meters, message.meter_id, "meter")
    only_modify(kind, f"meter {extern.name}")
    check_zero(message.counter_data, f"meter {extern.name}")
    meter, now = p.state.meters[extern.name], p.state.clock()
    chosen = indices(extern, "meter", message.index if message.HasField("index") else None)
    given = message.HasField("config")
    config = read_meter_config(p, extern.name, message.config) if given else None
    for i in chosen:
        p.store.cells.set_meter(meter.cell(i), config, now, message.HasField("counter_data"))


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
    where, program = f"register {extern.name}", p.catalog.program
    value = read_cell(extern.data, extern.inside, message.data, where, program)
    for i in cells:
        p.store.cells.set_register(register, i, value)


def read_registers(p: Pipeline, query: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
    index = query.index if query.register_id and query.HasField("index") else None
    for extern in _chosen(p.catalog.registers, query.register_id, "register"):
        register = p.state.registers[extern.name]
        assert extern.data is not None
        assert extern.inside is not None
        for i in indices(extern, "register", index):
            value = unpack_cell(extern.inside, register.read(i))
            data = show_data(extern.data, value, p.catalog.program)
            yield p4r.RegisterEntry(register_id=extern.id, index=p4r.Index(index=i), data=data)


def _chosen(externs: Mapping[int, Extern], number: int, what: str) -> Collection[Extern]:
    """Return the extern of this id, or all for id 0."""
    return [find(externs, number, what)] if number else externs.values()
