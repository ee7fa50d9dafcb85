"""The pragma `stage`: where it puts tables, and what is said of one that is wrong."""

import pytest
from fragments import report, table

from gradplane.fit.analysis import PipelineFit
from gradplane.fit.report_text import report_json, report_text
from gradplane.pages.fit_page import page

ACT = "action act() { hdr.ip.tos = 1; }\n"
STAGES = "Tofino 1 has stages 0 to 11"
FLAGS = 'other values than a stage, a number of entries, "immediate" and "noimmediate"'


def with_pragma(pragma: str, chip: str = "tofino") -> PipelineFit:
    declared = f"{ACT}{pragma} {table('one', 'hdr.ip.dst', 'act')}"
    return report(declared, "one.apply();", chip).pipelines[0]


def entries(found: PipelineFit) -> dict[int, int]:
    """Return the entries of the table in each stage where it is."""
    return {
        stage.number: part.entries
        for stage in found.placement.stages
        for part in stage.parts
        if part.table.name.endswith("one")
    }


@pytest.mark.parametrize(
    ("pragma", "placed"),
    [
        ("@stage(5)", {5: 512}),
        ("@stage(0x5)", {5: 512}),
        ('@stage(3, "noimmediate")', {3: 512}),
        ("@stage(2, 100)", {2: 100, 3: 412}),
        ("@stage(2, 100) @stage(4)", {2: 100, 4: 412}),
        ("@stage(6) @stage(4, 100) @stage(2, 12)", {2: 12, 4: 100, 6: 400}),
        ("@pragma stage 5\n", {5: 512}),
        ("@pragma stage 3 100\n", {3: 100, 4: 412}),
    ],
)
def test_a_table_or_a_number_of_its_entries_is_in_the_stage_asked_for(
    pragma: str, placed: dict[int, int]
) -> None:
    found = with_pragma(pragma)
    assert found.fits
    assert entries(found) == placed


@pytest.mark.parametrize(
    ("pragma", "what"),
    [
        ("@stage(99)", f"@stage(99) names no stage: {STAGES}"),
        ("@stage(-1)", f"@stage(-1) names no stage: {STAGES}"),
        ("@pragma stage 12\n", f"@stage(12) names no stage: {STAGES}"),
        ('@stage("x")', f'@stage("x") does not begin with the number of a stage: {STAGES}'),
        ("@stage()", f"@stage() does not begin with the number of a stage: {STAGES}"),
        ("@stage(true)", f"@stage(true) does not begin with the number of a stage: {STAGES}"),
        ("@stage(3, -1)", "@stage(3, -1) asks for fewer than 0 entries"),
        ('@stage(3, "fast")', f'@stage(3, "fast") has {FLAGS}'),
        ("@stage(3, 2, 1)", f"@stage(3, 2, 1) has {FLAGS}"),
        ("@stage(3, 2 * 8)", f"@stage(3, 2 * 8) has {FLAGS}"),
        ("@stage(3, 400) @stage(4, 113)",
         "@stage places 513 entries of Ingress.one, its size is 512"),
    ],
)  # fmt: skip
def test_a_wrong_pragma_is_named_with_its_line(pragma: str, what: str) -> None:
    found = with_pragma(pragma)
    assert [overrun.what for overrun in found.overruns] == [what]
    assert found.overruns[0].span.line == 9
    assert not found.fits


def test_the_range_is_that_of_the_chip() -> None:
    assert with_pragma("@stage(19)", "tofino2").fits
    (overrun,) = with_pragma("@stage(20)", "tofino2").overruns
    assert overrun.what == "@stage(20) names no stage: Tofino 2 has stages 0 to 19"


def test_a_stage_that_is_too_early_is_said_and_does_not_hinder() -> None:
    tables = table("one", "hdr.ip.dst", "set_a") + " @stage(0) " + table("two", "md.a", "use_a")
    whole = report(tables, "one.apply(); two.apply();")
    assert whole.fits
    what = "@stage asks for stage 0, Ingress.two can be in stage 1 at the earliest"
    assert [w.message for w in whole.pipelines[0].warnings] == [what]
    assert f"warning: {what}" in report_text(whole, {})
    assert report_json(whole)["pipelines"][0]["warnings"][0]["what"] == what
    assert what in page(whole)
