"""A run for other programs to show: its timeline for Perfetto, its metrics for TensorBoard.

Both formats are written without those programs' packages.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

from gradplane._whole_files import write_output, write_whole
from gradplane.hosts.protocols.results import TRANSIENT
from gradplane.pages.report import round_records
from gradplane.pages.report.round_records import PHASES, RecordedRounds, Round
from gradplane.runs.records import script_run
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

_LEARNT = {"loss": "loss", "test_accuracy": "test accuracy"}
_SENT = {"missed": "results missed", "wire_up": "bytes up", "wire_down": "bytes down"}


def write_scalars(run: RunData, folder: Path) -> list[Path]:
    """Write loss, accuracy, bytes and times over the rounds, a folder for each job; return the
    files."""
    return [
        _write(folder / re.sub(r"[^\w.-]+", "-", job.name), map(_scalars, job.rounds))
        for job in round_records.read(run)
    ]


def write_script_scalars(run: Path, folder: Path) -> Path:
    """Write what a script of `gradplane torchrun` recorded, of each round the bytes, the results
    missed and the time, and the milliseconds of each bucket; return the file."""
    origin, hosts = script_run.read(run)
    buckets: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for reduce in chain.from_iterable(host.reduces for host in hosts):
        kept = reduce["tensor"] < TRANSIENT
        name = f"bucket {reduce['tensor']}, ms" if kept else "all_reduce, ms"
        buckets[reduce["iteration"]][name].append(reduce["finished"] - reduce["started"])
    events = []
    for line in script_run.rounds(hosts):
        step = line["training_round"]
        values = {name: line[key] for key, name in _SENT.items()}
        values["round, ms"] = (line["finished"] - line["started"]) / 1e6
        values |= {name: mean(found) / 1e6 for name, found in buckets[step].items()}
        events.append((line["finished"], step, values))
    events += _recorded(script_run.values(run), origin)
    return _write(folder, (_event(*event) for event in sorted(events, key=itemgetter(0))))


def _recorded(
    ranks: Sequence[Sequence[Values]], origin: int
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Yield time, step and the ranks' means of the numbers that all of them recorded."""
    for number, records in enumerate(zip(*ranks, strict=False)):
        first = records[0]
        means = {
            _LEARNT.get(name, name): mean(record[name] for record in records)
            for name in first.keys() - {"at", "step"}
            if all(isinstance(record.get(name), int | float) for record in records)
        }
        if means:
            step = first.get("step")
            counts = isinstance(step, int) and step >= 0
            yield first["at"] - origin, step if counts else number, means


def _write(folder: Path, events: Iterable[bytes]) -> Path:
    """Write a file of events, behind one that names the format's version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "events.out.tfevents.0.gradplane"
    version = _field(3, b"brain.Event:2")
    write_whole(path, b"".join(map(_record, (version, *events))))
    return path


def _scalars(r: Round) -> bytes:
    names = _LEARNT | _SENT
    values = {name: r.line[key] for key, name in names.items() if r.line.get(key) is not None}
    return _event(r.line["finished"], r.number, values | {"round, ms": r.took / 1e6})


def _event(at: int, step: int, values: dict[str, float]) -> bytes:
    """Return an Event: wall_time 1, step 2, summary 5, of values 1 with tag 1, simple_value 2."""
    summary = b"".join(
        _field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
        for name, value in values.items()
    )
    time = b"\x09" + struct.pack("<d", at / 1e9)
    return time + b"\x10" + _varint(step) + _field(5, summary)


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
