"""The frame: one list that holds all variables of a program, each at its slot.

Slot 0 is the packet. A block's variables are next to each other, so that one slice assignment
sets them to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.switch.interp.interpreter_values import is_composite, maker
from gradplane.switch.ir import nodes as ir

Env = list[Any]
Load = Callable[[Env], Any]
Run = Callable[[Env], Any]


class Frame:
    """Allots slots to variables on first use."""

    def __init__(self) -> None:
        self._slots: dict[ir.Var, int] = {}
        self._size = 1

    def slot(self, var: ir.Var) -> int:
        if var not in self._slots:
            self._slots[var] = self._size
            self._size += 1
        return self._slots[var]

    def run_of(self, variables: Sequence[ir.Var]) -> tuple[int, int]:
        """Allot neighbouring slots to variables that have none yet; return start and end."""
        start = self._size
        for var in variables:
            assert var not in self._slots, var.name
            self.slot(var)
        return start, self._size

    def new(self) -> Env:
        """Make a frame for the slots allotted so far."""
        return [None] * self._size

    def zeroing(self, variables: list[ir.Var]) -> Run:
        """Return the function that sets variables to their default values."""
        scalars = [v for v in variables if not is_composite(v.type)]
        start, end = self.run_of(scalars)
        zeros = [maker(v.type)() for v in scalars]
        made = [(self.slot(v), maker(v.type)) for v in variables if is_composite(v.type)]

        def run(env: Env) -> None:
            env[start:end] = zeros
            for slot, make in made:
                env[slot] = make()

        return run
