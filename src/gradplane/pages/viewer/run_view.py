"""A recorded run for its page: its rounds, their packets, and a packet's way through the switch, as
plain values that go into JSON.

Times are ns since the experiment's start.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradplane.hosts.wire import aggregation
from gradplane.pages.report import causes, round_records, rows
from gradplane.pages.report.round_records import PHASES, Event, Round
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import queue_drops
from gradplane.runs.replayer.round_packets import Pass, RecordedPackets, RoundPackets, SentPacket
from gradplane.switch.arch.registry import path_lines
from gradplane.switch.interp.trace_events import Entered, TraceEvent
from gradplane.switch.source import NOWHERE

# Search: places and words of a query such as "round 46 worker 2 lost".

_PLACE = re.compile(r"\b(job|round|worker|slot)\s+([^\s,]+)", re.IGNORECASE)


class SearchError(ValueError):
    """A search that cannot be understood; the message says what can."""


@dataclass(frozen=True)
class Query:
    """Where to look, None: everywhere; and the words that must be there, in lower case."""

    job: int | None = None
    round: int | None = None
    worker: int | None = None
    slot: int | None = None
    words: tuple[str, ...] = ()

    @property
    def only_place(self) -> bool:
        """True if it names nothing but a round or a job."""
        return not self.words and self.worker is None and self.slot is None


def parse(text: str, jobs: Sequence[str] = ()) -> Query:
    """Return the query of a text; jobs: their names, in order. Raises SearchError."""
    places: dict[str, int] = {}
    for name, value in _PLACE.findall(text):
        if name.lower() == "job" and value in jobs:
            places["job"] = jobs.index(value)
            continue
        if not value.isdecimal():
            raise SearchError(f"{name} {value}: give its number, as in: round 46 worker 2 lost")
        places[name.lower()] = int(value)
    words = tuple(_PLACE.sub(" ", text).lower().replace(",", " ").split())
    if not places and not words:
        raise SearchError("write what to look for, as in: round 46 worker 2 lost")
    return Query(**places, words=words)


def matches(query: Query, worker: int, slot: int | None, text: str) -> bool:
    """Return whether an event of a worker, perhaps about a slot, is wanted."""
    if query.worker not in (None, worker) or query.slot not in (None, slot):
        return False
    lower = text.lower()
    return all(word in lower for word in query.words)


Values = dict[str, Any]
Key = tuple[int, str, int, int]
"""A worker, a packet's type, its slot and the slot's use."""

_MOST_HITS = 200
_MOST_CELLS = 200  # of registers that a packet changed


class NotThere(Exception):
    """A job, round or packet that the run does not have; the message names it."""


class RunView:
    """One run; a context manager. Its methods may be called by several threads."""

    def __init__(self, run: RunData) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._packets: dict[int, RecordedPackets] = {}
        self._exit = ExitStack()

    @property
    def name(self) -> str:
        """The run's name."""
        return self._run.name

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._run.folder

    def __enter__(self) -> RunView:
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    @cached_property
    def _jobs(self) -> list[round_records.RecordedRounds]:
        return round_records.read(self._run)

    @cached_property
    def _sendings(self) -> dict[tuple[int, Key], Values]:
        """The records of each chunk and norm that a worker waited for, by job and key."""
        found: dict[tuple[int, Key], Values] = {}
        for line in self._run.arrivals:
            if line["kind"] in ("arrival", "norm") and line["slot"] is not None:
                kind = "norm" if line["kind"] == "norm" else "indices"
                key = line["worker"], kind, line["slot"], line["use"]
                found.setdefault((line["job"], key), line)
        return found

    def overview(self) -> Values:
        """Return the run's name, its jobs with their rounds, and the slow rounds with causes."""
        with self._lock:
            slow = causes.slowest(self._run, self._jobs)
            return {
                "name": self._run.name,
                "experiment": self._run.experiment.name,
                "network": self._run.network,
                "unfinished": self._run.unfinished,
                "refused": rows.refused(self._run.stored or {}),
                "program": ", ".join(one.path.name for one in self._run.deployment.used_programs),
                "jobs": [
                    {
                        "name": job.name,
                        "workers": job.workers,
                        "rounds": [_summed(one) for one in job.rounds],
                    }
                    for job in self._jobs
                ],
                "slow": [
                    {"job": s.job.number, "round": s.round.number, "cause": s.cause} for s in slow
                ],
            }

    def round(self, job: int, number: int) -> Values:
        """Return a round: its lanes, its events and its packets. Raises NotThere, ReplayError."""
        with self._lock:
            one = self._round(job, number)
            packets = self._of(job).of(number)
            places: dict[Key, int] = {}
            for i, key in enumerate(self._keys(job, packets)):
                if key is not None:
                    places.setdefault(key, i)
            return {
                "job": job,
                "round": number,
                "started": one.started,
                "took": one.took,
                "phases": PHASES,
                "lanes": [
                    {
                        "worker": lane.worker,
                        "started": lane.started,
                        "ends": lane.ends,
                        "missed": lane.missed,
                    }
                    for lane in one.lanes
                ],
                "events": [_event(event, places) for event in one.events],
                "packets": [
                    self._row(job, i, packet, packets, one)
                    for i, packet in enumerate(packets.packets)
                ],
            }

    def packet(self, job: int, number: int, index: int) -> Values:
        """Return a packet: decoded, what each switch did with it, what it caused, its neighbours.

        Raises NotThere, ReplayError."""
        with self._lock:
            one = self._round(job, number)
            found = self._of(job).of(number)
            if not 0 <= index < len(found.packets):
                raise NotThere(f"round {number} has {len(found.packets)} packets, not {index + 1}")
            packet, keys = found.packets[index], self._keys(job, found)
            key, row = keys[index], self._row(job, index, packet, found, one)
            passes = [] if _absent(packet, row["lost"], row["attempts"]) else packet.passes
            return row | {
                "started": one.started,
                "recorded": self._recorded(job, packet),
                "events": [_event(e, {}) for e in one.events if _about(e) == key],
                "slot_packets": [  # of its type, for its slot and use
                    i for i, other in enumerate(keys) if i == index or _same_slot(key, other)
                ],
                "passes": [self._traced(job, number, found, place) for place in passes],
                "payload": None if passes else _header(packet.payload),
            }

    def waiting(self) -> Values:
        """Return how far what other threads wait for is, in words; "" if they do not wait."""
        texts = [packets.under_way() for packets in list(self._packets.values())]
        return {"text": "".join(texts)}

    def source(self) -> list[Values]:
        """Return the program's files: name and lines."""
        with self._lock:
            return [
                {"file": file, "name": Path(file).name, "lines": list(lines)}
                for file, lines in self._lines.items()
            ]

    def search(self, text: str) -> Values:
        """Return the rounds, events and packets that a search like "round 46 worker 2 lost" finds.

        Raises SearchError."""
        query = parse(text, [job.name for job in self._jobs])
        with self._lock:
            hits = list(self._hits(query))
        return {"hits": hits[:_MOST_HITS], "more": max(0, len(hits) - _MOST_HITS)}

    def _hits(self, query: Any) -> Iterator[Values]:
        for job in self._jobs:
            for one in job.rounds:
                if query.round not in (None, one.number) or query.job not in (None, job.number):
                    continue
                where = {"job": job.number, "round": one.number}
                if query.only_place:
                    yield where | {"text": f"round {one.number}", "at": one.started, "event": None}
                for i, event in enumerate(one.events):
                    slot = event.line.get("slot")
                    if matches(query, event.worker, slot, f"{event.what} {event.text}"):
                        text = f"round {one.number}, worker {event.worker}: {event.text}"
                        yield where | {"text": text, "at": event.at, "event": i}

    # Parts

    def _of(self, job: int) -> RecordedPackets:
        if job not in self._packets:
            self._packets[job] = self._exit.enter_context(RecordedPackets(self._run, job))
        return self._packets[job]

    def _round(self, job: int, number: int) -> Round:
        if not 0 <= job < len(self._jobs):
            raise NotThere(f"the run has {len(self._jobs)} jobs, not job {job}")
        rounds = self._jobs[job].rounds
        if not 0 <= number < len(rounds):
            raise NotThere(f"job {job} has {len(rounds)} recorded rounds, not round {number}")
        return rounds[number]

    @cached_property
    def _workers(self) -> list[dict[str, int]]:
        """The number of each worker of each job, by its host's address."""
        jobs = self._run.deployment.jobs
        return [{host.ip: n for n, host in enumerate(job.members)} for job in jobs]

    def _key(self, job: int, packet: SentPacket) -> Key | None:
        """Return what an aggregation packet is about; None for values of a stream.

        The header's worker is the child of a leaf, which is another number where there are several.
        """
        worker = self._workers[job].get(packet.source[0])
        try:
            header, _ = aggregation.parse(packet.payload)
        except aggregation.WireError:
            return None
        return (
            None
            if worker is None
            else (worker, header.type.name.lower(), header.slot, header.round)
        )

    def _keys(self, job: int, found: RoundPackets) -> list[Key | None]:
        return [self._key(job, packet) for packet in found.packets]

    def _recorded(self, job: int, packet: SentPacket) -> Values | None:
        key = self._key(job, packet)
        return None if key is None else self._sendings.get((job, key))

    def _row(
        self, job: int, index: int, packet: SentPacket, found: RoundPackets, one: Round
    ) -> Values:
        key, recorded = self._key(job, packet), self._recorded(job, packet)
        hosts = self._run.deployment.topology.hosts
        host = next(h.name for h in hosts if h.ip == packet.source[0])
        lost = sum(_about(event) == key and event.what == "lost" for event in one.events)
        worker, kind, slot, use = key or (None, "values", None, None)
        attempts = (recorded or {}).get("attempts")
        if kind == "norm":  # whose record has no number of attempts
            attempts = 1 + sum(_sends_again(event, key) for event in one.events)
        return {
            "index": index,
            "host": host,
            "worker": worker,
            "type": kind,
            "slot": slot,
            "use": use,
            "size": len(packet.payload),
            "sent": (recorded or {}).get("sent"),
            "attempts": attempts,
            "lost": lost,
            "fate": self._fate(packet, found, lost, attempts),
        }

    def _fate(
        self, packet: SentPacket, found: RoundPackets, lost: int, attempts: int | None
    ) -> str:
        if absent := _absent(packet, lost, attempts):
            return absent
        if not packet.passes:
            came = "came to the switch, and " if self._delivers else ""
            return f"{came}is not re-enacted, as no worker got a result of its slot"
        late = "came late; " if packet.late else ""
        if packet.answers:
            hosts = ", ".join(dict.fromkeys(host for host, _, _ in packet.answers))
            return f"{late}answered to {hosts}"
        if any(found.passes[place].left for place in packet.passes):
            return f"{late}forwarded"
        return f"{late}kept by the switch"

    @cached_property
    def _delivers(self) -> bool:
        """True if every packet came that the impairments lost none of: the queues dropped none."""
        run = self._run
        return run.network == "sim" and run.stored is not None and not queue_drops(run.stored)

    @cached_property
    def _lines(self) -> dict[str, Sequence[str]]:
        from gradplane.experiment import p4_programs

        lines: dict[str, Sequence[str]] = {}
        for program in self._run.deployment.used_programs:
            defines = [f"{name}={value}" for name, value in program.defines.items()]
            compiled = p4_programs.compiled(program.path, [], defines, library=True)
            lines |= {**compiled.reporter.lines, **path_lines(compiled.program)}
        return lines

    def _traced(self, job: int, number: int, found: RoundPackets, place: int) -> Values:
        one = found.passes[place]
        traced = self._of(job).trace(number, place)
        changes = [[c.register, c.index, c.before, c.after] for c in traced.changes[:_MOST_CELLS]]
        return {
            "switch": one.switch,
            "port": one.entered[0],
            "layers": layers(one.entered[1]),
            "events": [_traced_event(event) for event in traced.trace.events],
            "changes": changes,
            "changed": len(traced.changes),
            "left": [{"port": port, "to": self._neighbour(one, port), "layers": layers(frame)}
                     for port, frame in one.left],
        }  # fmt: skip

    def _neighbour(self, one: Pass, port: int) -> str:
        for link in self._run.deployment.topology.links:
            for node, own in ((link.a, link.a_port), (link.b, link.b_port)):
                if (node, own) == (one.switch, port):
                    return str(link.other_end(node)[0])
        return ""


def _summed(one: Round) -> Values:
    kinds = [event.what for event in one.events]
    return {
        "round": one.number,
        "took": one.took,
        "missed": sum(lane.missed for lane in one.lanes),
        "lost": kinds.count("lost"),
        "again": sum(event.sent_again for event in one.events),
    }


def _header(payload: bytes) -> Values:
    header, _ = aggregation.parse(payload)
    return {
        "type": header.type.name.lower(),
        "job": header.job,
        "worker": header.worker,
        "slot": header.slot,
        "round": header.round,
    }


def _about(event: Event) -> Key | None:
    """Return the packet that a verdict is about, as a worker's own packet."""
    line = event.line
    if "verdict" not in line or line["type"] not in ("norm", "indices"):
        return None
    return event.worker, line["type"], line["slot"], line["use"]


def _event(event: Event, places: dict[Key, int]) -> Values:
    about = _about(event)
    if about is None and event.line.get("slots") and places:
        slot, use = event.line["slots"][0]
        kind = "norm" if event.line["stage"] == "norm" else "indices"
        about = event.worker, kind, slot, use
    return {
        "worker": event.worker,
        "at": event.at,
        "what": event.what,
        "text": event.text,
        "packet": None if about is None else places.get(about),
    }


def _same_slot(key: Key | None, other: Key | None) -> bool:
    return key is not None and other is not None and key[1:] == other[1:]


def _sends_again(event: Event, key: Key | None) -> bool:
    """Return whether a worker's norm was sent again."""
    line = event.line
    if key is None or line["kind"] != "timeout" or line["stage"] != "norm":
        return False
    return event.worker == key[0] and [key[2], key[3]] in line["slots"]


def _absent(packet: SentPacket, lost: int, attempts: int | None) -> str:
    """Return why a packet did not come to the switch, as the records say; "" if it may have come.

    A re-enactment knows of no losses, and lets it arrive after the result. attempts: None in
    folders of older versions."""
    if attempts == 0:
        return "was not sent: its slot's result came first"
    if lost and (not packet.passes if attempts is None else lost >= attempts):
        return "never came to the switch" + (f": lost {lost} times" if lost > 1 else "")
    return ""


def _traced_event(event: TraceEvent) -> Values:
    place = None if event.span == NOWHERE else [event.span.file, event.span.line]
    block = isinstance(event, Entered)
    return {"kind": event.kind, "text": event.text(), "place": place, "block": block}


# The fields of packets

_SHOWN = 64  # values of a list field


def layers(frame: bytes) -> list[dict[str, Any]]:
    """Return the layers of an Ethernet frame from the outside in: `name`, and `fields` as pairs of
    name and text."""
    from scapy.layers.l2 import Ether
    from scapy.packet import NoPayload

    from gradplane.hosts.scapy_layers import bind, compressed

    bind()
    packet, found = compressed(Ether(frame)), []
    while not isinstance(packet, NoPayload):
        fields = [[name, _text(packet, name)] for name in packet.fields]
        found.append({"name": packet.name, "fields": fields})
        packet = packet.payload
    return found


def _text(packet: Any, name: str) -> str:
    value = packet.getfieldval(name)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        more = f" ... {len(value):,} in all" if len(value) > _SHOWN else ""
        return " ".join(map(str, value[:_SHOWN])) + more
    return str(packet.get_field(name).i2repr(packet, value))
