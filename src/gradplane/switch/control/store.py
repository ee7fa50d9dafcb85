"""The store: everything that a control plane sets in a running switch, by kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control.cells import Adjustments, Counters, Filters, Meters, Registers, Values
from gradplane.switch.control.journal import Batch, Journal
from gradplane.switch.control.kind import Kind
from gradplane.switch.control.names import Names
from gradplane.switch.control.replication import Replication
from gradplane.switch.control.scopes import Scopes, TableMemory
from gradplane.switch.control.settings import (
    CustomCrcs,
    Digests,
    ExpireTimes,
    Hashes,
    LinkStates,
    PortMetadata,
    Queues,
)
from gradplane.switch.control.tables import Entries, Members, SelectorGroups
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import Meter, MeterCell
from gradplane.switch.runtime.profiles import ActionProfile
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.valuesets import ParserValueSet


class Store:
    """The kinds of objects of a switch, which read and write the memory of its engines.

    Whoever changes something holds the switch's lock. `journal` undoes batches that fail, `names`
    finds objects. The methods return the objects of one table, profile or array; what a switch has
    once is an attribute. `records.py` makes plain records of all, and writes them.
    """

    def __init__(
        self, state: State, architecture: Architecture, lock: AbstractContextManager[Any]
    ) -> None:
        self.state = state
        self.journal = journal = Journal(lock)
        self.names = Names(state)
        self.scopes = Scopes(journal, state.scopes)
        self.replication = Replication(journal, state, architecture)
        self.adjustments = Adjustments(journal, state.scopes)
        self.hashes = Hashes(journal, state.hashes)
        self.crcs = CustomCrcs(journal, state.crcs.values())
        self.digests = Digests(journal, state)
        self.port_metadata = PortMetadata(journal, state)
        self.expire_times = ExpireTimes(journal, state.expire_times)
        self.queues = Queues(journal, state.links.queues)
        self.links = LinkStates(journal, state.links, architecture.ports)

    def batch(self) -> Batch:
        """Return a context in which all changes are made or, if it fails, none."""
        return self.journal.batch()

    def reset(self) -> None:
        """Set everything to the program's start but time and random numbers. A batch that fails
        takes it back, too, and leaves what packets have counted since."""
        state, scopes = self.state, self.state.scopes
        for table in scopes.every("tables"):
            if self.journal.open:
                self.journal.record(TableMemory.of(table).restore)
            table.reset()
        for profile in scopes.every("profiles"):
            _remove_all(self.groups(profile))
            _remove_all(self.members(profile))
        for counter in scopes.every("counters"):
            self.counters(counter).clear()
        for register in state.registers.values():
            self.registers(register).clear()
        for meter in scopes.every("meters"):
            for i in list(self.meters(meter).touched()):
                self.meters(meter).put(i, {"config": None, "clear": True})
        for filter in scopes.every("filters"):
            for i in list(self.filters(filter).touched()):
                self.filters(filter).delete(i)
        for value_set in scopes.every("value_sets"):
            for parser in (None, *value_set.own):
                self.values(value_set, parser).clear()
        self.replication.reset()
        self.expire_times.reset()
        kinds: tuple[Kind[Any], ...] = (
            self.port_metadata, self.hashes, self.crcs, self.adjustments
        )  # fmt: skip
        for kind in kinds:
            _remove_all(kind)
        self.journal.splice(state.flow_ids.view(np.uint8), slice(None), bytes(8))

    def kept(self, name: str) -> dict[Any, Any]:
        """Return what a notation keeps under a name: settings that have no effect on packets, or
        whose effect it sees to. It writes them with the journal."""
        return self.state.kept.setdefault(name, {})

    # -- the objects of one table, profile or array ----------------------------------------------

    def entries(self, table: MatchTable) -> Entries:
        """Return the entries of a table."""
        return Entries(self.journal, table)

    def members(self, profile: ActionProfile, defaults: bool = True) -> Members:
        """Return the members of an action profile. defaults: whether a default entry that has one
        keeps it from being removed, as `groups`."""
        return Members(self.journal, profile, defaults)

    def groups(self, profile: ActionProfile, defaults: bool = True) -> SelectorGroups:
        """Return the groups of an action selector."""
        return SelectorGroups(self.journal, profile, defaults)

    def counters(self, counter: Counter | Count) -> Counters:
        """Return the cells of a counter, or the one cell of an entry's."""
        return Counters(self.journal, counter)

    def meters(self, meter: Meter | MeterCell) -> Meters:
        """Return the cells of a meter, or the one cell of an entry's."""
        return Meters(self.journal, meter, self._clock)

    def registers(self, register: Register) -> Registers:
        """Return the cells of a register; those of an entry's are by pipe."""
        return Registers(self.journal, register)

    def filters(self, filter: Filter) -> Filters:
        """Return the cells of a filter."""
        return Filters(self.journal, filter, self._clock)

    def values(self, value_set: ParserValueSet, parser: int | None = None) -> Values:
        """Return the members of a parser value set, or those that a single parser has besides."""
        return Values(self.journal, value_set, parser)

    @property
    def _clock(self) -> Callable[[], int]:
        return self.state.clock


def _remove_all(kind: Kind[Any]) -> None:
    """Remove all objects of a kind, whoever uses them."""
    for key in list(kind.existing()):
        kind.put(key, None)
