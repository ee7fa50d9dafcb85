"""Undelivered data does not count as compression, and is shown."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gradplane.cli import output_tables
from gradplane.pages.report import page
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary, undelivered
from gradplane.runs.run_experiment import run

QUEUES = """
[topology]
workers = 4
rate = "100Mbit"
queue = 2
[[job]]
model = { name = "mlp", hidden = [100] }
epochs = 1
batch = 300
timeout_ms = 2
slots = 64
"""
LEFT_OUT = """
[topology]
workers = 3
[[job]]
model = { name = "mlp", hidden = [20] }
epochs = 1
batch = 300
timeout_ms = 20
quorum = 2
[[impairment]]
model = "straggler"
count = 1
leave_out = true
[output]
baseline = false
"""


def finished(text: str, folder: Path) -> Summary:
    (folder / "e.toml").write_text(text)
    return run(folder / "e.toml", folder / "run", net="sim")


@pytest.fixture(scope="module")
def congested(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Return a run with eight packets a round, all at once through queues of two."""
    return finished(QUEUES, tmp_path_factory.mktemp("congested"))


@pytest.fixture(scope="module")
def left_out(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Return a run in which the packets of one of three workers come too late in each round."""
    return finished(LEFT_OUT, tmp_path_factory.mktemp("left_out"))


def job(summary: Summary) -> dict[str, Any]:
    found: dict[str, Any] = summary.values["jobs"][0]
    return found


def test_results_that_queues_dropped_are_needed(congested: Summary) -> None:
    found = job(congested)
    assert found["missed"] > 0
    assert found["needed"] == {"payload_up": 8 * 512, "payload_down": 8 * 1024}
    lost = found["missed"] / (4 * found["rounds"]) * 1024
    assert undelivered(found, "down") == pytest.approx(lost)


def test_packets_that_come_too_late_are_traffic(left_out: Summary) -> None:
    found = job(left_out)
    assert found["needed"] == {"payload_up": 2 * 512, "payload_down": 2 * 1024}
    assert found["traffic"]["payload_up"] == 2 * 512
    assert undelivered(found, "down") == 0


def test_the_report_compares_what_was_needed(congested: Summary) -> None:
    text = page.write([congested.folder]).read_text()
    values = job(congested)["values"]
    assert f"{4 * values / (8 * 1024):.2f}× less" in text
    assert f"8,192 B needed, {job(congested)['traffic']['payload_down']:,.0f} B arrived" in text


def test_the_table_shows_misses_and_queue_drops_in_red(congested: Summary) -> None:
    console = Console(width=80, force_terminal=True, color_system="standard", record=True)
    with console.capture() as captured:
        console.print(output_tables.results(congested))
    lines = {line.split("  ")[0].strip(): line for line in captured.get().splitlines()}
    for label in ("results missed", "packets dropped by queues"):
        assert "\x1b[1;31m" in lines[label]
    assert "if all had arrived" in captured.get()
    assert "\x1b[1;31m" not in lines["rounds"]


def test_folders_of_older_versions_get_the_same(congested: Summary) -> None:
    recorded = RunData.read(congested.folder)
    assert recorded.stored is not None
    expected = job(congested)["needed"]
    recorded.stored["jobs"][0].pop("needed")
    assert recorded.summary["jobs"][0]["needed"] == expected
