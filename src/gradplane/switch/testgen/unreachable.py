"""Goals that no packet can reach."""

from __future__ import annotations

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.state import State
from gradplane.switch.testgen.explorer import Found
from gradplane.switch.testgen.recorder import Goal


def unreachable(program: ir.Program, state: State, found: Found) -> set[Goal]:
    return set()
