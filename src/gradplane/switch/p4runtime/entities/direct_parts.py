"""The counter and meter of one table entry, as parts of a TableEntry message."""

from __future__ import annotations

from dataclasses import dataclass

from gradplane._p4runtime import p4r
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import nested
from gradplane.switch.p4runtime.catalog import TableInfo
from gradplane.switch.p4runtime.entities.counter_data import (
    check_zero,
    counter_values,
    read_meter_config,
    show_colours,
    show_counter,
    show_meter_config,
)
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.entries import Count, Entry
from gradplane.switch.runtime.meters import MeterCell

_PARTS = {"counter_data": "counter", "meter_config": "meter", "meter_counter_data": "meter"}


@dataclass(frozen=True, slots=True)
class Direct:
    """The direct resources of an entry, or of a table's default entry."""

    counter: Count
    meter: MeterCell

    def set_meter(
        self, p: Pipeline, name: str, message: p4r.MeterConfig | None, clear: bool
    ) -> None:
        """Configure the meter; without a message every packet is green.

        `clear`: reset the counts too.
        """
        config = None if message is None else read_meter_config(p, name, message)
        p.store.meters(self.meter).write(0, config=config, clear=clear)


def check_direct(p: Pipeline, info: TableInfo, message: p4r.TableEntry) -> None:
    """Refuse direct resources that the table does not have, and invalid values."""
    given = {part.name for part, _ in message.ListFields()}
    for part, name in _PARTS.items():
        if part in given and getattr(info.table, name) is None:
            raise RpcError(
                "INVALID_ARGUMENT",
                f"table {info.name}: {part} is set, but the table has no direct {name}",
            )
    for part, name in _PARTS.items():
        if part in given and not _executed(p, info, name, message.action):
            raise RpcError(
                "INVALID_ARGUMENT",
                f"table {info.name}: {part} is set, but the action does not execute the table's"
                f" direct {name}",
            )
    if "counter_data" in given:
        counter_values(message.counter_data, f"table {info.name}")
    if "meter_counter_data" in given:
        check_zero(message.meter_counter_data, f"table {info.name}")
    if "meter_config" in given and info.table.meter is not None:
        read_meter_config(p, info.table.meter.name, message.meter_config)


def _executed(p: Pipeline, info: TableInfo, part: str, message: p4r.TableAction) -> bool:
    """Return whether an entry's action executes its counter or meter (section "Direct resources").

    Where every hit does, this one's does. Unknown actions, members and groups are judged elsewhere.
    """
    on_call = p.switch.architecture.implementation.direct.on_call
    if not on_call or message.WhichOneof("type") != "action":
        return True
    choice = info.actions.by_id.get(message.action.action_id)
    if choice is None:
        return True
    wanted, action = getattr(info.table, part), info.table.actions[choice.index].action
    return any(
        isinstance(stmt, ir.CallExtern) and stmt.instance is wanted for stmt in nested(action.body)
    )


def write_direct(
    p: Pipeline, info: TableInfo, direct: Direct, message: p4r.TableEntry, insert: bool = False
) -> None:
    """Write an entry's counter and meter.

    The counter is set as given, else to 0 for a new entry and not changed for others. The meter is
    set as given; its counts per colour become 0 for a new entry and where they are given.
    """
    if message.HasField("counter_data"):
        packets, nbytes = counter_values(message.counter_data, f"table {info.name}")
        p.store.counters(direct.counter).write(0, packets=packets, bytes=nbytes)
    elif insert:
        p.store.counters(direct.counter).clear()
    if info.table.meter is not None:
        config = message.meter_config if message.HasField("meter_config") else None
        clear = insert or message.HasField("meter_counter_data")
        direct.set_meter(p, info.table.meter.name, config, clear)


def give_direct(p: Pipeline, info: TableInfo, entry: Entry, message: p4r.TableEntry) -> None:
    """Set the counter and meter of an entry that is in no table yet, where they are given."""
    if message.HasField("counter_data"):
        count = entry.counter
        count.packets, count.bytes = counter_values(message.counter_data, f"table {info.name}")
    if info.table.meter is not None and message.HasField("meter_config"):
        config = read_meter_config(p, info.table.meter.name, message.meter_config)
        entry.meter.configure(config, p.state.clock())


def show_direct(
    info: TableInfo, direct: Direct, query: p4r.TableEntry, shown: p4r.TableEntry
) -> None:
    """Show counter and meter where the query asks for them and the table has them."""
    if query.HasField("counter_data") and info.table.counter is not None:
        shown.counter_data.CopyFrom(show_counter(direct.counter.packets, direct.counter.bytes))
    if query.HasField("meter_config") and direct.meter.config is not None:
        shown.meter_config.CopyFrom(show_meter_config(direct.meter.config))
    if query.HasField("meter_counter_data") and info.table.meter is not None:
        shown.meter_counter_data.CopyFrom(show_colours(direct.meter.counts))
