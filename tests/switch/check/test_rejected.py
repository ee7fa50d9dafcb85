"""Wrong programs sit beside the exact text the compiler says about them."""

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
