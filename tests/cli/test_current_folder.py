"""Nothing in the current folder is imported by `python -m gradplane`, whatever its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODULES = ("typing", "pathlib", "random", "numpy", "json", "rich", "typer", "logging")


@pytest.mark.parametrize("options", [[], ["-P"], ["-X", "dev"]])
def test_modules_there_do_not_run(tmp_path: Path, options: list[str]) -> None:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the current folder')")
    command = [sys.executable, *options, "-m", "gradplane", "codecs", "list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "thc" in done.stdout
