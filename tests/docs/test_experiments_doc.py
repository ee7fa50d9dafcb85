"""docs/experiments.md: its worked example trains, and its tables are what the code computes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane import codecs
from gradplane.hosts.wire import aggregation

DOCUMENT = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()


def chapter(title: str) -> str:
    return DOCUMENT.split(f"## {title}\n")[1].split("\n## ")[0]


def block(kind: str, text: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(text: str, columns: int) -> list[list[str]]:
    """Return the rows of a chapter's tables of so many columns that begin with a number."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if len(cells) == columns and cells[0][0].isdigit()]


def test_the_script_runs_the_experiment_and_prints_its_summary(tmp_path: Path) -> None:
    small = 'model = { name = "mlp", hidden = [8] }'
    (tmp_path / "mine.toml").write_text(f"[topology]\nworkers = 2\n[[job]]\n{small}\n")
    (tmp_path / "script.py").write_text(block("python run", DOCUMENT))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"mine: test accuracy \d+\.\d\d%, in runs/python", first), first
    assert second.endswith("runs/python/report.html")


def test_the_user_defined_model_trains_through_the_switch(tmp_path: Path) -> None:
    text = chapter("A user-defined model and data set")
    (tmp_path / "rings.py").write_text(block("python", text))
    (tmp_path / "rings.toml").write_text(block("toml", text))
    (command,) = re.findall(r"^\$ gradplane (.*)$", text, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "gradplane", *command.split(), "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["test_accuracy"] > 0.95
    assert summary["jobs"][0]["values"] == 1002


def test_the_largest_granularities() -> None:
    table = rows(chapter("Choosing slots, timeout, quorum and sum_bits"), 3)
    assert len(table) == 7
    for quorum, *largest in ([int(cell) for cell in cells] for cells in table):
        for width, granularity in zip((8, 16), largest, strict=True):
            assert codecs.sum_overflow(granularity, quorum, width) is None
            assert codecs.sum_overflow(granularity + 1, quorum, width) is not None
    assert codecs.sum_overflow(15, 17, 8) is None and codecs.sum_overflow(15, 18, 8)


@pytest.mark.parametrize("cells", rows(chapter("Padding to powers of two"), 6))
def test_what_padding_costs(cells: list[str]) -> None:
    values, lanes, packets = (int(cells[k].replace(",", "")) for k in (0, 2, 3))
    assert codecs.get("thc").lanes(values) == lanes
    parts = [f"{part.lanes:,}" for part in codecs.get("thc").partitions(values)]
    assert cells[1] == " + ".join(parts) or int(cells[1].split()[0].strip(",")) <= len(parts)
    assert -(-lanes // aggregation.LANES[8]) == packets
    assert f"{lanes / values - 1:.1%}" == cells[4]
    assert f"{codecs.get('thc', version=1).lanes(values) / values - 1:.1%}" == cells[5]
