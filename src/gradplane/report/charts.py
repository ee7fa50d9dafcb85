"""The figures that run and comparison pages share: curves of trainings, bars of traffic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.records.summary import undelivered
from gradplane.report import figures

Line = dict[str, Any]


@dataclass(frozen=True)
class Training:
    """One job's training in one run: its look, and its lines of metrics.jsonl."""

    label: str
    colour: str
    dashed: bool
    lines: Sequence[Line]


def curves(trainings: Iterable[Training]) -> dict[str, Any]:
    """Draw accuracy over rounds, accuracy over time, and loss over rounds, with a key."""
    shown = [training for training in trainings if training.lines]
    by_round, by_time, loss = [], [], []
    for training in shown:
        look = (training.colour, "--" if training.dashed else "-")
        ends = [line for line in training.lines if "test_accuracy" in line]
        accuracy = [line["test_accuracy"] for line in ends]
        by_round.append((*look, [line["round"] + 1 for line in ends], accuracy))
        start = min(line["started"] for line in training.lines)
        by_time.append((*look, [(line["finished"] - start) / 1e9 for line in ends], accuracy))
        rounds = [line["round"] + 1 for line in training.lines]
        loss.append((*look, rounds, [line["loss"] for line in training.lines]))
    svgs = [
        figures.curves(by_round, "rounds", "test accuracy", percent=True),
        figures.curves(by_time, "seconds", "test accuracy", percent=True, time=True),
        figures.curves(loss, "rounds", "training loss"),
    ]
    key = [
        {
            "label": t.label,
            "colour": t.colour,
            "width": 2.5,
            "dashes": "5 3" if t.dashed else "none",
        }
        for t in shown
    ]
    return {"key": key, "svgs": svgs}


def traffic(jobs: Iterable[tuple[str, Line]], plain: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Draw bars of each labelled job's traffic, and of so many float32 values, with a key."""
    labelled = list(jobs)
    values = [figures.Bar(label, 4.0 * count) for label, count in plain]
    ups, downs = ([_bar(label, job, way) for label, job in labelled] for way in ("up", "down"))
    missing = any(bar.undelivered for bar in (*ups, *downs))
    colours = [("payload", figures.RUN), ("headers", figures.HEADERS)]
    if missing:
        colours.append(("not delivered", figures.UNDELIVERED))
    key = [{"label": n, "colour": c, "width": 10, "dashes": "none"} for n, c in colours]
    return {
        "key": key,
        "up": figures.traffic([*ups, *values]),
        "down": figures.traffic([*downs, *values]),
        "undelivered": missing,
    }


def _bar(label: str, job: Line, way: str) -> figures.Bar:
    payload, headers = (job["traffic"][f"{part}_{way}"] for part in ("payload", "headers"))
    return figures.Bar(label, payload, headers, undelivered(job, way))
