"""`gradplane stf`."""

from pathlib import Path

from typer.testing import CliRunner

from gradplane.cli.app import app

FEATURES = Path(__file__).parent / "features"


def test_files_are_tested_one_by_one_and_set_the_exit_status(tmp_path: Path) -> None:
    program = FEATURES / "slices.p4"
    result = CliRunner().invoke(app, ["stf", str(program), "--engine", "interpreter"])
    assert (result.exit_code, result.output) == (0, f"PASS {program}\n1 passed, 0 failed\n")
    result = CliRunner().invoke(app, ["stf", str(program.with_suffix(".stf"))])
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "1 passed, 0 failed")
    missing = tmp_path / "no.p4"
    result = CliRunner().invoke(app, ["stf", str(program), str(missing)])
    assert (result.exit_code, result.output) == (
        1,
        f"PASS {program}\nFAIL {missing}: there is no packet test {tmp_path}/no.stf\n"
        "1 passed, 1 failed\n",
    )


def test_a_program_and_its_tests_with_all_mistakes_and_the_reason_of_drops(tmp_path: Path) -> None:
    program, test = FEATURES / "match_exact.p4", tmp_path / "mine.stf"
    arguments = ["stf", str(program), str(test), "--engine", "interpreter"]
    test.write_text("add none x:1 y()\nwait\nsetdefault nix y()\n")
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert lines[0].startswith(f"FAIL {test}: {test}:1: there is no table 'none'")
    assert lines[1].startswith(f"{test}:3: there is no table 'nix'")
    test.write_text("packet 1 00 05 02 00 0000\nexpect 2 00\n")
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert lines[-2].startswith("    dropped in the switch: 1 "), lines


def test_wrong_usage_ends_with_status_2() -> None:
    assert CliRunner().invoke(app, ["stf"]).exit_code == 2
    assert CliRunner().invoke(app, ["stf", "a.p4", "--engine", "quick"]).exit_code == 2
