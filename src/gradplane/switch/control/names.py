"""The objects of a switch by name: in full, or as a suffix that no other object has."""

from __future__ import annotations

from typing import Any

from gradplane.switch.naming import resolve
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.pipe_scopes import Resources
from gradplane.switch.runtime.state import State

_KINDS = {
    "table": "tables", "action profile": "profiles", "counter": "counters", "meter": "meters",
    "value set": "value_sets",
}  # fmt: skip
"""Kinds of objects that pipes can have of their own, in words."""


class Names:
    """Finds objects by name; raises SwitchError with the nearest names."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, kind: str, name: str, pipe: int = 0) -> Any:
        """Return the object of a kind ("table", "register", ...) and a name. pipe: whose, where
        pipes have their own."""
        registers = kind == "register"
        known = self._state.registers if registers else self._pipe(pipe).of(_KINDS[kind])
        return known[resolve(kind, name, known)]

    def cells(self, kind: str) -> dict[str, Any]:
        """Return all counters, or all meters, by name: arrays, and the tables whose entries have
        direct ones."""
        tables = self._state.tables.values()
        named = ((getattr(table.table, kind), table) for table in tables)
        direct = {instance.name: table for instance, table in named if instance is not None}
        return {**self._pipe(0).of(_KINDS[kind]), **direct}

    def _pipe(self, number: int) -> Resources:
        pipes = self._state.scopes.pipes
        if not 0 <= number < len(pipes):
            raise SwitchError(f"pipe {number} is not within 0 to {len(pipes) - 1}")
        return pipes[number]
