"""The contents of a script's page: what became of each of its reduces."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gradplane.experiment.loading import Experiment
from gradplane.pages import figures
from gradplane.pages.figures import Bar, Curve
from gradplane.pages.report import charts, run_page
from gradplane.pages.report.round_records import seconds
from gradplane.runs.records import run_folder, script_run
from gradplane.runs.records.own_parts import recorded_deployment
from gradplane.runs.records.recorder import lost
from gradplane.runs.records.run_folder import EXPERIMENT, METRICS, FolderError
from gradplane.runs.records.script_run import COUNTERS, HostRecords
from gradplane.runs.records.summary import queue_drops

Line = dict[str, Any]
Values = dict[str, Any]

_SLOWEST = 12  # reduces in the table
_SPREAD = 20  # times the shortest reduce's: longer ones get a logarithmic axis
_MOST_POINTS = 200_000  # of the figure of reduces
_LINK = "rounds"
_VALUES = (("test_accuracy", "test accuracy", True), ("loss", "training loss", False))


def contents(folder: Path) -> Values:
    """Return everything that script.html shows. Raises FolderError for a damaged folder."""
    experiment = recorded_deployment(folder).experiment
    values = _counters(folder, experiment)
    _, hosts = script_run.read(folder)
    lines = list(run_folder.read_lines(folder / METRICS, unfinished=True))
    lines = lines or list(script_run.rounds(hosts))  # of a folder of an older version
    ranks = script_run.values(folder)
    took = [_took(reduce) for host in hosts for reduce in host.reduces]
    failure = run_folder.read_failure(folder)
    verdicts = _verdicts(lines)
    return {
        "title": values["name"],
        "lead": _lead(values, experiment),
        "warning": f"Not finished: {failure}" if failure else "",
        "cards": list(_cards(values, took, lines, ranks)),
        "recorded": list(_recorded(ranks)),
        "times": _times(hosts, lines) if took else None,
        "slow": list(_slow_rows(hosts)),
        "verdicts": _lost(verdicts, lines) if verdicts else None,
        "verdict_key": [
            charts.key(label, figures.KINDS.get(label, figures.DARK), 10)
            for label in sorted(verdicts)
        ],
        "bytes": _bytes(lines) if lines else None,
        "bytes_key": [charts.key(*way) for way in _WAYS],
        "traffic": _traffic(lines) if lines else None,
        "links": run_page.links(values),
        "switches": run_page.switches(values),
        "experiment": (folder / EXPERIMENT).read_text("utf-8"),
    }


def _counters(folder: Path, experiment: Experiment) -> Values:
    """Return torchrun.json's values; without counters where the run did not come so far."""
    nothing: Values = {"name": experiment.name, "switches": {}, "links": []}
    nothing |= {"link_bytes": {"hosts": 0, "fabric": 0}, "jobs": [{"name": experiment.name}]}
    path = folder / COUNTERS
    if not path.exists():
        return nothing
    try:
        found: Values = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise FolderError(f"{path}: damaged: {error}") from None
    return nothing | found


def _lead(values: Values, experiment: Experiment) -> str:
    job = experiment.job[0]
    where = f"{job.size} ranks, aggregation {job.aggregation}, seed {experiment.seed}"
    if "script" not in values:
        return where
    if not values["script"]:
        return f"programs from the prompt, {values['seconds']:.1f} s, {where}"
    return f"{Path(values['script']).name}, {values['seconds']:.1f} s, {where}"


def _cards(
    values: Values, took: Sequence[int], lines: Sequence[Line], ranks: Sequence[Sequence[Line]]
) -> Iterator[Values]:
    card = run_page.card
    if accuracies := _together(ranks, "test_accuracy"):
        yield card("Test accuracy", run_page.percent(accuracies[-1][1]), "the ranks' mean")
    if took:
        reduces = f"{len(took):,} in {len(lines):,} rounds, of all ranks"
        yield card("Median reduce", seconds(median(took)), reduces)
        yield card("Slowest reduce", seconds(max(took)), f"{max(took) / median(took):,.1f}× median")
    yield card("Hosts' links", f"{values['link_bytes']['hosts']:,} B", "all traffic, both ways")
    found: Counter[str] = Counter()
    for line in lines:
        found.update(line["verdicts"])
    gone = sum(count for label, count in found.items() if lost(label.partition(",")[0]))
    note = ", ".join(f"{label}: {count:,}" for label, count in sorted(found.items())) or "none"
    yield card("Losses injected", f"{gone:,}", note)
    missed = sum(line["missed"] for line in lines)
    yield card("Results missed", f"{missed:,}", "of all ranks", bad=missed > 0)
    if dropped := queue_drops(values):
        yield card("Queue drops", f"{dropped:,}", "packets", bad=True)


# What the script records


def _together(ranks: Sequence[Sequence[Line]], name: str) -> list[tuple[float, float]]:
    """Return the ranks' mean of a value, where all record it, and the seconds from the first
    record."""
    points = []
    for records in zip(*ranks, strict=False):
        found = [record[name] for record in records if isinstance(record.get(name), int | float)]
        if len(found) == len(ranks):
            begin = min(rank[0]["at"] for rank in ranks)
            at = max(record["at"] for record in records)
            points.append(((at - begin) / 1e9, sum(found) / len(found)))
    return points


def _recorded(ranks: Sequence[Sequence[Line]]) -> Iterator[figures.Figure]:
    for name, title, share in _VALUES:
        if points := _together(ranks, name):
            x, y = zip(*points, strict=True)
            line = Curve(title, figures.RUN, False, x, y)
            yield figures.curves([line], "seconds", title, percent=share, unit=" s")


# Reduces


def _took(reduce: Line) -> int:
    return int(reduce["finished"] - reduce["started"])


def _over(rounds: Sequence[Line], figure: figures.Figure) -> figures.Figure:
    """Return the figure with the axis that figures over the rounds share."""
    figure["layout"]["xaxis"]["range"] = [-0.5, rounds[-1]["training_round"] + 0.5]
    return figure


def _colour(worker: int) -> str:
    return figures.PALETTE[worker % len(figures.PALETTE)]


def _times(hosts: Sequence[HostRecords], rounds: Sequence[Line]) -> Values:
    """Return the figures of the reduces' times, and their key."""
    every = -(-sum(len(host.reduces) for host in hosts) // _MOST_POINTS)
    lines, spread = [], []
    for host in hosts:
        name, colour = f"rank {host.worker}", _colour(host.worker)
        shown = host.reduces[::every]
        took = [_took(reduce) for reduce in host.reduces]
        x = [reduce["iteration"] for reduce in shown]
        lines.append(Curve(name, colour, False, x, [ms / 1e6 for ms in took[::every]]))
        spread.append((name, colour, took[::every]))
    figure = figures.curves(lines, "round, from 0", "ms", link=_LINK)
    for trace, host in zip(figure["data"], hosts, strict=True):
        trace["mode"] = "markers"
        trace["customdata"] = [
            [reduce["ticket"], reduce["tensor"], reduce["values"]]
            for reduce in host.reduces[::every]
        ]
        trace["hovertemplate"] = (
            f"rank {host.worker}, round %{{x}}<br>reduce %{{customdata[0]}}, tensor"
            " %{customdata[1]}, %{customdata[2]:,} values<br>%{y:,.6~g} ms<extra></extra>"
        )
    positive = [y for line in lines for y in line.y if y > 0]
    if positive and max(positive) > _SPREAD * min(positive):
        figure["layout"]["yaxis"]["type"] = "log"
    return {
        "figure": _over(rounds, figure),
        "key": [charts.key(line.name, line.colour) for line in lines],
        "distribution": charts.distribution(spread, "reduces"),
        "part": f"One of {every:,} is drawn." if every > 1 else "",
    }


def _slow_rows(hosts: Sequence[HostRecords]) -> Iterator[list[str]]:
    """Yield the reduces that took longest, with what happened on their hosts meanwhile."""
    reduces = [(host, reduce) for host in hosts for reduce in host.reduces]
    for host, reduce in sorted(reduces, key=lambda each: -_took(each[1]))[:_SLOWEST]:
        numbers = (reduce[key] for key in ("iteration", "ticket", "tensor", "values"))
        happened = _happened(list(host.during(reduce)))
        yield [f"{host.worker}", *(f"{n:,}" for n in numbers), seconds(_took(reduce)), happened]


def _happened(events: Sequence[Line]) -> str:
    found = Counter(_event(event) for event in events)
    return ", ".join(f"{count:,} × {what}" for what, count in found.items()) or "nothing recorded"


def _event(event: Line) -> str:
    if event["kind"] == "verdict":
        what = "packet lost" if lost(event["verdict"]) else f"packet: {event['verdict']}"
        return f"{what}, {event['direction']}"
    if event["kind"] == "stall":
        missing = ", ".join(map(str, event["missing"] or ()))
        return f"waited for ranks {missing}" if missing else "asked the switch for a lost result"
    if event["kind"] == "resend":
        return "packets sent again"
    return "gave up" if event["stage"] == "given up" else "timer ran out, sent again"


# Traffic

_WAYS = (("up", figures.RUN), ("down", figures.PALETTE[1]))


def _verdicts(lines: Sequence[Line]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for line in lines:
        for label, count in line["verdicts"].items():
            found[label][line["training_round"]] = count
    return found


def _lost(verdicts: dict[str, dict[int, int]], lines: Sequence[Line]) -> figures.Figure:
    return _over(lines, figures.stack(verdicts, "packets", _LINK))


def _bytes(lines: Sequence[Line]) -> figures.Figure:
    x = [line["training_round"] for line in lines]
    curves = [Curve(way, ink, False, x, [line[f"wire_{way}"] for line in lines])
              for way, ink in _WAYS]  # fmt: skip
    figure = figures.curves(curves, "round, from 0", "bytes of all ranks", link=_LINK)
    return _over(lines, figure)


def _traffic(lines: Sequence[Line]) -> Values:
    """Return bars of a round's bytes of a rank, beside those of its values as float32."""
    count = sum(len(line["workers"]) for line in lines)
    plain = Bar("values as float32", 4 * sum(line["values"] for line in lines) / count)

    def bars(way: str) -> figures.Figure:
        payload, wire = (
            sum(line[f"{part}_{way}"] for line in lines) / count for part in ("payload", "wire")
        )
        return figures.traffic([Bar("this run", payload, wire - payload), plain])

    colours = (("payload", figures.RUN), ("headers", figures.HEADERS))
    return {
        "key": [charts.key(name, colour, 10) for name, colour in colours],
        "up": bars("up"),
        "down": bars("down"),
        "undelivered": False,
        "again": False,
    }
