"""Each round of a job as its workers lived through it: phases, slots, and what happened when.

Times are ns since the experiment's start, as in the run folder.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradplane.pages import figures
from gradplane.runs.records.recorder import lost
from gradplane.runs.records.run_data import STREAM_TYPES, RunData

Line = dict[str, Any]

PHASES = tuple(figures.PHASES)
"""The parts of a worker's round, in order. norms: until the workers' common norm is known. send:
until the last packet was sent for the first time. wait: until the last result came."""


@dataclass
class Lane:
    """A worker's round: when it began, when each of PHASES ended, and the results it missed."""

    worker: int
    started: int
    ends: list[int]
    missed: int

    @property
    def finished(self) -> int:
        """The end of the round for this worker."""
        return self.ends[-1]

    def lengths(self) -> list[int]:
        """Return the length of each of PHASES, in ns."""
        begins = [self.started, *self.ends[:-1]]
        return [end - begin for begin, end in zip(begins, self.ends, strict=True)]


@dataclass
class SlotUse:
    """One use of a slot: the workers in its sum, when it was sent, and when its result came.

    sent: the first known sending, None in folders of older versions. missed_by: the workers that
    never had the result in time."""

    slot: int
    use: int
    bitmap: int = 0
    sent: int | None = None
    first: int | None = None
    last: int = 0
    attempts: int = 0
    missed_by: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """Something that happened to a worker in a round. at: None in folders of older versions.

    line: the record, of kind "verdict", "timeout", "resend", "stall", "redo", "crash" or
    "join"."""

    worker: int
    at: int | None
    what: str
    text: str
    line: Line

    @property
    def sent_again(self) -> int:
        """The number of packets that were sent again."""
        if self.what != "sent again":
            return 0
        return int(self.line.get("segments") or len(self.line["slots"]))


@dataclass
class Round:
    """A round of training: its line of metrics.jsonl and what belongs to it.

    after: what happened to streams behind it, at the end of an epoch."""

    line: Line
    lanes: list[Lane]
    slots: dict[tuple[int, int], SlotUse] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    after: list[Event] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The round's number, from 0."""
        return int(self.line["training_round"])

    @property
    def started(self) -> int:
        """The start of the round's first worker."""
        return int(self.line["started"])

    @property
    def took(self) -> int:
        """The time from the first worker's start to the last one's end."""
        return int(self.line["finished"] - self.line["started"])


@dataclass(frozen=True)
class RecordedRounds:
    """A job's recorded rounds, in order.

    racks, roots: of a job that several switches sum, the leaf of each worker, and the switches that
    give the results of slots, in turn; else empty.
    """

    number: int
    name: str
    workers: int
    hosts: dict[str, int]  # the worker of each host's name
    rounds: list[Round]
    racks: Sequence[str] = ()
    roots: Sequence[str] = ()


def read(run: RunData) -> list[RecordedRounds]:
    """Return the rounds of all jobs."""
    exchanges = _exchanges(run)
    jobs = []
    for number, job in enumerate(run.experiment.job):
        lines = [line for line in run.metrics if line["job"] == number]
        rounds = [_round(line, exchanges) for line in lines]
        hosts = {
            config.name: config.worker
            for config in run.deployment.hosts
            if config.job.number == number and config.worker is not None
        }
        found = run.deployment.racks(number)
        roots = run.deployment.roots(number) if found else ()
        jobs.append(RecordedRounds(number, job.name or "", job.size, hosts, rounds, found, roots))
    _add_slots(run, jobs)
    _add_events(run, jobs)
    return jobs


@dataclass
class _Exchange:
    """A worker's exchange in a round: when it had the norm, sent last, and had the last result."""

    norm: int = 0
    sent: int = 0
    result: int = 0


def _exchanges(run: RunData) -> dict[tuple[int, int, int], _Exchange]:
    """Return the exchanges by job, round and worker."""
    found: dict[tuple[int, int, int], _Exchange] = defaultdict(_Exchange)
    for line in run.arrivals:
        if line["kind"] not in ("norm", "arrival") or line["result"] == "late":
            continue
        exchange = found[line["job"], line["ticket"], line["worker"]]
        if line["kind"] == "norm":
            exchange.norm = max(exchange.norm, line["at"])
        else:
            exchange.result = max(exchange.result, line.get("at", 0))
            if line.get("attempts") == 1:
                exchange.sent = max(exchange.sent, line.get("sent", 0))
    return found


def _round(line: Line, exchanges: dict[tuple[int, int, int], _Exchange]) -> Round:
    lanes = []
    for worker in line["workers"]:
        exchange = exchanges[line["job"], line["training_round"], worker["worker"]]
        lanes.append(_lane(worker, exchange))
    return Round(line, lanes)


def _lane(worker: Line, exchange: _Exchange) -> Lane:
    """Return the lane of a worker; phases that are not known have no length."""
    computed, finished = worker["computed"], worker["finished"]
    result = min(exchange.result or finished, finished)
    encoded = computed + max(0, worker.get("codec", 0) - (finished - result))
    ends, end = [computed], computed
    for known in (encoded, exchange.norm, exchange.sent, result):
        end = min(max(end, known), finished)
        ends.append(end)
    return Lane(worker["worker"], worker["started"], [*ends, finished], worker["missed"])


def _add_slots(run: RunData, jobs: Sequence[RecordedRounds]) -> None:
    again = _sent_before(run)
    for line in run.arrivals:
        if line["kind"] != "arrival" or line["slot"] is None or line["result"] == "late":
            continue
        rounds = jobs[line["job"]].rounds
        if line["ticket"] >= len(rounds):
            continue
        slots = rounds[line["ticket"]].slots
        key = line["slot"], line["use"]
        use = slots.get(key) or slots.setdefault(key, SlotUse(*key))
        use.attempts = max(use.attempts, line.get("attempts", 0))
        if sent := again.get((line["job"], *key, line["worker"]), line.get("sent")):
            use.sent = sent if use.sent is None else min(use.sent, sent)
        at = line.get("at", 0)
        use.last = max(use.last, at)
        if line["result"] == "lost":
            use.missed_by.append(line["worker"])
        else:
            use.bitmap |= int(line["bitmap"], 16)
            use.first = at if use.first is None else min(use.first, at)


def _sent_before(run: RunData) -> dict[tuple[int, int, int, int], int]:
    """Return when packets that were sent again were first sent: by job, slot, use and worker."""
    first: dict[tuple[int, int, int, int], int] = {}
    for line in run.arrivals:
        if line["kind"] == "timeout" and line["stage"] == "sums" and line["since"] is not None:
            for slot, use in line["slots"]:
                first.setdefault((line["job"], slot, use, line["worker"]), line["since"])
    return first


def _add_events(run: RunData, jobs: Sequence[RecordedRounds]) -> None:
    used = run.rounds_of_slots()
    for event, job, number in _events(run, jobs, used):
        rounds = jobs[job].rounds
        of_stream = number is None or event.line.get("type") in STREAM_TYPES
        if number is None and event.at is not None:
            number = _round_at(rounds, event)
        if number is None or number >= len(rounds):
            continue
        if of_stream and event.at is not None and event.at > rounds[number].line["finished"]:
            rounds[number].after.append(event)
            continue
        rounds[number].events.append(event)
    for found in jobs:
        for training_round in found.rounds:
            training_round.events.sort(key=lambda event: (event.at is None, event.at or 0))


def _events(
    run: RunData, jobs: Sequence[RecordedRounds], used: dict[tuple[int, int, int], int]
) -> Iterator[tuple[Event, int, int | None]]:
    """Yield each event with its job and, where the record says it, its round."""
    for line in run.verdicts:
        job = line["job"]
        worker = jobs[job].hosts.get(line["link"]) if job < len(jobs) else None
        if worker is None:
            continue
        number = line.get("training_round")
        if line["type"] not in STREAM_TYPES:
            number = used.get((job, line["slot"], line["use"]))
        verdict: str = line["verdict"]
        what = "lost" if lost(verdict) else _ARRIVING.get(verdict, verdict)
        yield Event(worker, line.get("at"), what, _verdict(line, what), line), job, number
    addresses = {host.ip: host.name for host in run.deployment.topology.hosts}
    for line in run.arrivals:
        job, kind = line["job"], line["kind"]
        if kind == "timeout":
            what = "given up" if line["stage"] == "given up" else "sent again"
            event = Event(line["worker"], line["at"], what, _timeout(line), line)
            yield event, job, line["ticket"]
        elif kind == "resend":
            for worker, text in _resent(line, jobs[job], addresses):
                yield Event(worker, line["at"], "sent again", text, line), job, None
        elif kind == "stall" and "at" in line:
            number = used.get((job, line["slot"], line["use"]))
            yield Event(line["worker"], line["at"], "waits", _stall(line), line), job, number
        elif kind == "redo":
            text = (
                f"A switch lost its state: the job is in epoch {line['epoch']}, and packets that"
                " were under way are sent again."
            )
            yield Event(line["worker"], line["at"], "sent again", text, line), job, None
        elif kind in ("crash", "join"):
            text = "The worker crashes." if kind == "crash" else "The worker takes part again."
            yield Event(line["worker"], line["at"], kind, text, line), job, line["training_round"]


_ARRIVING = {"delay": "delayed", "duplicate": "duplicated"}
_FATES = {"leave out": "left out", "corrupt": "damaged, and so lost", "drop": "lost"}


def _verdict(line: Line, what: str) -> str:
    fate = _FATES.get(line["verdict"], what)
    if line["delay_ns"]:
        fate += f" by {seconds(line['delay_ns'])}"
    where = f" for slot {line['slot']}" if line["type"] not in STREAM_TYPES else ""
    packet = f"{_PACKETS.get(line['type'], line['type'])}{where}"
    way = "to the network" if line["direction"] == "up" else "from the network"
    again = f", attempt {line['attempt'] + 1}" if line["attempt"] else ""
    return f"{packet} was {fate} on {line['link']}'s link, {way}{again}."


_PACKETS = {
    "norm": "Its norm",
    "norm result": "The common norm",
    "indices": "Its packet of indices",
    "sums": "Its packet of sums",
    "straggler": "A straggler notice",
    "status": "A slot's status",
    "stream": "A packet of a stream",
    "values": "A packet of marked values",
    "ack": "An acknowledgement",
}


def _timeout(line: Line) -> str:
    slots = ", ".join(str(slot) for slot, _ in line["slots"])
    several = "s" if len(line["slots"]) > 1 else ""
    waited = "" if line["since"] is None else f" after {seconds(line['at'] - line['since'])}"
    what = {"norm": "its norm is sent again", "sums": "its packets are sent again"}
    then = what.get(line["stage"], "it waits no longer")
    return f"Nothing has come for slot{several} {slots}{waited}: {then}."


def _resent(line: Line, job: RecordedRounds, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the worker that sent packets of a stream again, or got them from a server, and why."""
    peer = names.get(line["peer"].partition(":")[0]) or str(line["peer"])
    several = "s" if line["segments"] > 1 else ""
    waited = seconds(line["at"] - line["since"])
    why = f"no acknowledgement came in {waited}"
    if line["cause"] == "overtaken":
        why = f"{waited} after it was sent later ones were acknowledged, and it was not"
    what = f"{line['segments']} packet{several} of message {line['message']}"
    own: str = line["link"]
    for name, who in ((own, "It"), (peer, own)):
        if (worker := job.hosts.get(name)) is not None:
            yield worker, f"{who} sends {what} to {peer} again: {why}."
            return


def _stall(line: Line) -> str:
    missing = line["missing"]
    if not missing:
        who = "nobody is missing" if missing is not None else "who is missing is not known"
    else:
        who = f"worker{'s' * (len(missing) > 1)} {', '.join(map(str, missing))} missing"
    return f"It waits for slot {line['slot']}; the switch says: {who}."


def _round_at(rounds: Sequence[Round], event: Event) -> int | None:
    """Return the last round that the event's worker had begun, as workers may run ahead of each
    other; None before the first."""

    def begun(found: Round) -> int:
        return next((s.started for s in found.lanes if s.worker == event.worker), found.started)

    before = bisect_right(rounds, event.at or 0, key=begun)
    return before - 1 if before else None


def seconds(ns: float) -> str:
    """Return a time with the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.0f} ns"
