"""Programs as people write them compile, without a warning, to legal IR."""

from pathlib import Path

import pytest

from gradplane.switch.arch.registry import why_not
from gradplane.switch.compiler import compile_source
from gradplane.switch.ir.printer import program_text
from gradplane.switch.ir.verify import verify
from gradplane.switch.ir.walk import blocks
from gradplane.switch.source import CompileError

CASES = sorted((Path(__file__).parent / "accepted").glob("*.p4"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_compiles(case: Path) -> None:
    compiled = compile_source(case)
    verify(compiled.program)
    assert [w for w in compiled.warnings if w.kind not in ("deprecated", "p4c")] == []


OTHERS = sorted((Path(__file__).parent / "any_architecture").glob("*.p4"))


@pytest.mark.parametrize("case", OTHERS, ids=lambda p: p.stem)
def test_programs_that_no_architecture_of_ours_runs(case: Path) -> None:
    compiled = compile_source(case, library=True)
    assert compiled.warnings == [] and why_not(compiled.program)
    assert [*blocks(compiled.program.package)] and program_text(compiled.program)


def test_rules_of_later_stages_hold_for_them_too() -> None:
    text = """
        extern bool static_assert(bool check, string message);
        control inner(inout bit<8> x)(bit<8> k) { apply { static_assert(k == 1, "k"); } }
        control outer(inout bit<8> x) { inner(3) wrong; apply { wrong.apply(x); } }
    """
    with pytest.raises(CompileError, match="library.p4:3:59: error: static_assert failed: k"):
        compile_source("library.p4", text=text, library=True)
    with pytest.raises(CompileError, match="the program has no package `main`"):
        compile_source("library.p4", text=text.replace("(3)", "(1)"))
