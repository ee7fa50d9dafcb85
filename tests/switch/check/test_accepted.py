"""Programs as people write them compile, without a warning, to legal IR."""

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.ir.verify import verify

CASES = sorted((Path(__file__).parent / "accepted").glob("*.p4"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_compiles(case: Path) -> None:
    compiled = compile_source(case)
    verify(compiled.program)
    assert [w for w in compiled.warnings if w.kind != "deprecated"] == []
