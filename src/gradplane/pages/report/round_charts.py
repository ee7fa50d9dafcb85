"""The figures over a run's rounds, which share their axis, and the rounds in detail.

The details are plain data for the page's script (templates/inspector.js), which draws a round's
timeline. They are bounded: the slowest rounds come first, the others in order as far as they fit.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradplane.pages import figures
from gradplane.pages.figures import Curve, Figure
from gradplane.pages.report.causes import SlowRound
from gradplane.pages.report.charts import key
from gradplane.pages.report.round_records import (
    PHASES,
    Line,
    RecordedRounds,
    Round,
    SlotUse,
    seconds,
)
from gradplane.runs.records.run_data import RunData

LINK = "rounds"
_BUDGET = 250_000  # lanes, slots and events in detail on a page
_MOST_SLOTS = 128  # rows of the figure of slots
_SPREAD = 20  # times the shortest round's: longer ones get a logarithmic axis
_FEW_CURVES = 4
_MOST_CURVES = 16  # links that are drawn one by one

Panel = dict[str, Any]


def panels(run: RunData, jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    """Yield title, text, figure and key of each figure over the rounds."""
    last = max(len(job.rounds) for job in jobs)
    for panel in _panels(run, jobs):
        panel["figure"]["layout"]["xaxis"]["range"] = [-0.5, last - 0.5]
        yield panel


def _panels(run: RunData, jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    yield _times(jobs)
    if (found := _verdicts(run)) is not None:
        yield found
    yield from _missed(jobs)
    yield from _slots(jobs)
    yield from _windows(run, jobs)
    yield from _links(run, jobs)


def _panel(
    title: str, text: str, figure: Figure, entries: Sequence[Any] = (), unit: str = ""
) -> Panel:
    """unit: of a figure of cells, whose colours the page explains."""
    panel: Panel = {"title": title, "text": text, "figure": figure, "key": list(entries)}
    if unit:
        rows = figure["data"][0]["z"]
        panel["scale"] = [int(max((v for row in rows for v in row if v), default=0)), unit]
    return panel


def _times(jobs: Sequence[RecordedRounds]) -> Panel:
    lines, entries = [], []
    for job, colour in zip(jobs, _colours(len(jobs)), strict=True):
        took = [training_round.took / 1e6 for training_round in job.rounds]
        numbers = [training_round.number for training_round in job.rounds]
        lines.append(Curve(job.name, colour, False, numbers, took))
        entries.append(key(job.name, colour))
    figure = figures.curves(lines, "round, from 0", "ms", link=LINK)
    for number, trace in enumerate(figure["data"]):
        trace["mode"] = "lines+markers"
        trace["marker"] = {"size": 5}
        trace["customdata"] = [jobs[number].number] * len(trace["x"])
        trace["hovertemplate"] = (
            f"{figures.escaped(jobs[number].name)}<br>round %{{x}} took %{{y:,.6~g}} ms"
            "<extra></extra>"
        )
    shown = [value for line in lines for value in line.y if value > 0]
    if shown and max(shown) > _SPREAD * min(shown):
        figure["layout"]["yaxis"]["type"] = "log"
    text = "From the first worker's start to the last one's end. A click opens the round above."
    return _panel("Time of each round", text, figure, entries if len(jobs) > 1 else ())


def _verdicts(run: RunData) -> Panel | None:
    found = {f"{kind}, {way}": counts for (kind, way), counts in run.verdicts_by_round().items()}
    if not found:
        return None
    entries = [key(label, figures.KINDS.get(label, figures.DARK), 10) for label in sorted(found)]
    text = "Verdicts of the impairments on packets that use slots, by the worker's direction."
    return _panel("Packets lost, left out or delayed", text, figures.stack(found, "packets", LINK),
                  entries)  # fmt: skip


def _missed(jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    rows: dict[str, list[float | None]] = {}
    for job in jobs:
        for worker in range(job.workers):
            rows[_worker(jobs, job, worker)] = [None] * len(job.rounds)
        for training_round in job.rounds:
            for lane in training_round.lanes:
                rows[_worker(jobs, job, lane.worker)][training_round.number] = lane.missed
    if any(value for row in rows.values() for value in row):
        text = [[f"{value or 0:,.0f} results missed" for value in row] for row in rows.values()]
        figure = figures.heat(list(rows), list(rows.values()), text, LINK)
        about = "By worker and round."
        yield _panel("Results that did not arrive in time", about, figure, unit="results missed")


def _worker(jobs: Sequence[RecordedRounds], job: RecordedRounds, worker: int) -> str:
    return f"worker {worker}" if len(jobs) == 1 else f"{job.name}, worker {worker}"


def _slots(jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    """Yield for each job with slots who was missing in them."""
    for job in jobs:
        slots = sorted({slot for r in job.rounds for slot, _ in r.slots})
        if not slots:
            continue
        shown = {slot: place for place, slot in enumerate(slots[:_MOST_SLOTS])}
        z: list[list[float | None]] = [[None] * len(job.rounds) for _ in shown]
        text = [[""] * len(job.rounds) for _ in shown]
        for training_round in job.rounds:
            for (slot, _), use in training_round.slots.items():
                if (place := shown.get(slot)) is None:
                    continue
                absent, number = missing(use, training_round), training_round.number
                if len(absent) >= (z[place][number] or 0):
                    z[place][number] = len(absent)
                    text[place][number] = _members(use, absent)
        figure = figures.heat([f"slot {slot}" for slot in shown], z, text, LINK)
        name = f", {job.name}" if len(jobs) > 1 else ""
        about = "Workers missing in each slot's sum; empty where the slot is unused."
        if len(slots) > len(shown):
            about += f" The first {len(shown)} of {len(slots):,} slots."
        yield _panel(f"Slots{name}", about, figure, unit="workers missing")


def _windows(run: RunData, jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    """Yield the windows of jobs whose workers adapt them."""
    lines, entries, marks = [], [], Counter[str]()
    for job, colour in zip(jobs, _colours(len(jobs)), strict=True):
        rounds: dict[int, list[Line]] = {r.number: [] for r in job.rounds}
        for line in run.arrivals:
            if line["kind"] == "window" and line["job"] == job.number and line["ticket"] in rounds:
                rounds[line["ticket"]].append(line)
        found = {number: own for number, own in rounds.items() if own}
        means = [sum(line["size"] for line in own) / len(own) for own in found.values()]
        least = [min(line["least"] for line in own) for own in found.values()]
        for label, dashed, y in (("mean at the end", False, means), ("least", True, least)):
            lines.append(Curve(f"{job.name}, {label}", colour, dashed, list(found), y))
            entries.append(key(lines[-1].name, colour, dashed=dashed))
        marks[job.name] = sum(line["marks"] for own in found.values() for line in own)
    if any(line.x for line in lines):
        figure = figures.curves(lines, "round, from 0", "chunks in flight", link=LINK)
        figure["layout"]["yaxis"] |= {"rangemode": "tozero"}
        said = "; ".join(f"{name} {count:,}" for name, count in marks.items())
        text = f"Of all workers of a job. Results that were marked at a queue: {said}."
        yield _panel("Windows", text, figure, entries)


def missing(use: SlotUse, training_round: Round) -> list[int]:
    """Return the workers of the round that are not in the slot's sum."""
    return [lane.worker for lane in training_round.lanes if not use.bitmap >> lane.worker & 1]


def _members(use: SlotUse, absent: Sequence[int]) -> str:
    text = "all in" if not absent else f"missing: {', '.join(map(str, absent))}"
    return text + (f"; sent up to {use.attempts} times" if use.attempts > 1 else "")


def _links(run: RunData, jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    """Yield the links' use, and where the network keeps them the queues' peaks and drops."""
    clock = max(jobs, key=lambda job: len(job.rounds))
    lines = link_lines(run.link_use, clock.number)
    if not lines:
        yield from _workers_links(jobs)
        return
    names = [link.name for link in run.deployment.topology.links]
    begins = [0, *(line["at"] for line in lines)]
    use, queues, drops = [], [], Counter[str]()
    busy = [
        number for number in range(len(names))
        if any(any(line["links"][number]) for line in lines)
    ][:_MOST_CURVES]  # fmt: skip
    for number, colour in zip(busy, _colours(len(busy)), strict=True):
        rounds = [line["training_round"] for line in lines]
        own = [line["links"][number] for line in lines]
        for place, way in enumerate(("up", "down")):
            rates = [
                8e3 * counts[place] / max(1, line["at"] - begin)
                for counts, line, begin in zip(own, lines, begins, strict=False)
            ]
            label = f"{names[number]}, {way}"
            use.append(Curve(label, colour, way == "down", rounds, rates))
            queues.append(Curve(label, colour, way == "down", rounds, [c[4 + place] for c in own]))
            drops[label] = sum(counts[2 + place] for counts in own)
    whose = f" Rounds are those of {clock.name}." if len(jobs) > 1 else ""
    text = f"A mean over the time since the round before, in each direction of a link.{whose}"
    yield _panel("Use of the links", text, *_by_way(use, "Mbit/s"))
    dropped = "; ".join(f"{label} dropped {count:,}" for label, count in drops.items() if count)
    text = "The most frames in a queue at once. " + (f"Packets: {dropped}." if dropped else
            "No queue dropped a packet.")  # fmt: skip
    yield _panel("Depth of the queues", text, *_by_way(queues, "frames"))


def link_lines(lines: Sequence[Line], job: int) -> list[Line]:
    """Return a line for each round of the job, with what other jobs' lines since the last one have.

    A line's counts and peaks are those since the line before, of whichever job."""
    found: list[Line] = []
    open_counts: list[list[int]] | None = None
    for line in lines:
        counts = line["links"]
        if open_counts is not None:
            counts = [
                [*(a + b for a, b in zip(old[:4], new[:4], strict=True)),
                 *map(max, old[4:], new[4:])]
                for old, new in zip(open_counts, counts, strict=True)
            ]  # fmt: skip
        if line["job"] == job:
            found.append(line | {"links": counts})
            open_counts = None
        else:
            open_counts = counts
    return found


def _by_way(lines: Sequence[Curve], y: str) -> tuple[Figure, list[Any]]:
    """Draw links, dashed on the way down, and return their key.

    More than a few are a band for each way, from the least to the most; a click on the key draws
    single ones."""
    figure = figures.curves(lines, "round, from 0", y, link=LINK)
    figure["layout"] |= {"height": 220}
    figure["layout"]["yaxis"] |= {"rangemode": "tozero"}
    entries = [key(line.name, line.colour, dashed=line.dashed) for line in lines]
    if len(lines) <= _FEW_CURVES:
        return figure, entries
    for trace, entry in zip(figure["data"], entries, strict=True):
        trace["visible"], entry["hidden"] = "legendonly", True
    ways = [("up", figures.RUN), ("down", figures.PALETTE[1])]
    for place, (way, colour) in enumerate(ways):
        label = f"all, {way}: mean, least to most"
        mine = [line for line in lines if line.dashed == (way == "down")]
        figure["data"] += figures.band(label, colour, mine)
        entries.insert(place, key(label, colour, 6))
    return figure, entries


def _workers_links(jobs: Sequence[RecordedRounds]) -> Iterator[Panel]:
    """Yield the use of the workers' links, from what the hosts counted."""
    lines = []
    for job in jobs:
        for worker, colour in zip(range(job.workers), _colours(job.workers), strict=True):
            for way in ("up", "down") if job.workers <= _MOST_CURVES else ():
                points = [
                    (r.number, 8e3 * own[f"wire_{way}"] / max(1, own["finished"] - own["started"]))
                    for r in job.rounds
                    for own in r.line["workers"]
                    if own["worker"] == worker and f"wire_{way}" in own
                ]
                label = f"{_worker(jobs, job, worker)}, {way}"
                x, y = [point[0] for point in points], [point[1] for point in points]
                lines.append(Curve(label, colour, way == "down", x, y))
    if any(line.x for line in lines):
        text = (
            "A mean over each worker's round, as the hosts counted. This network's queues keep no"
            " record of their depth; what they dropped is in the table of links."
        )
        yield _panel("Use of the workers' links", text, *_by_way(lines, "Mbit/s"))


def _colours(count: int) -> list[str]:
    return [figures.PALETTE[place % len(figures.PALETTE)] for place in range(count)]


# Details


def details(jobs: Sequence[RecordedRounds], slow: Sequence[SlowRound]) -> dict[str, Any]:
    """Return the rounds in detail. Times are ns since the round's start."""
    causes = {(s.job.number, s.round.number): s.cause for s in slow}
    chosen = _chosen(jobs)
    return {
        "phases": PHASES,
        "jobs": [
            {
                "name": job.name,
                "workers": job.workers,
                "racks": job.racks,
                "roots": job.roots,
                "count": len(job.rounds),
                "rounds": [
                    _detail(r, causes.get((job.number, r.number), ""))
                    for r in job.rounds
                    if (job.number, r.number) in chosen
                ],
            }
            for job in jobs
        ],
    }


def _chosen(jobs: Sequence[RecordedRounds]) -> Mapping[tuple[int, int], Round]:
    """Return the rounds that are shown in detail, by job and round."""
    ordered = sorted(
        ((job.number, r) for job in jobs for r in job.rounds), key=lambda x: -x[1].took
    )
    chosen: dict[tuple[int, int], Round] = {}
    size = 0
    for number, training_round in ordered:
        size += len(training_round.lanes) + len(training_round.slots) + len(training_round.events)
        if size > _BUDGET and chosen:
            break
        chosen[number, training_round.number] = training_round
    return chosen


def _detail(r: Round, cause: str) -> dict[str, Any]:
    def since(at: int | None) -> int | None:
        return None if at is None else at - r.started

    return {
        "number": r.number,
        "took": r.took,
        "cause": cause,
        "lanes": [
            [lane.worker, lane.started - r.started, lane.missed, *map(since, lane.ends)]
            for lane in r.lanes
        ],
        "slots": [
            [use.slot, use.use, since(use.sent), since(use.first), since(use.last), use.attempts,
             missing(use, r), sorted(use.missed_by)]
            for use in sorted(r.slots.values(), key=lambda use: (use.slot, use.use))
        ],
        "events": [[e.worker, since(e.at), e.what, e.text] for e in r.events],
    }  # fmt: skip


def slow_rows(slow: Sequence[SlowRound], several: bool) -> Iterator[dict[str, Any]]:
    """Yield the slowest rounds for the page's table."""
    for found in slow:
        name = f"{found.job.name}, " if several else ""
        yield {
            "job": found.job.number,
            "round": found.round.number,
            "label": f"{name}round {found.round.number}",
            "took": seconds(found.round.took),
            "times": f"{found.times:,.1f}×" if found.times < 100 else f"{found.times:,.0f}×",
            "cause": found.cause,
        }
