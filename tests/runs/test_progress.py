"""What a run shows of its progress."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from gradplane.runs import progress
from gradplane.runs.records.recorder import Tally


def test_a_narrow_terminal_shows_the_time_left_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress._Pace, "left", lambda *round: ", 12 min left")
    tally, file = Tally(2), io.StringIO()
    tally.traffic["packets_up"] = 1_000_000
    recorder: Any = SimpleNamespace(jobs=[tally], drops=1234)
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    with progress.show(console, "baseline", [100]) as shown:
        tally.rounds = 10
        shown(recorder, 0)
    assert "training round 9 loss" in file.getvalue()
    assert "12 min left" in file.getvalue() and "…" not in file.getvalue()
