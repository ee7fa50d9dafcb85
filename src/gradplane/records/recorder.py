"""Take the hosts' log records as they come, write the run folder's lines, and add them up.

docs/architecture.md lists the records. A line of metrics.jsonl is a training round of a job: the
records of all its workers, and the accuracies where an epoch ended with it.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from gradplane.records.run_folder import ARRIVALS, IMPAIRMENTS, METRICS

Record = dict[str, Any]

TRAFFIC = ("packets_up", "packets_down", "payload_up", "payload_down", "wire_up", "wire_down")
PARTS = ("compute", "codec", "reduce", "communication")
"""The parts of a round's time: computing the gradient, encoding and decoding, adding (by hosts, a
server's too), and the rest, in which a worker waits for the network or for others."""
_ARRIVALS = ("arrival", "norm", "epoch", "stall")


class StallError(Exception):
    """No round ended for too long; the message names who waits for what, and who is missing."""


@dataclass
class JobTally:
    """The sums of a job's records so far. Times in ns since the experiment's start."""

    workers: int
    rounds: int = 0
    results: int = 0  # packets of sums that its workers needed, in time or not, from the switch
    started: int | None = None
    finished: int = 0
    loss: float = 0.0
    missed: int = 0
    synchronised: int = 0  # epochs after which parameters were copied
    accuracies: dict[int, float] = field(
        default_factory=dict
    )  # by worker: the latest on the test rows
    weights: dict[int, str] = field(default_factory=dict)  # by worker: the last parameters' digest
    traffic: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)  # ns of PARTS, the workers' added up

    def add_round(self, line: Record) -> None:
        """Take a line of metrics.jsonl."""
        for worker in line["workers"]:
            own = {part: worker.get(part, 0) for part in ("codec", "reduce")}
            waiting = worker["finished"] - worker["computed"] - sum(own.values())
            computing = worker["computed"] - worker["started"]
            self.parts.update(own | {"compute": computing, "communication": waiting})
        self.rounds += 1
        self.loss = line["loss"]
        self.missed += line["missed"]
        self.started = (
            line["started"] if self.started is None else min(self.started, line["started"])
        )
        self.finished = max(self.finished, line["finished"])
        self.traffic.update({key: line[key] for key in TRAFFIC})

    def add_epoch(self, record: Record) -> None:
        """Take a worker's record of an epoch's end."""
        self.accuracies[record["worker"]] = record["test_accuracy"]
        self.synchronised += record["worker"] == 0 and record["source"] is not None

    def add_arrival(self, record: Record) -> None:
        """Take a worker's record of a result; a late one was recorded as lost before."""
        self.results += record["slot"] is not None and record["result"] != "late"

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

    patience: ns that may pass without a round's end while workers say that they wait."""

    def __init__(
        self,
        folder: Path,
        workers: list[int],
        on_round: Callable[["Recorder", int], None],
        patience: int,
    ) -> None:
        self._patience = patience
        self._progress = 0  # when the last round ended, ns
        self._lost: Counter[str] = Counter()  # packets lost since then, by link and direction
        self.jobs = [JobTally(count) for count in workers]
        self.verdicts: Counter[tuple[str, str]] = Counter()  # by (verdict, direction)
        self.stalls: dict[tuple[int, int], Record] = {}  # by (job, worker): the last
        self._on_round = on_round
        self._files: dict[str, TextIO] = {}
        self._folder = folder
        self._open: dict[tuple[int, int], list[Record]] = {}  # rounds that not all workers ended
        self._epochs: dict[tuple[int, int], list[Record]] = {}  # that not all workers ended
        self._held: dict[int, Record] = {}  # by job: a line that may still get accuracies
        self._handlers: dict[str, Callable[[Record], None]] = {
            "round": self._round,
            "epoch": self._epoch,
            "arrival": self._arrival,
            "done": self._done,
            "verdict": self._verdict,
            "stall": self._stall,
            "parts": self._server_parts,
        }

    def __enter__(self) -> "Recorder":
        for name in (METRICS, IMPAIRMENTS, ARRIVALS):
            self._files[name] = (self._folder / name).open("w", encoding="utf-8", buffering=1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for job in list(self._held):
            self._release(job)
        for file in self._files.values():
            file.close()

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
        return sum(n for (verdict, _), n in self.verdicts.items() if verdict != "delay")

    def _round(self, record: Record) -> None:
        number, training_round = record["job"], record["round"]
        records = self._open.setdefault((number, training_round), [])
        records.append(record)
        job = self.jobs[number]
        if len(records) == job.workers:
            del self._open[number, training_round]
            self._release(number)
            line = self._held[number] = merge(records)
            job.add_round(line)
            self._progress = max(self._progress, job.finished)
            self._lost.clear()
            self._on_round(self, number)

    def _epoch(self, record: Record) -> None:
        job = self.jobs[record["job"]]
        job.add_epoch(record)
        ended = self._epochs.setdefault((record["job"], record["epoch"]), [])
        ended.append(record)
        if len(ended) == job.workers:  # the line held is that of the epoch's last round
            del self._epochs[record["job"], record["epoch"]]
            for key in ("train_accuracy", "test_accuracy"):
                self._held[record["job"]][key] = _mean(ended, key)

    def _arrival(self, record: Record) -> None:
        self.jobs[record["job"]].add_arrival(record)

    def _server_parts(self, record: Record) -> None:
        """Subtract a server's work from the communication time: all workers wait for it."""
        job = self.jobs[record["job"]]
        for part in ("codec", "reduce"):
            job.parts[part] += job.workers * record[part]
            job.parts["communication"] -= job.workers * record[part]

    def _done(self, record: Record) -> None:
        job = self.jobs[record["job"]]
        job.accuracies[record["worker"]] = record["test_accuracy"]
        job.weights[record["worker"]] = record["weights"]

    def _verdict(self, record: Record) -> None:
        self._write(IMPAIRMENTS, record)
        self.verdicts[record["verdict"], record["direction"]] += 1
        if record["verdict"] != "delay":
            self._lost[f"{record['link']} {record['direction']}"] += 1

    def _stall(self, record: Record) -> None:
        self.stalls[record["job"], record["worker"]] = record
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

    def _release(self, job: int) -> None:
        """Write the job's last line, which is complete now."""
        line = self._held.pop(job, None)
        if line is not None:
            self._write(METRICS, line)

    def _write(self, file: str, record: Record) -> None:
        self._files[file].write(json.dumps(record, separators=(",", ":")) + "\n")


def _waiting(record: Record) -> str:
    missing = record["missing"]
    names = ", ".join(map(str, missing or [])) if missing is not None else "not known"
    return (
        f"  job {record['job']}, worker {record['worker']} waits for slot {record['slot']},"
        f" round {record['round']}; missing workers: {names}"
    )


def merge(records: list[Record]) -> Record:
    """Merge the `round` records of a job's workers into one line, in worker order."""
    records = sorted(records, key=lambda record: record["worker"])
    first = records[0]
    own = ("kind", "job", "round", "epoch")
    return {
        "job": first["job"],
        "round": first["round"],
        "epoch": first["epoch"],
        "loss": _mean(records, "loss"),
        "started": min(r["started"] for r in records),
        "finished": max(r["finished"] for r in records),
        "missed": sum(r["missed"] for r in records),
        **{key: sum(r[key] for r in records) for key in TRAFFIC},
        "workers": [{k: v for k, v in r.items() if k not in own} for r in records],
    }


def _mean(records: list[Record], key: str) -> float:
    total: float = sum(record[key] for record in records)
    return total / len(records)
