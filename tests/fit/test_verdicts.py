"""Programs of many kinds, and what keeps those that do not fit from fitting.

Whether they fit was written down from the estimate before p4c's back end compiled them, and mended
with the estimate where it was wrong; compiler_numbers.csv has what the compiler said.
"""

import csv
from pathlib import Path

import pytest

from gradplane.fit.analysis import fit
from gradplane.fit.chip_resources import CHIPS
from gradplane.switch.compiler import compile_program

HERE = Path(__file__).parent
ROWS = list(csv.DictReader((HERE / "expected_verdicts.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['program']}-{r['chip']}")
def test_a_program_fits_or_says_why_not(row: dict[str, str]) -> None:
    number = str(list(CHIPS).index(row["chip"]) + 1)
    path = HERE / "programs" / f"{row['program']}.p4"
    compiled = compile_program(path, defines={"__TARGET_TOFINO__": number})
    overruns = fit(compiled, CHIPS[row["chip"]], row["program"]).pipelines[0].overruns
    assert bool(overruns) == bool(row["overrun"]), overruns
    if overruns:
        assert row["overrun"] in overruns[0].what
        assert overruns[0].span.file == str(path)
