"""Runs for other programs: Perfetto's trace events, TensorBoard's files."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


def records(data: bytes) -> Iterator[bytes]:
    while data:
        (length,) = struct.unpack_from("<Q", data)
        assert data[8:12] == exports._masked(data[:8])
        yield data[12 : 12 + length]
        assert data[12 + length : 16 + length] == exports._masked(data[12 : 12 + length])
        data = data[16 + length :]


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of a protobuf message's fields."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        content, at = message[at : at + size], at + size
        yield (
            number,
            content if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", content)[0],
        )


def test_scalars_are_those_of_the_metrics(lossy_run: Summary, tmp_path: Path) -> None:
    run = RunData.read(lossy_run.folder)
    (file,) = exports.write_scalars(run, tmp_path)
    assert file.name.startswith("events.out.tfevents.")
    version, *events = map(dict, map(fields, records(file.read_bytes())))
    assert version == {3: b"brain.Event:2"}
    for event, line in zip(events, run.metrics, strict=True):
        assert (event[1], event.get(2)) == (line["finished"] / 1e9, line["training_round"])
        values = dict(tuple(dict(fields(v)).values()) for _, v in fields(event[5]))
        assert values[b"loss"] == pytest.approx(line["loss"])
        assert values[b"bytes up"] == line["wire_up"]
        assert (b"test accuracy" in values) == ("test_accuracy" in line)
