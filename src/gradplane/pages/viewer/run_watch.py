"""What a page shows of a run that is still going on, read from its folder as it grows."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradplane.experiment.deployment import Deployment
from gradplane.runs.records import run_folder
from gradplane.runs.records.recorder import lost

Line = dict[str, Any]

_RECENT = 10  # rounds over which rates are means


class RunWatch:
    """Call refresh() now and then; `state` is what JSON can hold. folder: of a run that starts."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self._folder = folder
        self._name = deployment.experiment.name
        self._totals = [job.rounds for job in deployment.jobs]
        self.rounds: dict[tuple[int, int], Line] = {}  # by (job, round), in order of their ends
        self._metrics = _Metrics(folder / run_folder.METRICS)
        self._verdicts = _Growing(folder / run_folder.IMPAIRMENTS)
        self._arrivals = _Growing(folder / run_folder.ARRIVALS)
        self._lost: Counter[str] = Counter()  # by link and direction
        self._lately: list[tuple[int, str]] = []  # the same packet by packet, since a round ended
        self._progress = 0  # when the last round ended, ns
        self._delayed = 0
        self._stalls: dict[tuple[int, int], Line] = {}
        self._ended = ""

    def end(self, how: str) -> None:
        """Say that the run is over, and how."""
        self._ended = how

    def refresh(self) -> None:
        """Read what is new."""
        for line in self._metrics.read():
            self.rounds[line["job"], line["round"]] = line
            self._progress = max(self._progress, line["finished"])
        for line in self._verdicts.read():
            if lost(line["verdict"]):
                way = f"{line['link']} {line['direction']}"
                self._lost[way] += 1
                self._lately.append((line["at"], way))
            else:
                self._delayed += 1
        for line in self._arrivals.read():
            if line["kind"] == "stall":
                self._stalls[line["job"], line["worker"]] = line
        self._lately = [(at, way) for at, way in self._lately if at > self._progress]

    @property
    def state(self) -> dict[str, Any]:
        """Progress, rates, losses and stalls, with times in seconds and rates in bit/s."""
        return {
            "name": self._name,
            "ended": self._ended,
            "jobs": [self._job(number, total) for number, total in enumerate(self._totals)],
            "lost": dict(self._lost.most_common()),
            "delayed": self._delayed,
            "stalls": self._stalled(),
        }

    def points(self, beyond: int) -> list[list[float]]:
        """Return [job, round, loss, seconds] of each round after the first `beyond`."""
        lines = list(self.rounds.values())[beyond:]
        return [
            [line["job"], line["round"], line["loss"], (line["finished"] - line["started"]) / 1e9]
            for line in lines
        ]

    def _job(self, number: int, total: int) -> dict[str, Any]:
        lines = [line for (job, _), line in self.rounds.items() if job == number]
        known = [line["test_accuracy"] for line in lines if "test_accuracy" in line]
        recent = lines[-_RECENT:]
        ns = recent[-1]["finished"] - recent[0]["started"] if recent else 0
        rates = {way: sum(line[f"wire_{way}"] for line in recent) for way in ("up", "down")}
        return {
            "rounds": len(lines),
            "total": total,
            "seconds": (lines[-1]["finished"] - lines[0]["started"]) / 1e9 if lines else 0,
            "loss": lines[-1]["loss"] if lines else None,
            "accuracy": known[-1] if known else None,
            "up": 8e9 * rates["up"] / ns if ns else 0,
            "down": 8e9 * rates["down"] / ns if ns else 0,
            "missed": sum(line["missed"] for line in lines),
        }

    def _stalled(self) -> list[str]:
        """Explain the stalls that no later round's end has resolved."""
        ends: dict[int, int] = {}
        for (job, _), line in self.rounds.items():
            ends[job] = max(ends.get(job, 0), line["finished"])
        texts = [
            _waiting(stall)
            for stall in self._stalls.values()
            if stall["at"] > ends.get(stall["job"], 0) and not self._ended
        ]
        if texts and self._lately:
            ways = Counter(way for _, way in self._lately).most_common()
            lost = ", ".join(f"{way} {count}" for way, count in ways)
            texts.append(f"packets that the impairments have lost since the last round: {lost}")
        return texts


def _waiting(stall: Line) -> str:
    """Return who waits for what, and for whom."""
    missing = stall["missing"]
    names = "not known" if missing is None else ", ".join(map(str, missing)) or "none any more"
    return (
        f"job {stall['job']}: worker {stall['worker']} waits for the sum in slot {stall['slot']}"
        f" (use {stall['round']} of the slot); workers missing in it: {names}"
    )


class _Growing:
    """A file of JSON lines that another process appends to; it may come later."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0

    def read(self) -> list[Line]:
        """Return the whole lines since the last call."""
        data = _after(self._path, self._place)
        self._place += len(data)
        return [json.loads(line) for line in data.splitlines()]


class _Metrics:
    """metrics.jsonl, where the last line of each job may still be replaced by a longer one."""

    def __init__(self, path: Path) -> None:
        self._path, self._last = path, dict[int, int]()  # by job: where its last line begins

    def read(self) -> list[Line]:
        """Return the lines that are new, or may have changed since the last call."""
        place, lines = min(self._last.values(), default=0), []
        with suppress(ValueError):  # a line that is being replaced: it is read the next time
            for text in _after(self._path, place).splitlines(keepends=True):
                lines.append(json.loads(text))
                self._last[lines[-1]["job"]] = place
                place += len(text)
        return lines


def _after(path: Path, place: int) -> bytes:
    """Return the whole lines of a file from a place on; none if it is not there."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            data = file.read()
    except FileNotFoundError:
        return b""
    return data[: data.rfind(b"\n") + 1]
