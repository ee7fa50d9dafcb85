"""Counters, meters, registers and filters as data fields: those of arrays and of table entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gradplane._p4runtime import p4i
from gradplane.switch.bfruntime.codec import Data, invalid_for
from gradplane.switch.bfruntime.schema import DataField, TableSchema, data_fields
from gradplane.switch.bfruntime.tables.control_table import Attribute, ControlTable, Scope
from gradplane.switch.control.cells import SeenCells
from gradplane.switch.control.kind import Record
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.entries import Count, Entry
from gradplane.switch.runtime.filters import Filter, FilterConfig
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import MeterCell, MeterConfig

PACKETS, BYTES = "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"
COUNTS = {"packets": PACKETS, "bytes": BYTES}


def counter_fields(spec: p4i.CounterSpec) -> tuple[DataField, ...]:
    """Return the fields of a counter: bytes, packets or both."""
    left_out = {p4i.CounterSpec.PACKETS: BYTES, p4i.CounterSpec.BYTES: PACKETS}.get(spec.unit)
    return data_fields("\n".join(f"data . {n} uint64~0" for n in (BYTES, PACKETS) if n != left_out))


# -- registers ------------------------------------------------------------------------------------


class CellFields:
    """The data fields of a register's cells, each with a list of values: one a pipe. The number of
    a struct is its fields, the first one in the upper bits."""

    def __init__(self, schema: TableSchema, register: ir.ExternInstance) -> None:
        self._schema = schema
        self._fields = [f for f in schema.data if f.a_value_a_pipe]
        t = register.type_args[0]
        widths = [max(1, f.type.bits) for f in self._fields]
        self._shifts = [sum(widths[i + 1 :]) for i in range(len(widths))]
        self._widths = widths
        whole = bit_width(t) or sum(widths)
        self._total = whole
        self._signed = isinstance(t, Bits) and t.signed

    def given(self, values: Mapping[str, Any]) -> bool:
        """Return whether values for a cell are given."""
        return any(f.name in values for f in self._fields)

    def changed(self, values: Mapping[str, Any], former: Sequence[int]) -> list[int]:
        """Return the cell's new value in each of the pipes that data are for, from its former ones.

        One value is for all pipes. A field that is not given keeps its value. Raises RpcError.
        """
        return [self._value(values, pipe, old) for pipe, old in enumerate(former)]

    def _value(self, values: Mapping[str, Any], pipe: int, former: int) -> int:
        found = former & ((1 << self._total) - 1)
        for f, shift, width in zip(self._fields, self._shifts, self._widths, strict=True):
            given = values.get(f.name)
            if given is None:
                continue
            if len(given) != 1 and pipe >= len(given):
                what = f"data field {f.name}: {len(given)} values, but pipe {pipe} needs one"
                raise invalid_for(self._schema, what)
            number = int(given[0] if len(given) == 1 else given[pipe])
            mask = ((1 << width) - 1) << shift
            found = found & ~mask | number << shift & mask
        if self._signed and found >> (self._total - 1):
            found -= 1 << self._total
        return found

    def fields(self, cells: Sequence[int]) -> dict[str, list[Any]]:
        """Return the fields of a cell, from its value in each pipe."""
        out: dict[str, list[Any]] = {}
        for f, shift, width in zip(self._fields, self._shifts, self._widths, strict=True):
            numbers = [cell >> shift & (1 << width) - 1 for cell in cells]
            out[f.name] = [bool(n) for n in numbers] if f.type.name == "bool" else numbers
        return out


def seen(cells: SeenCells, index: int, scope: Scope) -> Record:
    """Return a cell as the driver has it; a request to read the chip brings it up to date."""
    if scope.from_hw:
        cells.sync(index)
    return cells.seen(index)


def shown_counts(cells: SeenCells, index: int, scope: Scope) -> dict[str, int]:
    """Return the fields of a counter's cell."""
    found = seen(cells, index, scope)
    return {name: found[of] for of, name in COUNTS.items()}


# -- meters ---------------------------------------------------------------------------------------

UNLIMITED = (1 << 64) - 1
"""The default of a meter's rates: every packet is green."""
_KBIT = 125  # bytes
_MOST = (1 << 62) - 1  # of a rate: above it a meter makes every packet green
_ADJUSTMENT_BITS = 14
ADJUSTMENT = "byte_count_adj"
"""The field in messages of the attribute MeterByteCountAdjust."""


def meter_fields(spec: p4i.MeterSpec) -> tuple[DataField, ...]:
    """Return the fields of a meter: rates in kbit/s and bursts in kbit, or packets."""
    names = _meter_names(spec.unit == p4i.MeterSpec.PACKETS)
    return data_fields("\n".join(f"data . {name} uint64~{UNLIMITED}" for name in names))


def _meter_names(packets: bool) -> list[str]:
    """Return the names of the committed rate, peak rate, committed burst and peak burst."""
    rate, burst = ("PPS", "PKTS") if packets else ("KBPS", "KBITS")
    pairs = (("CIR", rate), ("PIR", rate), ("CBS", burst), ("PBS", burst))
    return [f"$METER_SPEC_{part}_{unit}" for part, unit in pairs]


def _names(schema: TableSchema) -> tuple[list[str], int]:
    """Return the names of a meter's fields, and the bytes or packets that are one of them."""
    packets = "$METER_SPEC_CIR_PPS" in {f.name for f in schema.data}
    return _meter_names(packets), 1 if packets else _KBIT


def meter_values(schema: TableSchema, config: MeterConfig | None) -> dict[str, int]:
    """Return the fields of a meter; without a config its rates are unlimited."""
    names, unit = _names(schema)
    if config is None:
        return dict.fromkeys(names, UNLIMITED)
    numbers = (config.cir, config.pir, config.cburst, config.pburst)
    return {n: UNLIMITED if x >= _MOST else x // unit for n, x in zip(names, numbers, strict=True)}


def meter_config(
    schema: TableSchema, values: Mapping[str, Any], former: MeterConfig | None
) -> MeterConfig | None:
    """Return the config for given fields; the others keep their values. Raises RpcError."""
    names, unit = _names(schema)
    whole = {**meter_values(schema, former), **values}
    wanted = [whole[name] for name in names]
    if all(x == UNLIMITED for x in wanted):
        return None
    cir, pir, cbs, pbs = (_MOST if x * unit > _MOST else x * unit for x in wanted)
    if pir < cir:
        what = f"the peak rate {whole[names[1]]} is below the committed rate {whole[names[0]]}"
        raise invalid_for(schema, what)
    return MeterConfig(cir, cbs, pir, pbs)


def adjustment_attribute(table: ControlTable, adjustment: ByteAdjustment) -> Attribute:
    """Return the attribute of the bytes that are added to what a table's meter measures."""

    def show(message: Any) -> None:
        message.byte_count_adj.byte_count_adjust = adjustment.bytes or 0  # 0: the program's

    def set(message: Any) -> None:
        number, most = message.byte_count_adj.byte_count_adjust, 1 << _ADJUSTMENT_BITS - 1
        if not -most <= number < most:
            raise table.invalid(f"byte_count_adjust {number} is not within {-most} to {most - 1}")
        table.store.adjustments.set(adjustment, number)

    return Attribute(show, set)


# -- filters --------------------------------------------------------------------------------------

FILTER_FIELDS = {"lpf": data_fields("""
data . $LPF_SPEC_TYPE string!:RATE,SAMPLE
data . $LPF_SPEC_GAIN_TIME_CONSTANT_NS float!
data . $LPF_SPEC_DECAY_TIME_CONSTANT_NS float!
data . $LPF_SPEC_OUT_SCALE_DOWN_FACTOR uint32!
"""), "wred": data_fields("""
data . $WRED_SPEC_TIME_CONSTANT_NS float!
data . $WRED_SPEC_MIN_THRESH_CELLS uint32!
data . $WRED_SPEC_MAX_THRESH_CELLS uint32!
data . $WRED_SPEC_MAX_PROBABILITY float!
""")}  # fmt: skip
"""The data fields of low-pass filters and of weighted random early drop."""
_TYPE = "$LPF_SPEC_TYPE"
_FILTER_FIELDS: Mapping[str, Mapping[str, str]] = {
    "lpf": {
        _TYPE: "rate", "$LPF_SPEC_GAIN_TIME_CONSTANT_NS": "gain",
        "$LPF_SPEC_DECAY_TIME_CONSTANT_NS": "decay", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR": "scale",
    },
    "wred": {
        "$WRED_SPEC_TIME_CONSTANT_NS": "gain", "$WRED_SPEC_MIN_THRESH_CELLS": "low",
        "$WRED_SPEC_MAX_THRESH_CELLS": "high", "$WRED_SPEC_MAX_PROBABILITY": "most",
    },
}  # fmt: skip
"""The part of a config that each of them is. Early drop has one time constant for both ways."""
_NO_FILTER: Mapping[str, Any] = {
    "gain": 0.0, "decay": 0.0, "rate": False, "scale": 0, "low": 0, "high": 0, "most": 0.0,
}  # fmt: skip


def filter_values(kind: str, config: FilterConfig | None) -> dict[str, Any]:
    """Return the fields of a filter; kind: of its instance."""
    values = {
        name: _NO_FILTER[part] if config is None else getattr(config, part)
        for name, part in _FILTER_FIELDS[kind.removeprefix("direct_")].items()
    }
    if _TYPE in values:
        values[_TYPE] = "RATE" if values[_TYPE] else "SAMPLE"
    return values


def filter_config(
    kind: str, given: Mapping[str, Any], former: FilterConfig | None
) -> FilterConfig | None:
    """Return the config for given fields, the former one if none is given; raises TableError if it
    is none."""
    known = filter_values(kind, former)
    if not known.keys() & given.keys():
        return former
    values = {**known, **given}
    parts = {part: values[n] for n, part in _FILTER_FIELDS[kind.removeprefix("direct_")].items()}
    if "rate" in parts:
        parts["rate"] = parts["rate"] == "RATE"
    return FilterConfig(**{"decay": parts["gain"], **parts})


# -- table entries --------------------------------------------------------------------------------


class Parts(NamedTuple):
    """The parts of an entry, or of the default entry, beside its action."""

    counter: Count
    meter: MeterCell
    register: Register | None
    filter: Filter | None


def parts_of(entry: Entry) -> Parts:
    """Return the parts of an entry."""
    return Parts(entry.counter, entry.meter, entry.register, entry.filter)


def default_parts(table: MatchTable) -> Parts:
    """Return the parts of a table's default entry."""
    return Parts(
        table.default_counter, table.default_meter, table.default_register, table.default_filter
    )


class EntryParts:
    """Reads and sets the parts of a table's entries for a client. pipes: returns the pipes that
    share the table."""

    def __init__(
        self, owner: ControlTable, table: MatchTable, pipes: Callable[[], Sequence[int]]
    ) -> None:
        self._schema = owner.schema
        self._store = owner.store
        self._table = table
        self._pipes = pipes
        register, filter = table.table.register, table.table.filter
        self._cells = None if register is None else CellFields(owner.schema, register)
        self._filter_kind = "" if filter is None else filter.kind

    def set(self, parts: Parts, values: Mapping[str, Any]) -> None:
        """Set the parts for which values are given. Raises RpcError or TableError."""
        store = self._store
        if PACKETS in values or BYTES in values:
            given = {name: values[of] for name, of in COUNTS.items() if of in values}
            store.counters(parts.counter).write(0, **given)
        if any(name.startswith("$METER_SPEC") for name in values):
            config = meter_config(self._schema, values, parts.meter.config)
            store.meters(parts.meter).write(0, config=config)
        if parts.register is not None and self._cells is not None and self._cells.given(values):
            self._set_register(parts.register, self._cells, values)
        if parts.filter is not None:
            former = parts.filter.read(0)
            changed = filter_config(self._filter_kind, values, former)
            if changed is not former:
                store.filters(parts.filter).write(0, config=changed)

    def _set_register(self, cell: Register, fields: CellFields, values: Mapping[str, Any]) -> None:
        pipes = self._pipes()
        changed = fields.changed(values, [cell.read(pipe) for pipe in pipes])
        for pipe, value in zip(pipes, changed, strict=True):
            self._store.registers(cell).write(pipe, value=value)

    def sync(self, parts: Parts, counters: bool) -> None:
        """See the counter, or the register, as it is now."""
        if counters:
            self._store.counters(parts.counter).sync()
        elif parts.register is not None:
            self._store.registers(parts.register).sync()

    def show(self, data: Data, scope: Scope, parts: Parts) -> None:
        """Add the parts that the table has, in a request's pipes, to an entry's data."""
        if self._table.table.counter is not None:
            data.values.update(shown_counts(self._store.counters(parts.counter), 0, scope))
        if self._table.table.meter is not None:
            data.values.update(meter_values(self._schema, parts.meter.config))
        if parts.register is not None and self._cells is not None:
            pipes = [pipe for pipe in self._pipes() if pipe in scope.pipes]
            cells = self._store.registers(parts.register)
            values = [seen(cells, pipe, scope)["value"] for pipe in pipes]
            data.values.update(self._cells.fields(values))
        if parts.filter is not None:
            data.values.update(filter_values(self._filter_kind, parts.filter.read(0)))
