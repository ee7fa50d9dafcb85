"""The lines that a run prints where there is no terminal."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from gradplane.cli import output_tables
from gradplane.runs import progress, run_experiment
from gradplane.runs.run_experiment import run

EXPERIMENT = """
[topology]
workers = 2
[[job]]
model = { name = "mlp", hidden = [20] }
batch = 300
epochs = 3
[output]
baseline = false
report = false
"""


def test_the_last_line_has_the_tables_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last epoch's accuracy is known after its last round only."""
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    console = Console(file=io.StringIO(), width=80)
    monkeypatch.setattr(
        run_experiment, "show", lambda _, title, rounds: progress.Lines(console, title, rounds)
    )
    summary = run(tmp_path / "e.toml", tmp_path / "run", net="sim")
    console.print(output_tables.results(summary))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    first, *_, last = [line for line in text.splitlines() if line.startswith("run: round")]
    assert first.startswith("run: round 1 ") and " acc - " in first
    assert last.startswith(f"run: round {summary.values['rounds']} ")
    shown = re.findall(r"[\d.]+%", last)
    assert shown == re.findall(r"test accuracy +([\d.]+%)", text)
