"""Runs for other programs: Perfetto's trace events, TensorBoard's files."""

import json
from pathlib import Path

import pytest
from event_files import scalars

from gradplane.pages import exports
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary


def test_a_timeline_has_a_track_for_each_worker_and_slot(
    lossy_run: Summary, tmp_path: Path
) -> None:
    run = RunData.read(lossy_run.folder)
    exports.write_timeline(run, tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    tracks = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert tracks[:4] == ["rounds", "worker 0", "worker 1", "worker 2"]
    assert tracks[4:] == [f"slot {n}" for n in range(len(tracks) - 4)] and len(tracks) > 4
    rounds = [e for e in events if e["ph"] == "X" and e["tid"] == 0]
    assert [e["name"] for e in rounds] == [f"round {n}" for n in range(6)]
    last = run.metrics[-1]
    assert rounds[-1]["ts"] + rounds[-1]["dur"] == pytest.approx(last["finished"] / 1e3)
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")
    assert any(e["name"] == "lost" for e in events if e["ph"] == "i")


def test_the_checksum_is_crc32c() -> None:
    assert exports.crc32c(b"123456789") == 0xE3069283


def test_scalars_are_those_of_the_metrics(lossy_run: Summary, tmp_path: Path) -> None:
    run = RunData.read(lossy_run.folder)
    (file,) = exports.write_scalars(run, tmp_path)
    assert file.name.startswith("events.out.tfevents.")
    for (at, step, values), line in zip(scalars(file), run.metrics, strict=True):
        assert (at, step) == (line["finished"] / 1e9, line["training_round"])
        assert values["loss"] == pytest.approx(line["loss"])
        assert values["bytes up"] == line["wire_up"]
        assert ("test accuracy" in values) == ("test_accuracy" in line)
