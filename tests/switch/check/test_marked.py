"""In these programs the lines marked with `// !`, and no others, have an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.source import CompileError

CASES = sorted((Path(__file__).parent / "marked").glob("*.p4"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_errors_are_where_they_are_marked(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradplane.switch.source.MAX_ERRORS", 1000)
    lines = case.read_text().splitlines()
    with pytest.raises(CompileError) as said:
        compile_source(case, library=True)
    marked = {i: line for i, line in enumerate(lines, 1) if line.endswith("// !")}
    found = {d.span.line: lines[d.span.line - 1] for d in said.value.diagnostics}
    assert found == marked
