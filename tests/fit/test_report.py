"""The report: as text, as JSON, as a page, and from the command line."""

import json
from pathlib import Path

from fragments import CONTROL, PROGRAMS, report
from typer.testing import CliRunner

from gradplane.cli.p4_commands import commands
from gradplane.fit.analysis import fit
from gradplane.fit.chip_resources import CHIPS
from gradplane.fit.report_text import report_json, report_text
from gradplane.pages.fit_page import page
from gradplane.switch.compiler import compile_program


def test_the_text_is_80_columns_wide_but_for_source_lines() -> None:
    found = fit(compile_program(PROGRAMS / "aggregation_and.p4"), CHIPS["tofino"], "a.p4")
    assert found.fits
    text = report_text(found, {})
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "a.p4 on Tofino 1: fits. An estimate" in text


def test_json_and_page_hold_every_table_of_a_stage() -> None:
    found = fit(compile_program(PROGRAMS / "aggregation_and.p4"), CHIPS["tofino"], "a.p4")
    data = json.loads(json.dumps(report_json(found)))
    pipeline = data["pipelines"][0]
    assert data["fits"] and pipeline["stages"] == {"needed": found.pipelines[0].stages, "of": 12}
    names = [t["name"] for stage in pipeline["placement"] for t in stage["tables"]]
    assert "Ingress.jobs" in names
    chain = found.pipelines[0].chains["ingress"]
    tables = [chain[0].before.name, *(edge.after.name for edge in chain)]
    assert pipeline["longest_chains"] == {"ingress": tables}  # egress has no tables
    html = page(found)
    assert html.count('<span class="box') >= len(names)


def test_a_condition_is_its_line_on_the_page() -> None:
    found = report("", "if (hdr.words.w2 < 4096) { hdr.ip.tos = 1; }")
    (condition,) = [t for t in found.pipelines[0].tables if t.name.startswith("condition in ")]
    text = page(found)
    label = condition.name.removeprefix("condition in ")
    assert label == f"line {condition.span.line}" and f">{label}</span>" in text
    assert f'title="{condition.name}, ingress, ' in text


def test_lines_of_included_files_are_named_with_their_file(tmp_path: Path) -> None:
    text = (PROGRAMS / "frame_end.p4").read_text().removesuffix("Switch(pipe) main;\n")
    (tmp_path / "end.p4").write_text(text)
    condition = "if (hdr.words.w2 < 4096) { hdr.ip.tos = 1; }"
    text = CONTROL.format(declarations="", body=condition).replace("frame_end", "end")
    (tmp_path / "body.p4").write_text(text)
    (tmp_path / "main.p4").write_text('#include "body.p4"\nSwitch(pipe) main;\n')
    found = fit(compile_program(tmp_path / "main.p4", [PROGRAMS]), CHIPS["tofino"], "main.p4")
    line = f"line {text[: text.index(condition)].count(chr(10)) + 1} of body.p4"
    names = [t.name for t in found.pipelines[0].tables]
    assert names == [f"condition in {line}", f"hdr.ip.tos ({line})"]
    assert f">{line}</span>" in page(found)


def test_lines_of_the_program_are_named_without_it_wherever_its_main_is() -> None:
    found = report("", "hdr.ip.tos = 1;")  # the main is in frame_end.p4
    (table,) = found.pipelines[0].tables
    assert table.name == "hdr.ip.tos (line 10)"


def test_what_macros_change_is_told_where_a_program_does_not_fit(tmp_path: Path) -> None:
    text = (PROGRAMS / "chain13.p4").read_text()
    macro = "// How many. More are slow.\n#ifndef WAYS\n#define WAYS 4\n#endif\n"
    (tmp_path / "p.p4").write_text(macro + text)
    command = ["p4", "fit", str(tmp_path / "p.p4"), "-I", str(PROGRAMS)]
    told = "\n-D WAYS=4 in p.p4: How many. More are slow.\n"
    assert told in CliRunner().invoke(commands, command).stdout
    assert told not in CliRunner().invoke(commands, [*command, "--chip", "tofino2"]).stdout


def test_a_setting_with_which_the_program_fits_is_found(tmp_path: Path) -> None:
    long, short = ((PROGRAMS / f"{name}.p4").read_text() for name in ("chain13", "chain4"))
    macro = "#ifndef WAYS\n#define WAYS 4\n#endif\n"
    text = (
        f"{macro}#if WAYS == 4\n{long}\n#elif WAYS == 5\nno P4\n#elif WAYS == 1\n{short}\n#endif\n"
    )
    (tmp_path / "p.p4").write_text(text)
    command = ["p4", "fit", str(tmp_path / "p.p4"), "-I", str(PROGRAMS)]
    result = CliRunner().invoke(commands, command)
    assert result.exit_code == 1
    assert result.stdout.endswith("\nWith -D WAYS=1 the program fits.\n")
    asked = json.loads(CliRunner().invoke(commands, [*command, "--json"]).stdout)
    assert (asked["fits"], asked["fits_with"]) == (False, "WAYS=1")
    given = CliRunner().invoke(commands, [*command, "-D", "WAYS=4"])
    assert "With -D" not in given.stdout


def test_the_command(tmp_path: Path) -> None:
    runner = CliRunner()
    out = tmp_path / "fit.html"
    arguments = ["p4", "fit", str(PROGRAMS / "chain13.p4"), "--json", "--html", str(out)]
    result = runner.invoke(commands, arguments)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["fits"] is False
    assert "does not fit" in out.read_text()
    result = runner.invoke(commands, [*arguments[:3], "--chip", "tofino2"])
    assert result.exit_code == 0, result.output
    result = runner.invoke(commands, [*arguments[:3], "--chip", "tofino3"])
    assert result.exit_code == 2
