"""The store: everything that a control plane sets in a running switch, by kind."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control.cells import Cells
from gradplane.switch.control.journal import Batch, Journal
from gradplane.switch.control.replication import Replication
from gradplane.switch.control.tables import Profiles, Tables
from gradplane.switch.runtime.state import State


class Store:
    """The kinds of objects of a switch, which read and write the memory of its engines.

    Whoever changes something holds the switch's lock. `journal` undoes batches that fail.
    """

    def __init__(
        self, state: State, architecture: Architecture, lock: AbstractContextManager[Any]
    ) -> None:
        self.state = state
        self.journal = Journal(lock)
        self.tables = Tables(self.journal)
        self.profiles = Profiles(self.journal)
        self.cells = Cells(self.journal)
        self.replication = Replication(self.journal, state, architecture)

    def batch(self) -> Batch:
        """Return a context in which all changes are made or, if it fails, none."""
        return self.journal.batch()
