"""The figures that run and comparison pages share: curves of trainings, bars of traffic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from gradplane.pages import figures
from gradplane.pages.figures import Curve, Figure
from gradplane.runs.records.summary import again, undelivered

Line = dict[str, Any]
Key = dict[str, Any]
"""An entry of a key: label, colour, width and dashes of its line."""


@dataclass(frozen=True)
class Training:
    """One job's training in one run: its look, and its lines of metrics.jsonl."""

    label: str
    colour: str
    dashed: bool
    lines: Sequence[Line]


def key(label: str, colour: str, width: float = 2.5, dashed: bool = False) -> Key:
    """Return an entry of a key."""
    dashes = "5 3" if dashed else "none"
    return {"label": label, "colour": colour, "width": width, "dashes": dashes}


def curves(trainings: Iterable[Training]) -> dict[str, Any]:
    """Draw accuracy over rounds, time and bytes, and loss over rounds, with a key.

    Bytes are those on the links of all workers of the job, headers included, both ways."""
    shown = [training for training in trainings if training.lines]
    by_round, by_time, by_bytes, loss = [], [], [], []
    for training in shown:
        look = training.label, training.colour, training.dashed
        sums = accumulate(line["wire_up"] + line["wire_down"] for line in training.lines)
        ends = [
            (line, size / 1e6)
            for line, size in zip(training.lines, sums, strict=True)
            if "test_accuracy" in line
        ]
        accuracy = [line["test_accuracy"] for line, _ in ends]
        start = min(line["started"] for line in training.lines)
        by_round.append(Curve(*look, [line["training_round"] + 1 for line, _ in ends], accuracy))
        times = [(line["finished"] - start) / 1e9 for line, _ in ends]
        by_time.append(Curve(*look, times, accuracy))
        by_bytes.append(Curve(*look, [size for _, size in ends], accuracy))
        rounds = [line["training_round"] + 1 for line in training.lines]
        loss.append(Curve(*look, rounds, [line["loss"] for line in training.lines]))
    label = "test accuracy"
    return {
        "key": [key(t.label, t.colour, dashed=t.dashed) for t in shown],
        "figures": [
            figures.curves(by_round, "rounds", label, percent=True),
            figures.curves(by_time, "seconds", label, percent=True, far_apart=True, unit=" s"),
            figures.curves(
                by_bytes, "MB on the workers' links", label, percent=True, far_apart=True
            ),
            figures.curves(loss, "rounds", "training loss"),
        ],
    }


def traffic(jobs: Iterable[tuple[str, Line]], plain: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Draw bars of each labelled job's traffic, and of so many float32 values, with a key."""
    labelled = list(jobs)
    values = [figures.Bar(label, 4.0 * count) for label, count in plain]
    ups, downs = ([_bar(label, job, way) for label, job in labelled] for way in ("up", "down"))
    missing = any(bar.undelivered for bar in (*ups, *downs))
    colours = {"payload": figures.RUN}
    if twice := any(bar.again for bar in (*ups, *downs)):
        colours["sent again"] = figures.AGAIN
    colours["headers"] = figures.HEADERS
    if missing:
        colours["not delivered"] = figures.UNDELIVERED
    return {
        "key": [key(name, colour, 10) for name, colour in colours.items()],
        "up": figures.traffic([*ups, *values]),
        "down": figures.traffic([*downs, *values]),
        "undelivered": missing,
        "again": twice,
    }


def _bar(label: str, job: Line, way: str) -> figures.Bar:
    payload, headers = (job["traffic"][f"{part}_{way}"] for part in ("payload", "headers"))
    twice = again(job, way)
    return figures.Bar(label, payload - twice, headers, undelivered(job, way), twice)


def distribution(times: Sequence[tuple[str, str, Sequence[int]]], what: str = "rounds") -> Figure:
    """Draw the share of rounds that took at most so long, for each (label, colour, ns)."""
    lines = []
    for label, colour, took in times:
        ordered = sorted(took)
        shares = [(place + 1) / len(ordered) for place in range(len(ordered))]
        lines.append(Curve(label, colour, False, [ns / 1e6 for ns in ordered], shares))
    figure = figures.curves(lines, "ms at most", f"share of the {what}", percent=True, unit=" ms")
    figure["layout"]["xaxis"]["type"] = "log"
    figure["layout"]["yaxis"]["range"] = [0, 1.02]
    for trace in figure["data"]:
        trace["mode"], trace["line"]["shape"] = "lines", "hv"
    return figure
