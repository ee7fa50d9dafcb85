"""The page of the papers' figures is what the studies' tables and the rows beside them say."""

import papers_page
import pytest

from gradplane.studies import launch

ROWS = papers_page.rows()


def test_the_page_is_as_the_tables_say() -> None:
    """`python scripts/papers_page.py --write` writes it."""
    assert papers_page.PAGE.read_text("utf-8") == papers_page.page()


def test_every_study_of_a_paper_has_a_row() -> None:
    without = {"awp-precision", "espresso-run", "formats", "sparse-formats"}  # of no figure
    without |= {"memory-sharing", "incast", "inceptionn-groups", "sum-levels"}
    assert {row["study"] for row in ROWS if "study" in row} == set(launch.kinds()) - without


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['paper']} {row['name']}" for row in ROWS])
def test_a_row_says_how_near_it_is_and_why(row: dict[str, str]) -> None:
    assert row["verdict"] in papers_page.VERDICTS
    assert row["verdict"] == "reproduced" or row["why"]
    assert ("study" in row) == ("here" in row)
    assert "study" not in row or row["verdict"] != "not offered"


@pytest.mark.parametrize("study", sorted({row["study"] for row in ROWS if "study" in row}))
def test_a_kept_table_is_that_of_the_shipped_experiment(study: str) -> None:
    found = launch.recorded(study)
    assert found is None or found["study"] == papers_page.shipped(study)
