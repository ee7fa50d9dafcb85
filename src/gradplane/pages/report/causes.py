"""The slowest rounds of a run, each with its cause in words.

The worker that ended a round last is compared with the usual: the phase in which it was longest
beyond that phase's median is where the time went. If it waited there, the cause is a worker that
came late with its computation; or, at the slot whose result came last, packets lost or delayed and
the timers that ran out; or else what the queues dropped.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gradplane.pages.report.round_records import PHASES, Event, Lane, RecordedRounds, Round, seconds
from gradplane.runs.records.run_data import STREAM_TYPES, RunData

_MOST = 10
_STANDS_OUT = 1.5  # times the median
_BUSY = 0.5  # of a round's time: a link that sends for less did not hold it up
_EXPLAINS = 0.8  # of the time lost: a late start that explains less is not the only cause
_PACKET = ("link", "direction", "type", "slot", "verdict")
_WAITING = ("norms", "send", "wait")


@dataclass(frozen=True)
class SlowRound:
    """A round that took `took` ns, `usual` being the median, and why."""

    job: RecordedRounds
    round: Round
    usual: float
    cause: str

    @property
    def times(self) -> float:
        """Its time as a multiple of the median round's."""
        return self.round.took / self.usual if self.usual else 1.0


def slowest(run: RunData, jobs: Sequence[RecordedRounds]) -> list[SlowRound]:
    """Return the slowest rounds that stand out, the slowest first; at least one for each job."""
    found = []
    for job in jobs:
        if not job.rounds:
            continue
        usual = median(training_round.took for training_round in job.rounds)
        phases = _usual_phases(job)
        ordered = sorted(job.rounds, key=lambda training_round: -training_round.took)[:_MOST]
        shown = [r for r in ordered if r.took > _STANDS_OUT * usual] or ordered[:1]
        for training_round in shown:
            cause = " ".join(_cause(run, job, training_round, phases))
            found.append(SlowRound(job, training_round, usual, cause))
    return sorted(found, key=lambda slow: -slow.round.took)[:_MOST]


def _usual_phases(job: RecordedRounds) -> list[float]:
    lengths = [lane.lengths() for training_round in job.rounds for lane in training_round.lanes]
    return [median(column) for column in zip(*lengths, strict=True)]


def _cause(run: RunData, job: RecordedRounds, slow: Round, usual: Sequence[float]) -> Iterator[str]:
    """Yield sentences that say where the time went."""
    for event in slow.events:
        if event.what in ("crash", "join"):
            yield f"Worker {event.worker}: {event.text}"
    last = max(slow.lanes, key=lambda lane: lane.finished)
    behind = last.started - slow.started
    if behind >= slow.took / 2:
        yield from _began_late(job, slow, last, behind)
        yield from _dropped_before(run, job, slow)
        return
    beyond = [own - normal for own, normal in zip(last.lengths(), usual, strict=True)]
    place = beyond.index(max(beyond))
    phase = PHASES[place]
    if beyond[place] <= 0.05 * slow.took:
        yield "No phase is much longer than usual."
        return
    if phase not in _WAITING:
        yield _long_phase(last, place, usual)
        return
    late = max(slow.lanes, key=lambda lane: lane.ends[1])
    if late.started - last.started >= beyond[place] / 2:
        yield from _began_late(job, slow, late, late.started - slow.started)
        yield "The others waited for it."
        if late.started - last.started < _EXPLAINS * beyond[place]:
            yield from _packets(job, slow, phase)
        yield from _dropped_before(run, job, slow)
        return
    if late.ends[1] - last.ends[1] >= beyond[place] / 2:
        own = late.lengths()
        yield _long_phase(late, 0 if own[0] - usual[0] >= own[1] - usual[1] else 1, usual)
        yield "The others waited for it."
        return
    whole = sum(last.lengths()[PHASES.index(name)] for name in _WAITING)
    who = f"Worker {last.worker}" + (_rack(job, last.worker) if job.racks else "")
    yield f"{who} waited {seconds(whole)} for the exchange{_what(job, slow, phase)}."
    explained = list(_packets(job, slow, phase))
    dropped = _dropped(run, job, slow.number)
    yield from explained
    if dropped:
        yield f"Queues dropped {dropped}."
    if not explained and not dropped:
        yield (
            "No loss, delay or timer is recorded in it: the time passed in queues and on links"
            + (", or the machine was busy." if run.network == "mininet" else ".")
        )
    if not any(event.line["kind"] == "verdict" for event in slow.events):
        yield from _busiest(run, job, slow)


def _began_late(job: RecordedRounds, slow: Round, lane: Lane, behind: int) -> Iterator[str]:
    """Yield what a worker did while others had begun, and what happened to its streams then."""
    last = [r for r in job.rounds if r.number == slow.number - 1]
    ended = [own.finished for r in last for own in r.lanes if own.worker == lane.worker]
    epoch = bool(ended) and lane.started - ended[0] >= behind / 2
    what = "the end of the epoch" if epoch else "the round before"
    began = f"Worker {lane.worker} began it {seconds(behind)} after the first one"
    yield f"{began}, as it was still busy with {what}."
    if not epoch:
        return
    during = [
        event
        for one in (*last, slow)
        for event in (*one.events, *one.after)
        if ended[0] <= (event.at or 0) <= lane.started
    ]
    lost = [event for event in during if event.line.get("type") in STREAM_TYPES]
    yield from _verdicts(lost, slow)
    yield from _resent(during)


def _long_phase(lane: Lane, place: int, usual: Sequence[float]) -> str:
    verb = {"compute": "computed", "encode": "encoded", "decode": "decoded"}[PHASES[place]]
    took = lane.lengths()[place]
    return f"Worker {lane.worker} {verb} for {seconds(took)} (usually {seconds(usual[place])})."


def _what(job: RecordedRounds, slow: Round, phase: str) -> str:
    """Return the last thing that arrived, behind a comma; empty where it is not known."""
    if phase == "norms":
        return ", above all for the common norm"
    if (slot := _last_slot(slow)) is None:
        return ""
    above = f", summed up to {job.roots[slot % len(job.roots)]}" if job.roots else ""
    return f", last for slot {slot}{above}"


def _last_slot(slow: Round) -> int | None:
    uses = slow.slots.values()
    return max(uses, key=lambda use: use.last).slot if uses else None


def _packets(job: RecordedRounds, slow: Round, phase: str) -> Iterator[str]:
    """Yield what happened to the packets that the round waited for."""
    slot = None if phase == "norms" else _last_slot(slow)

    def concerns(event: Event) -> bool:
        line = event.line
        if line["kind"] == "timeout":
            return slot is None or slot in [place for place, _ in line["slots"]]
        norms = str(line.get("type", "")).startswith("norm")
        if phase == "norms" and line["kind"] == "verdict":
            return norms
        return slot is None or (line.get("slot") == slot and not norms)

    events = [event for event in slow.events if concerns(event)] or slow.events
    verdicts, every = (
        [event for event in found if event.line["kind"] == "verdict"]
        for found in (events, slow.events)
    )
    yield from _verdicts(verdicts or every, slow)
    yield from _timers([event for event in events if event.line["kind"] == "timeout"], events)
    yield from _resent(events)
    missing = {
        worker
        for event in events
        if event.line["kind"] == "stall"
        for worker in event.line["missing"] or ()
    }
    if missing:
        names = f"worker{'s' * (len(missing) > 1)} {', '.join(map(str, sorted(missing)))}"
        of_racks = " of the askers' racks" if job.racks else ""
        yield f"Meanwhile the switch named {names}{of_racks} as missing."


def _rack(job: RecordedRounds, worker: int) -> str:
    name = job.racks[worker]
    return f" of {name}" if name.startswith("group") else f" of rack {name}"


def _resent(events: Sequence[Event]) -> Iterator[str]:
    if resent := [event.line for event in events if event.line["kind"] == "resend"]:
        count = sum(line["segments"] for line in resent)
        wait = seconds(max(line["at"] - line["since"] for line in resent))
        yield f"Streams sent {count} packet{'s' * (count > 1)} again, after {wait} at most."


def _verdicts(events: Sequence[Event], slow: Round) -> Iterator[str]:
    """Yield a sentence about each packet, or the packets of a stream, that most often had one."""
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for e in events:
        link, way, kind, slot, verdict = (e.line[key] for key in _PACKET)
        several = kind in STREAM_TYPES
        group = (e.worker, e.what, link, way, kind, None if several else slot, verdict)
        groups.setdefault(group, []).append(e)
    most = sorted(groups.items(), key=lambda group: -len(group[1]))[:3]
    for (worker, what, link, way, kind, slot, verdict), same in most:
        first, count = same[0], len(same)
        when = "" if first.at is None else f", first {seconds(first.at - slow.started)} into it"
        times = "" if count == 1 else f" {count} times"
        packet, was = (
            ("packets", "were") if kind in STREAM_TYPES and count > 1 else ("packet", "was")
        )
        whose = f"Worker {worker}'s {packet}" if way == "up" else f"The {packet} to worker {worker}"
        place = "" if slot is None else f", slot {slot}"
        fate = "left out" if verdict == "leave out" else what
        yield f"{whose} ({kind}{place}) {was} {fate}{times} on {link}'s link{when}."


def _timers(timers: Sequence[Event], events: Sequence[Event]) -> Iterator[str]:
    """Yield a sentence about the timers of the worker whose packets were lost, or of the first."""
    if not timers:
        return
    losers = Counter(event.worker for event in events if event.what == "lost")
    own = Counter(event.worker for event in timers)
    worker = next((w for w, _ in losers.most_common() if own[w]), timers[0].worker)
    waits = [e.line["at"] - e.line["since"] for e in timers
             if e.worker == worker and e.line["since"] is not None]  # fmt: skip
    if not waits:
        return
    resent = any(e.line["stage"] != "given up" for e in timers if e.worker == worker)
    name = "retransmission timer" if resent else "timer"
    if len(waits) == 1:
        yield f"Worker {worker}'s {name} ran out after {seconds(waits[0])}{_then(resent)}."
        return
    grew = f"from {seconds(min(waits))} to {seconds(max(waits))}"
    yield (
        f"Worker {worker}'s {name} ran out {len(waits)} times, waiting {grew}:"
        f" {seconds(sum(waits))} in all{_then(resent)}."
    )


def _then(resent: bool) -> str:
    return "" if resent else ", and it gave the result up"


def _busiest(run: RunData, job: RecordedRounds, slow: Round) -> Iterator[str]:
    """Yield where the longest queue was, of the links that sent for much of the round."""
    found, links = list[tuple[int, float, str]](), run.deployment.topology.links
    for line in _link_lines(run, job, slow.number):
        for link, (up, down, _, _, *peaks) in zip(links, line["links"], strict=True):
            ends = f"{link.a} to {link.b}", f"{link.b} to {link.a}"
            for way, size, peak in zip(ends, (up, down), peaks, strict=True):
                share = 0.0 if link.rate is None else 8e9 * size / link.rate / slow.took
                if share >= _BUSY:
                    found.append((peak, min(share, 1.0), way))
    if found:
        peak, share, way = max(found)
        yield (
            f"The link from {way} sent for {share:.0%} of it, with up to {peak}"
            f" packet{'s' * (peak != 1)} queued."
        )


def _link_lines(run: RunData, job: RecordedRounds, number: int) -> Iterator[dict[str, Any]]:
    """Yield the line of links.jsonl of a round, if there is one."""
    for line in run.link_use:
        if (line["job"], line["training_round"]) == (job.number, number):
            yield line


def _dropped_before(run: RunData, job: RecordedRounds, slow: Round) -> Iterator[str]:
    """Yield what the queues dropped in the round before, which made a worker late, and in this."""
    for number, when in ((slow.number - 1, "the round before"), (slow.number, "this round")):
        if dropped := _dropped(run, job, number):
            yield f"In {when} queues dropped {dropped}."


def _dropped(run: RunData, job: RecordedRounds, number: int) -> str:
    """Return how many packets queues dropped in the round, by link; empty if none."""
    names = [link.name for link in run.deployment.topology.links]
    for line in _link_lines(run, job, number):
        drops = {name: use[2] + use[3] for name, use in zip(names, line["links"], strict=True)}
        parts = [
            f"{count} packet{'s' * (count > 1)} at {name}" for name, count in drops.items() if count
        ]
        return ", ".join(parts)
    return ""
