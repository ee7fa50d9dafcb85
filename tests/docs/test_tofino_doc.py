"""docs/tofino.md: its program compiles and its code runs, in both engines."""

import re
import shlex
from pathlib import Path

import pytest

from gradplane.cli.p4_commands import commands

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tofino.md").read_text()
PROGRAMS = re.findall(r"^```p4 (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_report_of_what_fits_is_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = re.search(r"^```console\n\$ gradplane (p4 fit .*?)\n(.*?)^```$", TEXT, re.M | re.S)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    for name, program in PROGRAMS:
        Path(name).write_text(program)
    commands(shlex.split(block[1]), standalone_mode=False)
    printed = capsys.readouterr().out
    for part in block[2].split("...\n"):
        assert part in printed


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_the_blocks_run(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, program in PROGRAMS:
        Path(name).write_text(program)
    for block in PYTHON:
        exec(block.replace('.p4")', f'.p4", engine="{engine}")'), {})
