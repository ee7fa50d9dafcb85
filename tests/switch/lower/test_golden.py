"""P4 programs and their IR, side by side.

To rewrite the .ir files after an intended change, run this file as a script and review the
difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.ir.printer import program_text
from gradplane.switch.ir.verify import verify

CASES = sorted((Path(__file__).parent / "golden").glob("*.p4"))
DULL = ("errors ", "control V", "control E", "control D", "package ")


def lowered(case: Path) -> str:
    """Return the IR without the parts that are the same in all cases."""
    program = compile_source(case).program
    verify(program)
    lines = program_text(program).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith(DULL))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_ir(case: Path) -> None:
    assert lowered(case) == case.with_suffix(".ir").read_text()


if __name__ == "__main__":
    for path in CASES:
        path.with_suffix(".ir").write_text(lowered(path))
