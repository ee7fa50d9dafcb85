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


def test_stages_are_within_two_for_nearly_all() -> None:
    placed = [r for r in ROWS if fits(r)]
    far = [
        r for r in placed if abs(estimate(r["program"], r["chip"]).stages - int(r["stages"])) > 2
    ]
    assert len(placed) >= 80
    assert len(far) <= len(placed) // 20, far


@pytest.mark.parametrize(
    ("name", "near"),
    [("meter_alus", 0), ("stats_alus", 0), ("sram", 0.15), ("map_ram", 0.15), ("tcam", 0.15)],
)
def test_resources_are_near_on_nine_of_ten(name: str, near: float) -> None:
    placed = [r for r in ROWS if fits(r)]
    far = [r["program"] for r in placed if not _is_near(r, name, near)]
    assert len(far) <= len(placed) // 10, far


def _is_near(row: dict[str, str], name: str, near: float) -> bool:
    found = used(estimate(row["program"], row["chip"]).placement.stages)[name]
    return found == pytest.approx(int(row[name]), rel=near, abs=2 if near else 0)
