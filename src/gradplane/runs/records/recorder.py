"""Take the hosts' log records as they come, write the run folder's lines, and add them up.

docs/architecture.md lists the records. A line of metrics.jsonl is a training round of a job: the
records of all its workers, and the accuracies where an epoch ended with it.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path
from typing import Any, TextIO

from gradplane.hosts.absences import Absence, present
from gradplane.hosts.impairments.packet_types import ARRIVING
from gradplane.runs.records.run_folder import (
    ARRIVALS,
    IMPAIRMENTS,
    LINKS,
    METRICS,
    close_named,
    with_name,
)
from gradplane.topologies.network import Network

Record = dict[str, Any]

TRAFFIC = ("packets_up", "packets_down", "payload_up", "payload_down", "wire_up", "wire_down")
NEEDED = ("needed_up", "needed_down")
"""The payload without what streams sent again."""
PARTS = ("compute", "codec", "reduce", "communication")
"""The parts of a round's time: computing the gradient, encoding and decoding, adding (by hosts, a
server's too), and the rest, in which a worker waits for the network or for others."""
_ARRIVALS = (
    "arrivals",
    "arrival",
    "norm",
    "epoch",
    "redo",
    "stall",
    "crash",
    "join",
    "timeline",
    "timeout",
    "resend",
    "window",
)


class StallError(Exception):
    """No round ended for too long; the message names who waits for what, and who is missing."""


@dataclass(frozen=True)
class EpochEnd:
    """A job at the end of an epoch: rounds so far, seconds since its start, accuracy from 0 to 1 on
    the test rows as a mean over the workers."""

    rounds: int
    seconds: float
    test_accuracy: float


@dataclass
class Tally:
    """The sums of a job's records so far. Times in ns since the experiment's start."""

    workers: int
    rounds: int = 0
    worker_rounds: int = 0  # rounds of each worker, added up
    results: int = 0  # packets of sums that its workers needed, in time or not, from the switch
    started: int | None = None
    finished: int = 0
    loss: float = 0.0
    missed: int = 0
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)  # of bounded transport
    sent_again: int = 0  # packets, by workers and servers
    copied: set[int] = field(default_factory=set)  # epochs after which parameters were copied
    accuracies: dict[int, float] = field(
        default_factory=dict
    )  # by worker: the latest on the test rows
    weights: dict[int, str] = field(default_factory=dict)  # by worker: the last parameters' digest
    traffic: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)  # ns of PARTS, the workers' added up
    device: Counter[str] = field(default_factory=Counter)  # ns on the bus to devices, likewise
    curve: list[EpochEnd] = field(default_factory=list)  # in order

    def add_round(self, line: Record) -> None:
        """Take a line of metrics.jsonl."""
        for worker in line["workers"]:
            own = {part: worker.get(part, 0) for part in ("compute", "codec", "reduce")}
            waiting = worker["finished"] - worker["computed"] - sum(own.values())
            own["compute"] += worker["computed"] - worker["started"]
            self.parts.update(own | {"communication": waiting})
            self.device.update(worker.get("device", {}))
        self.rounds += 1
        self.worker_rounds += len(line["workers"])
        self.loss = line["loss"]
        self.missed += line["missed"]
        self.started = (
            line["started"] if self.started is None else min(self.started, line["started"])
        )
        self.finished = max(self.finished, line["finished"])
        self.traffic.update({key: line[key] for key in TRAFFIC})
        self.traffic.update({key: line[key] for key in NEEDED if key in line})

    def add_resend(self, record: Record) -> None:
        """Take a record of kind "timeout" or "resend"."""
        if record["kind"] == "resend":
            self.sent_again += record["segments"]
        elif record["stage"] != "given up":
            self.sent_again += len(record["slots"])

    def add_epoch(self, record: Record) -> None:
        """Take a worker's record of an epoch's end."""
        self.accuracies[record["worker"]] = record["test_accuracy"]
        if record["source"] is not None:
            self.copied.add(record["epoch"])

    @property
    def synchronised(self) -> int:
        """The number of epochs after which parameters were copied."""
        return len(self.copied)

    def add_accuracy(self, line: Record) -> None:
        """Take the line of an epoch's last round once it has the accuracies."""
        seconds = (line["finished"] - (self.started or 0)) / 1e9
        self.curve.append(EpochEnd(line["training_round"] + 1, seconds, line["test_accuracy"]))

    def reached(self, test_accuracy: float) -> EpochEnd | None:
        """Return the first end of an epoch with at least that accuracy; None if there is none."""
        return next((end for end in self.curve if end.test_accuracy >= test_accuracy), None)

    def add_arrival(self, record: Record) -> None:
        """Take a worker's record of a result; a late one was recorded as lost before."""
        self.results += record["slot"] is not None and record["result"] != "late"
        self._add_lost(record)

    def add_arrivals(self, record: Record) -> None:
        """Take a worker's record of all results of a reduce."""
        self.results += record["chunks"]
        self._add_lost(record)

    def _add_lost(self, record: Record) -> None:
        for stage, (lost, sent) in record.get("lost", {}).items():
            self.lost.update({(stage, "lost"): lost, (stage, "sent"): sent})

    @property
    def test_accuracy(self) -> float | None:
        """The workers' mean test accuracy, from 0 to 1; None before the first epoch's end."""
        known = self.accuracies.values()
        return sum(known) / len(known) if known else None

    @property
    def seconds(self) -> float:
        """The time from the first round's start to the last one's end, in experiment time."""
        return (self.finished - (self.started or 0)) / 1e9


class Recorder:
    """A context manager: call it with each record; `on_round` is called after each whole round.

    patience: ns that may pass without a round's end while workers say that they wait. absences:
    those of each job's workers; none where it is empty."""

    def __init__(
        self,
        folder: Path,
        workers: list[int],
        on_round: Callable[["Recorder", int], None],
        patience: int,
        absences: Sequence[Sequence[Absence]] = (),
    ) -> None:
        self._patience = patience
        self._progress = 0  # when the last round ended, ns
        self._lost: Counter[str] = Counter()  # packets lost since then, by link and direction
        self.jobs = [Tally(count) for count in workers]
        self.verdicts: Counter[tuple[str, str]] = Counter()  # by (verdict, direction)
        self.met: set[Met] = set()
        self.stalls: dict[tuple[int, int], Record] = {}  # by (job, worker): the last
        self.background: dict[int, Counter[str]] = {}  # by flow: datagrams sent and received
        self._on_round = on_round
        self._files: dict[str, TextIO] = {}
        self._folder = folder
        self._absences = absences or [()] * len(workers)
        self._last: dict[tuple[int, int], int] = {}  # by (job, worker): its last round
        self._open: dict[tuple[int, int], list[Record]] = {}  # rounds that not all workers ended
        self._ended: dict[tuple[int, int], Record] = {}  # lines that wait for those before them
        self._accuracies: dict[tuple[int, int], Record] = {}  # by job and an epoch's last round
        self._epochs: dict[tuple[int, int], list[Record]] = {}  # that not all workers ended
        self._rounds = _RoundLines(folder / METRICS)
        self._handlers: dict[str, Callable[[Record], None]] = {
            "round": self._round,
            "epoch": self._epoch,
            "arrivals": self._arrivals,
            "arrival": self._arrival,
            "done": self._done,
            "verdict": self._verdict,
            "stall": self._stall,
            "timeout": self._resend,
            "resend": self._resend,
            "parts": self._server_parts,
            "traffic": self._background,
        }

    def __enter__(self) -> "Recorder":
        self._rounds.open()
        for name in (IMPAIRMENTS, ARRIVALS):
            self._files[name] = (self._folder / name).open("w", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        self._rounds.close()
        for file in self._files.values():
            close_named(file)

    def __call__(self, record: Record) -> None:
        """Take one record of any kind."""
        kind = record["kind"]
        if kind in _ARRIVALS:
            self._write(ARRIVALS, record)
        if kind in self._handlers:
            self._handlers[kind](record)

    @property
    def drops(self) -> int:
        """The number of packets that the impairments have lost so far."""
        return sum(n for (verdict, _), n in self.verdicts.items() if lost(verdict))

    def _round(self, record: Record) -> None:
        number, training_round = record["job"], record["round"]
        records = self._open.setdefault((number, training_round), [])
        records.append(record)
        job = self.jobs[number]
        self._last[number, record["worker"]] = training_round
        if len(records) == self._present(number, training_round):
            del self._open[number, training_round]
            self._ended[number, training_round] = merge(records)
        # A round may end before the one before, whose last worker then crashes or is very slow.
        while (line := self._ended.pop((number, job.rounds), None)) is not None:
            self._flush()  # a round that is in the file has its arrivals there, too
            self._rounds.append(number, line)
            job.add_round(line)
            self._amend(number, line["training_round"])
            self._progress = max(self._progress, job.finished)
            self._lost.clear()
            self._on_round(self, number)

    def _flush(self) -> None:
        for name, file in self._files.items():
            try:
                file.flush()
            except OSError as error:  # a full disk
                raise with_name(error, self._folder / name) from None

    def _epoch(self, record: Record) -> None:
        job = self.jobs[record["job"]]
        job.add_epoch(record)
        ended = self._epochs.setdefault((record["job"], record["epoch"]), [])
        ended.append(record)
        last = self._last[record["job"], record["worker"]]
        if len(ended) == self._present(record["job"], last):
            del self._epochs[record["job"], record["epoch"]]
            means = {key: _mean(ended, key) for key in ("train_accuracy", "test_accuracy")}
            self._accuracies[record["job"], last] = means
            self._flush()  # a round that has accuracies has the end of its epoch in the file, too
            self._amend(record["job"], last)

    def _amend(self, number: int, training_round: int) -> None:
        """Add the accuracies of the epoch that ended with a round to its line, once both exist."""
        job = self.jobs[number]
        if job.rounds > training_round and (number, training_round) in self._accuracies:
            means = self._accuracies.pop((number, training_round))
            job.add_accuracy(self._rounds.amend(number, training_round, means))

    def _present(self, job: int, round: int) -> int:
        """Return how many workers take part in a round."""
        workers, absences = self.jobs[job].workers, self._absences[job]
        return len(present(absences, workers, round)) if absences else workers

    def _arrival(self, record: Record) -> None:
        self.jobs[record["job"]].add_arrival(record)

    def _arrivals(self, record: Record) -> None:
        self.jobs[record["job"]].add_arrivals(record)

    def _server_parts(self, record: Record) -> None:
        """Subtract a server's work from the communication time of those that wait for it: all
        workers, or those of its group."""
        job = self.jobs[record["job"]]
        waiting = record.get("workers", job.workers)
        for part in ("codec", "reduce"):
            job.parts[part] += waiting * record[part]
            job.parts["communication"] -= waiting * record[part]

    def _background(self, record: Record) -> None:
        counts = self.background.setdefault(record["flow"], Counter())
        counts.update({way: record[way] for way in ("sent", "received")})

    def _resend(self, record: Record) -> None:
        self.jobs[record["job"]].add_resend(record)

    def _done(self, record: Record) -> None:
        job = self.jobs[record["job"]]
        job.accuracies[record["worker"]] = record["test_accuracy"]
        job.weights[record["worker"]] = record["weights"]

    def _verdict(self, record: Record) -> None:
        self._write(IMPAIRMENTS, record)
        self.verdicts[record["verdict"], record["direction"]] += 1
        self.met |= met(record)
        if lost(record["verdict"]):
            self._lost[f"{record['link']} {record['direction']}"] += 1

    def _stall(self, record: Record) -> None:
        self.stalls[record["job"], record["worker"]] = record
        self._flush()  # for whoever looks on while nothing moves
        if record["at"] - self._progress > self._patience:
            raise StallError(self._stalled())

    def _stalled(self) -> str:
        recent = [r for r in self.stalls.values() if r["at"] > self._progress]
        lines = [f"stalled: no round ended for {self._patience / 1e9:g} s"]
        lines += [_waiting(record) for record in recent]
        if self._lost:
            lost = ", ".join(f"{link} {count}" for link, count in self._lost.most_common())
            lines.append(f"  packets lost by impairments meanwhile: {lost}")
        return "\n".join(lines)

    def _write(self, file: str, record: Record) -> None:
        try:
            self._files[file].write(_line(record))
        except OSError as error:  # a full disk
            raise with_name(error, self._folder / file) from None


class _RoundLines:
    """metrics.jsonl: each line is in the file at once, whatever ends the run.

    An epoch's accuracies come after the line of its last round, which is then written anew: with
    the lines of other jobs after it, in one call, and never shorter than it was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # By job and round: where a line that may be amended begins.
        self._lines: dict[tuple[int, int], tuple[int, Record]] = {}

    def open(self) -> None:
        """Make the file, empty."""
        self._file = self._path.open("w+b", buffering=0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def append(self, job: int, line: Record) -> None:
        """Write a job's next line."""
        self._lines[job, line["training_round"]] = self._file.seek(0, os.SEEK_END), line
        data = _line(line).encode()
        try:
            if self._file.write(data) < len(data):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as error:
            raise with_name(error, self._path) from None

    def amend(self, job: int, round: int, values: Record) -> Record:
        """Add values to a line of a job, and return it; lines before it are not amended again."""
        begin, line = self._lines[job, round]
        self._file.seek(begin)
        former, end, others = self._file.read().partition(b"\n")
        amended = _line(line | values).encode()
        os.pwrite(self._file.fileno(), amended + others, begin)
        growth = len(amended) - len(former + end)
        self._lines = {
            key: (place + growth if place > begin else place, its)
            for key, (place, its) in self._lines.items()
            if key[0] != job or key[1] > round
        }
        return line | values


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _line(record: Record) -> str:
    return _encode(record) + "\n"


Met = tuple[int, int]
"""An impairment that is a list, and an entry of it that met a packet, both from 0."""


def met(verdict: Record) -> set[Met]:
    """Return the entry of a list that a verdict is of; none of other impairments."""
    return {(verdict["impairment"], verdict["entry"])} if "entry" in verdict else set()


def lost(verdict: str) -> bool:
    """Return whether a packet with that verdict of the impairments did not arrive in time."""
    return verdict not in ARRIVING


def _waiting(record: Record) -> str:
    missing = record["missing"]
    names = ", ".join(map(str, missing or [])) if missing is not None else "not known"
    return (
        f"  job {record['job']}, worker {record['worker']} waits for slot {record['slot']},"
        f" use {record['use']}; missing workers: {names}"
    )


def merge(records: list[Record]) -> Record:
    """Merge the `round` records of a job's workers into one line, in worker order."""
    records = sorted(records, key=lambda record: record["worker"])
    first = records[0]
    own = ("kind", "job", "round", "epoch")
    return {
        "job": first["job"],
        "training_round": first["round"],
        "epoch": first["epoch"],
        "loss": _mean(records, "loss"),
        "started": min(r["started"] for r in records),
        "finished": max(r["finished"] for r in records),
        "missed": sum(r["missed"] for r in records),
        **{key: sum(r[key] for r in records) for key in (*TRAFFIC, *NEEDED) if key in first},
        "workers": [{k: v for k, v in r.items() if k not in own} for r in records],
    }


def _mean(records: list[Record], key: str) -> float:
    total: float = sum(record[key] for record in records)
    return total / len(records)


COLUMNS = ("up_bytes", "down_bytes", "up_dropped", "down_dropped")


class LinkLog:
    """links.jsonl: a line for each round's end, with what every link has done since the one before.

    A context manager; call it at the end of each round, as a Recorder's `on_round`. A line's fields
    are job, training_round, at (ns) and links: for each link of the topology, in its order, bytes
    up and down, packets dropped up and down, and the most frames that waited in the queue up and
    down. Only a network that keeps the queues' peaks, the simulated one, has the file.
    """

    def __init__(self, folder: Path, network: Network) -> None:
        self._path, self._network = folder / LINKS, network

    def __enter__(self) -> "LinkLog":
        self._before = self._network.link_counters() if self._peaks() else []
        self._file = self._path.open("w", encoding="utf-8", buffering=1) if self._before else None
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            close_named(self._file)

    def __call__(self, recorder: Recorder, job: int) -> None:
        """Write the line of the round that the job has just ended."""
        if self._file is None:
            return
        now, peaks = self._network.link_counters(), self._peaks()
        links = [
            [*(getattr(link - before, name) for name in COLUMNS), *peak]
            for link, before, peak in zip(now, self._before, peaks, strict=True)
        ]
        self._before = now
        tally = recorder.jobs[job]
        line = {
            "job": job,
            "training_round": tally.rounds - 1,
            "at": tally.finished,
            "links": links,
        }
        try:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        except OSError as error:
            raise with_name(error, self._path) from None

    def _peaks(self) -> list[tuple[int, int]]:
        return self._network.queue_peaks() or []
