"""Small programs, each about a feature, and larger ones as in courses: with their packet tests."""

from pathlib import Path

import pytest

from gradplane.switch.stf import run

HERE = Path(__file__).parent
PROGRAMS = sorted([*HERE.glob("features/*.p4"), *HERE.glob("exercises/*.p4")])


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_does_as_its_stf_says(program: Path, engine: str) -> None:
    result = run(program, engine=engine)
    assert result.passed and not result.message, str(result)
