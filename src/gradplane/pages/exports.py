"""A run for other programs to show: its timeline for Perfetto, its metrics for TensorBoard.

Both formats are written without those programs' packages.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradplane._whole_files import write_output, write_whole
from gradplane.pages.report import round_records
from gradplane.pages.report.round_records import PHASES, RecordedRounds, Round
from gradplane.runs.records.run_data import RunData

Values = dict[str, Any]
_SLOTS = 1000  # the first number of a slot's track


def write_timeline(run: RunData, path: Path) -> None:
    """Write Chrome's trace events, which ui.perfetto.dev and chrome://tracing open.

    A process for each job; in it a track for its rounds, one for each worker with the phases of
    its rounds and what happened to its packets, and one for each slot."""
    events = [event for job in round_records.read(run) for event in _job_events(job)]
    write_output(path, json.dumps({"displayTimeUnit": "ms", "traceEvents": events}))


def _job_events(job: RecordedRounds) -> Iterator[Values]:
    tracks = {0: "rounds"} | {1 + worker: f"worker {worker}" for worker in range(job.workers)}
    slots = sorted({slot for r in job.rounds for slot, _ in r.slots})
    tracks |= {_SLOTS + slot: f"slot {slot}" for slot in slots}
    yield _named(job.number, 0, "process_name", job.name)
    for track, name in tracks.items():
        yield _named(job.number, track, "thread_name", name)
    for training_round in job.rounds:
        for event in _round_events(training_round):
            yield {"pid": job.number} | event


def _named(job: int, track: int, kind: str, name: str) -> Values:
    return {"ph": "M", "pid": job, "tid": track, "name": kind, "args": {"name": name}}


def _round_events(r: Round) -> Iterator[Values]:
    yield _span(0, f"round {r.number}", r.started, r.started + r.took)
    for lane in r.lanes:
        for phase, start, end in zip(PHASES, [lane.started, *lane.ends], lane.ends, strict=False):
            if end > start:
                span = _span(1 + lane.worker, phase, start, end)
                yield span | {"args": {"training_round": r.number}}
    for use in r.slots.values():
        sent = use.first if use.sent is None else use.sent
        if sent is not None:
            arguments = {"training_round": r.number, "use": use.use, "attempts": use.attempts}
            span = _span(_SLOTS + use.slot, f"use {use.use}", sent, max(sent, use.last))
            yield span | {"args": arguments}
    for event in r.events:
        if event.at is not None:
            mark = {"ph": "i", "s": "t", "tid": 1 + event.worker, "ts": event.at / 1e3}
            yield mark | {"name": event.what, "args": {"text": event.text}}


def _span(track: int, name: str, start: int, end: int) -> Values:
    return {"ph": "X", "tid": track, "name": name, "ts": start / 1e3, "dur": (end - start) / 1e3}


# TensorBoard: a file of records, each a message Event of TensorFlow in protobuf's encoding

_SCALARS = {
    "loss": "loss",
    "test_accuracy": "test accuracy",
    "missed": "results missed",
    "wire_up": "bytes up",
    "wire_down": "bytes down",
}


def write_scalars(run: RunData, folder: Path) -> list[Path]:
    """Write loss, accuracy, bytes and times over the rounds, a folder for each job; return the
    files."""
    written = []
    for job in round_records.read(run):
        own = folder / re.sub(r"[^\w.-]+", "-", job.name)
        own.mkdir(parents=True, exist_ok=True)
        written.append(own / "events.out.tfevents.0.gradplane")
        version = _field(3, b"brain.Event:2")
        events = [version, *map(_scalars, job.rounds)]
        write_whole(written[-1], b"".join(map(_record, events)))
    return written


def _scalars(r: Round) -> bytes:
    """Return an Event: wall_time 1, step 2, summary 5, of values 1 with tag 1, simple_value 2."""
    values = {name: r.line[key] for key, name in _SCALARS.items() if r.line.get(key) is not None}
    values["round, ms"] = r.took / 1e6
    summary = b"".join(
        _field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
        for name, value in values.items()
    )
    time = b"\x09" + struct.pack("<d", r.line["finished"] / 1e9)
    return time + b"\x10" + _varint(r.number) + _field(5, summary)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    head = bytearray()
    while value > 0x7F:
        head.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*head, value])


def _record(content: bytes) -> bytes:
    """Return a TFRecord: the length, the content, and a masked checksum behind each."""
    length = struct.pack("<Q", len(content))
    return length + _masked(length) + content + _masked(content)


def _masked(data: bytes) -> bytes:
    found = crc32c(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """Return the checksum CRC-32C."""
    found = 0xFFFFFFFF
    for byte in data:
        found = found >> 8 ^ _TABLE[(found ^ byte) & 0xFF]
    return found ^ 0xFFFFFFFF


def _table_entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


_TABLE = tuple(map(_table_entry, range(256)))
