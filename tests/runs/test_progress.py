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
        run_experiment,
        "show",
        lambda _, title, rounds, every: progress.Lines(console, title, rounds),
    )
    summary = run(tmp_path / "e.toml", tmp_path / "run", net="sim")
    console.print(output_tables.results(summary))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    first, *_, last = [line for line in text.splitlines() if line.startswith("run: training round")]
    assert first.startswith("run: training round 0 ") and " acc - " in first
    assert last.startswith(f"run: training round {summary.values['rounds'] - 1} ")
    shown = re.findall(r"[\d.]+%", last)
    assert shown == re.findall(r"test accuracy +([\d.]+%)", text)


def test_the_time_left_follows_from_the_rounds_since_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([5.0, 5.0, 0.0, 6.0, 0.0, 21.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    pace = progress._Pace([101])
    assert [pace.left(0, done) for done in (1, 11)] == ["", ", 9 s left"]
    assert pace.left(0, 101) == ""
