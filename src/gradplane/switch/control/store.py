"""The store: everything that a control plane sets in a running switch, by kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control.cells import Cells
from gradplane.switch.control.journal import Batch, Journal
from gradplane.switch.control.names import Names
from gradplane.switch.control.replication import Replication
from gradplane.switch.control.tables import Profiles, Tables
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.entries import (
    ActionData,
    Count,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
)
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import CELL_WORDS, Meter, MeterCell
from gradplane.switch.runtime.profiles import ActionProfile
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.valuesets import ParserValueSet

Plain = dict[str, Any]
"""Numbers, texts, lists and mappings, by name."""


class Store:
    """The kinds of objects of a switch, which read and write the memory of its engines.

    Whoever changes something holds the switch's lock. `journal` undoes batches that fail, `names`
    finds objects.
    """

    def __init__(
        self, state: State, architecture: Architecture, lock: AbstractContextManager[Any]
    ) -> None:
        self.state = state
        self.journal = Journal(lock)
        self.names = Names(state)
        self.tables = Tables(self.journal)
        self.profiles = Profiles(self.journal)
        self.cells = Cells(self.journal)
        self.replication = Replication(self.journal, state, architecture)

    def batch(self) -> Batch:
        """Return a context in which all changes are made or, if it fails, none."""
        return self.journal.batch()

    def dump(self) -> Plain:
        """Return everything that a control plane can set, as plain records.

        By kind, a list of the objects, each with its name and the pipes that share it; cells by
        index, those that are not as at the start; entries in the order of their keys. Times and the
        tokens in meters' buckets are not in it.
        """
        scopes = self.state.scopes
        found: Plain = {
            kind: [
                {"name": name, "pipes": list(pipes),
                 **record(scopes.pipes[pipes[0]].of(kind)[name])}
                for name in scopes.pipes[0].of(kind) for pipes in scopes.groups(name)
            ]
            for kind, record in _RECORDS.items()
        }  # fmt: skip
        pipes = range(len(scopes.pipes))
        found["registers"] = [
            {"name": name, "pipes": [pipe], "cells": _register(registers[pipe])}
            for name, registers in (
                (name, self.state.pipe_registers(name)) for name in self.state.registers
            )
            for pipe in pipes
        ]
        found["replication"] = self.replication.dump()
        return found


def _table(table: MatchTable) -> Plain:
    entries = [
        {
            "matches": [None if m is None else list(m) for m in entry.matches],
            "priority": entry.priority,
            "action": _action(table.actions, entry.action), "handle": entry.handle,
            "metadata": entry.metadata.hex(), "controller_metadata": entry.controller_metadata,
            "idle_timeout_ns": entry.idle_timeout_ns, **_direct(entry),
        }
        for entry in table.entries()
    ]  # fmt: skip
    controller_metadata, metadata = table.default_metadata
    default = {
        "action": _action(table.actions, table.default), "metadata": metadata.hex(),
        "controller_metadata": controller_metadata,
        **_parts(table.default_counter, table.default_meter, table.default_register,
                 table.default_filter),
    }  # fmt: skip
    entries.sort(key=lambda entry: (str(entry["matches"]), entry["priority"]))
    return {"entries": entries, "default": default}


def _direct(entry: Entry) -> Plain:
    return _parts(entry.counter, entry.meter, entry.register, entry.filter)


def _parts(
    counter: Count, meter: MeterCell, register: Register | None, filter: Filter | None
) -> Plain:
    return {
        "counter": [counter.packets, counter.bytes], "meter": _meter_cell(meter.cells.tolist()),
        "register": None if register is None else list(register.cells),
        "filter": None if filter is None else _filter(filter)["cells"],
    }  # fmt: skip


def _action(actions: ActionList, target: EntryAction) -> Plain:
    match target:
        case ActionData():
            return {"name": actions.action(target).name, "args": list(target.args)}
        case MemberRef(id=number):
            return {"member": number}
        case GroupRef(id=number):
            return {"group": number}
    return {"set": [
        {**_action(actions, action), "weight": weight, "watch": watch.hex()}
        for action, weight, watch in target.actions
    ]}  # fmt: skip


def _profile(profile: ActionProfile) -> Plain:
    members = {n: _action(profile.actions, action) for n, action in profile.members.items()}
    groups = {
        number: {
            "max_size": group.max_size,
            "members": [[m.member, m.weight, m.watch_port.hex(), m.active] for m in group.members],
        }
        for number, group in profile.groups.items()
    }
    return {"members": members, "groups": groups}


def _counter(counter: Counter) -> Plain:
    touched = np.flatnonzero(counter.packets | counter.bytes)
    return {"cells": {int(i): list(counter.read(int(i))) for i in touched}}


def _meter(meter: Meter) -> Plain:
    rows = meter.memory.reshape(-1, len(CELL_WORDS))
    touched = np.flatnonzero(rows[:, 0] | rows[:, 10:].any(axis=1))
    return {"cells": {int(i): _meter_cell(rows[i].tolist()) for i in touched}}


def _meter_cell(words: list[int]) -> list[int]:
    """Return the words of a meter but its tokens and the time of the last packet."""
    return words[:6] + words[9:] if words[0] else [0] * 6 + [0] + words[10:]


def _register(register: Register) -> Plain:
    initial = register.initial
    return {i: cell for i, cell in enumerate(register.cells) if cell != initial}  # type: ignore[misc]


def _filter(filter: Filter) -> Plain:
    return {"cells": {int(i): filter.cells[i].tolist() for i in np.flatnonzero(filter.cells[:, 0])}}


def _value_set(value_set: ParserValueSet) -> Plain:
    return {"members": [[None if m is None else list(m) for m in one] for one in value_set.members]}


_RECORDS: dict[str, Callable[[Any], Plain]] = {
    "tables": _table, "profiles": _profile, "counters": _counter, "meters": _meter,
    "filters": _filter, "value_sets": _value_set,
}  # fmt: skip
