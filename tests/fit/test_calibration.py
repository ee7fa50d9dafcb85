"""The estimate against what p4c's Tofino back end (1.2.5.16) said of the programs in programs/.

compiler_numbers.csv: "no" without numbers is a program that it refused; one that it placed in more
stages than the chip has does not fit either. Numbers are sums over stages.
"""

import csv
from functools import cache
from pathlib import Path

import pytest

from gradplane.fit.analysis import PipelineFit, fit
from gradplane.fit.chip_resources import CHIPS
from gradplane.fit.placement import used
from gradplane.switch.compiler import compile_program

HERE = Path(__file__).parent
ROWS = list(csv.DictReader((HERE / "compiler_numbers.csv").read_text().splitlines()))


@cache
def estimate(program: str, chip: str) -> PipelineFit:
    number = list(CHIPS).index(chip) + 1
    path = HERE / "programs" / f"{program}.p4"
    compiled = compile_program(path, defines={"__TARGET_TOFINO__": str(number)})
    return fit(compiled, CHIPS[chip], program).pipelines[0]


def fits(row: dict[str, str]) -> bool:
    return row["fits"] == "yes"


def test_there_are_enough_programs_of_both_kinds() -> None:
    assert len(ROWS) >= 30
    assert sum(map(fits, ROWS)) >= 10
    assert sum(not fits(row) for row in ROWS) >= 10


def test_fits_or_not_agrees_on_nine_of_ten() -> None:
    wrong = [r["program"] for r in ROWS if estimate(r["program"], r["chip"]).fits != fits(r)]
    assert len(wrong) <= len(ROWS) // 10, wrong


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r["stages"]], ids=lambda r: f"{r['program']}-{r['chip']}"
)
def test_resources_are_near(row: dict[str, str]) -> None:
    found = estimate(row["program"], row["chip"])
    assert abs(found.stages - int(row["stages"])) <= 2
    sums = used(found.placement.stages)
    assert sums["meter_alus"] == int(row["meter_alus"])
    assert sums["stats_alus"] == int(row["stats_alus"])
    for name in ("sram", "tcam", "map_ram"):
        assert sums[name] == pytest.approx(int(row[name]), rel=0.15, abs=2), name
