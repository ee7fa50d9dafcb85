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
from gradplane.switch.p4runtime.status_errors import invalid
from gradplane.switch.runtime.entries import (
    ActionData,
    Count,
    Entry,
    EntryAction,
    GroupRef,
    OneShot,
)
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


def check_direct(
    p: Pipeline, info: TableInfo, message: p4r.TableEntry, target: EntryAction
) -> None:
    """Refuse direct resources that the table does not have, or that no action of an entry's target
    executes, and invalid values."""
    given = {part.name for part, _ in message.ListFields()}
    for part, name in _PARTS.items():
        if part in given and getattr(info.table, name) is None:
            raise invalid(f"table {info.name}: {part} is set, but the table has no direct {name}")
    for part, name in _PARTS.items():
        if part in given and not _executed(p, info, name, target):
            raise invalid(
                f"table {info.name}: {part} is set, but the action does not execute the table's"
                f" direct {name}"
            )
    if "counter_data" in given:
        counter_values(message.counter_data, f"table {info.name}")
    if "meter_counter_data" in given:
        check_zero(message.meter_counter_data, f"table {info.name}")
    if "meter_config" in given and info.table.meter is not None:
        read_meter_config(p, info.table.meter.name, message.meter_config)


def _executed(p: Pipeline, info: TableInfo, part: str, target: EntryAction) -> bool:
    """Return whether an entry's target executes its counter or meter (section "Direct resources").

    Where every hit does, this one's does; of several actions one that does is enough. A member or
    group that is not there, or has no action yet, is judged elsewhere.
    """
    if not p.switch.architecture.implementation.direct.on_call:
        return True
    wanted, actions = getattr(info.table, part), _actions(p, info, target)
    return not actions or any(
        isinstance(stmt, ir.CallExtern) and stmt.instance is wanted
        for one in actions
        for stmt in nested(info.table.actions[one.index].action.body)
    )


def _actions(p: Pipeline, info: TableInfo, target: EntryAction) -> list[ActionData]:
    match target:
        case ActionData():
            return [target]
        case OneShot(actions=actions):
            return [action for action, _, _ in actions]
    assert info.table.implementation is not None
    members = p.state.profiles[info.table.implementation.name]
    numbers = [target.id]
    if isinstance(target, GroupRef):
        group = members.groups.get(target.id)
        numbers = [] if group is None else [one.member for one in group.members]
    return [members.members[number] for number in numbers if number in members.members]


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
