"""Verifies the IR after each pass: after lowering, and after every step of an architecture."""

from collections.abc import Iterator
from typing import Any

import pytest

from gradplane.switch import compiler
from gradplane.switch.arch import load_checks
from gradplane.switch.arch.architecture import Prepare
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.verify import verify
from gradplane.switch.lower import program as lowering
from gradplane.switch.source import Diagnostic

LOWER, RUN_STEP = compiler.lower, load_checks.run_step


def lower(checked: Any, reporter: Any, natives: Any, *rest: Any) -> ir.Program:
    program = LOWER(checked, reporter, natives, *rest)
    if natives is not None:  # others may hold what no architecture here knows
        verify(program)
    return program


def run_step(step: Prepare, program: ir.Program) -> list[Diagnostic]:
    found = RUN_STEP(step, program)
    if not found:  # else the program is refused as it is
        verify(program)
    return found


@pytest.fixture(scope="session", autouse=True)
def passes_are_verified() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "lower", lower)
        patch.setattr(lowering, "lower", lower)  # of texts of the switch itself
        patch.setattr(load_checks, "run_step", run_step)
        yield
