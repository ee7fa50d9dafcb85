"""A document's commands as a user types them, in this process: most take less than its start."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from gradplane.cli import main


def run_commands(lines: Iterable[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder, one after the other; each must end with status 0."""
    monkeypatch.chdir(folder)
    for line in lines:
        words = line.split()
        assert words[0] == "gradplane", line
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert not ended.value.code, line
