"""Small programs, each about a feature, and larger ones as in courses, of v1model and PSA: with
their packet tests."""

from pathlib import Path

import pytest

from gradplane.switch.stf import run

HERE = Path(__file__).parent
FOLDERS = ("features", "exercises", "psa")
PROGRAMS = sorted(path for folder in FOLDERS for path in HERE.glob(f"{folder}/*.p4"))


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_does_as_its_stf_says(program: Path, engine: str) -> None:
    result = run(program, engine=engine)
    assert result.passed and not result.message, str(result)
