"""Rules for the shipped v1model programs, so that they mean the same to p4c."""

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks

P4 = Path(__file__).parents[2] / "p4"
FOR_BMV2 = sorted(path.name for path in P4.glob("*.p4") if not path.stem.endswith("_tna"))


@pytest.mark.parametrize("name", FOR_BMV2)
def test_every_select_has_a_case_for_the_rest(name: str) -> None:
    """p4c's JSON accepts a packet that fits none, and the specification rejects it."""
    program = compile_source(P4 / name, [P4], None).program
    parsers = [block for _, block in blocks(program.package) if isinstance(block, ir.Parser)]
    states = [state for parser in parsers for state in parser.states.values() if state.select]
    assert states
    for state in states:
        last = state.cases[-1].matches
        assert all(isinstance(match, ir.MatchAny) for match in last), state.span
