"""docs/tofino.md: its program compiles and its code runs, in both engines."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tofino.md").read_text()
PROGRAMS = re.findall(r"^```p4 (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_the_blocks_run(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, program in PROGRAMS:
        Path(name).write_text(program)
    for block in PYTHON:
        exec(block.replace('.p4")', f'.p4", engine="{engine}")'), {})
