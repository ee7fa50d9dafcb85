"""The counter and meter of one table entry, as parts of a TableEntry message."""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import TableInfo
from gradplane.switch.p4runtime.entities.numbers import (
    counter_values,
    no_color_counters,
    read_meter_config,
    show_counter,
    show_meter_config,
)
from gradplane.switch.p4runtime.errors import RpcError
from gradplane.switch.p4runtime.pipeline import Pipeline, Undo
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.meters import MeterCell


@dataclass(frozen=True, slots=True)
class Direct:
    """The direct resources of an entry, or of a table's default entry."""

    counter: Count
    meter: MeterCell

    def set_counter(self, packets: int, nbytes: int) -> Undo:
        counter, old = self.counter, (self.counter.packets, self.counter.bytes)
        counter.packets, counter.bytes = packets, nbytes

        def undo() -> None:
            counter.packets, counter.bytes = old

        return undo

    def set_meter(self, p: Pipeline, name: str, message: p4r.MeterConfig | None) -> Undo:
        """No message: every packet is green."""
        old, now = self.meter.config, p.state.clock()
        config = None if message is None else read_meter_config(p, name, message)
        self.meter.configure(config, now)
        return lambda: self.meter.configure(old, now)


def check_direct(info: TableInfo, message: p4r.TableEntry) -> None:
    """Refuse what the table does not have."""
    given = {part.name for part, _ in message.ListFields()}
    for part, name in (("counter_data", "counter"), ("meter_config", "meter")):
        if part in given and getattr(info.table, name) is None:
            raise RpcError(
                "INVALID_ARGUMENT",
                f"table {info.name}: {part} is set, but the table has no direct {name}",
            )
    if "meter_counter_data" in given:
        raise no_color_counters(f"table {info.name}")


def write_direct(
    p: Pipeline, info: TableInfo, direct: Direct, message: p4r.TableEntry, insert: bool = False
) -> Undo:
    """Counter: as given, else 0 for a new entry and unchanged for others. Meter: as given."""
    undo: list[Undo] = []
    if message.HasField("counter_data"):
        undo.append(direct.set_counter(*counter_values(message.counter_data, f"table {info.name}")))
    elif insert:
        undo.append(direct.set_counter(0, 0))
    if info.table.meter is not None:
        config = message.meter_config if message.HasField("meter_config") else None
        undo.append(direct.set_meter(p, info.table.meter.name, config))

    def undo_all() -> None:
        for step in reversed(undo):
            step()

    return undo_all


def show_direct(
    info: TableInfo, direct: Direct, query: p4r.TableEntry, shown: p4r.TableEntry
) -> None:
    """Tell counter and meter where the query asks and the table has them."""
    if query.HasField("counter_data") and info.table.counter is not None:
        shown.counter_data.CopyFrom(show_counter(direct.counter.packets, direct.counter.bytes))
    if query.HasField("meter_config") and direct.meter.config is not None:
        shown.meter_config.CopyFrom(show_meter_config(direct.meter.config))
