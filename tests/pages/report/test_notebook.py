"""The example notebook runs, and summaries show themselves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.runs.records.summary import Summary

NOTEBOOK = Path(__file__).parents[3] / "examples" / "slow_round.ipynb"


def test_a_summary_shows_itself_and_gives_frames(small_run: Callable[..., Summary]) -> None:
    summary = small_run()
    shown = summary._repr_html_()
    assert f"<tr><th>test accuracy</th><td>{summary.test_accuracy:.2%}</td></tr>" in shown
    assert "<th>baseline</th>" not in shown
    rounds, workers = summary.rounds(), summary.workers()
    assert list(rounds["training_round"]) == list(range(6))
    assert len(workers) == 18
    means = workers.groupby("training_round")["loss"].mean()
    assert list(means) == pytest.approx(list(rounds["loss"]))


def test_the_example_notebook_finds_the_slow_round() -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client(notebook, timeout=300, kernel_name="python3").execute()
    slowest = notebook.cells[2].outputs[0]["data"]["text/plain"].splitlines()[1].split()
    assert slowest[1] == "46" and 4900 < float(slowest[2]) < 5200
