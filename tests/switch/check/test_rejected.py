"""Wrong programs, each with its exact error messages beside it."""

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.source import CompileError

CASES = sorted((Path(__file__).parent / "rejected").glob("*.p4"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_message(case: Path) -> None:
    with pytest.raises(CompileError) as said:
        compile_source(case.name, text=case.read_text())
    assert f"{said.value}\n" == case.with_suffix(".stderr").read_text()


@pytest.mark.parametrize("text", ["", "// nothing", "#include <core.p4>"])
def test_a_program_of_nothing_has_no_main(text: str) -> None:
    with pytest.raises(CompileError) as said:
        compile_source("empty.p4", text=text)
    assert str(said.value).startswith("empty.p4:1:1: error: the program has no package `main`")
