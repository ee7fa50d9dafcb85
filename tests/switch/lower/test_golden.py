"""P4 and the IR it becomes, side by side. To write the .ir files anew after a wanted change, run
this file as a script, and read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir.printer import program_text
from gradplane.switch.ir.verify import verify

CASES = sorted((Path(__file__).parent / "golden").glob("*.p4"))
DULL = ("errors ", "control V", "control E", "control D", "package ")


def lowered(case: Path) -> str:
    """The IR, without the parts that are the same in all cases."""
    program = compile_program(case)
    verify(program)
    lines = program_text(program).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith(DULL))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_ir(case: Path) -> None:
    assert lowered(case) == case.with_suffix(".ir").read_text()


if __name__ == "__main__":
    for path in CASES:
        path.with_suffix(".ir").write_text(lowered(path))
