"""The folder of `gradplane torchrun`: its files, and its records by reduce and by round.

A round is what begins with bucket 0 of DDP, or an all_reduce of the back end.
Times are ns since the first host of the run joined the network.
"""

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradplane.runs.records.recorder import TRAFFIC
from gradplane.runs.records.run_folder import HOSTS, METRICS, read_lines
from gradplane.runs.records.summary import injected

Line = dict[str, Any]

COUNTERS = "torchrun.json"
_EVENTS = ("verdict", "timeout", "stall", "resend")


def is_folder(folder: str | Path) -> bool:
    """Return whether a folder is that of a script's run."""
    return (Path(folder) / HOSTS).is_dir()


def values(folder: Path) -> list[list[Line]]:
    """Return the values that each rank recorded, in order. Raises FolderError."""
    logs = sorted((folder / HOSTS).glob("*.values.jsonl"))
    return [list(read_lines(log, unfinished=True)) for log in logs]


@dataclass(frozen=True)
class HostRecords:
    """A rank's reduces and gathers in order, and the events on its host: what was lost, sent again,
    waited for.

    Of a rank that was stopped, what it recorded until then."""

    worker: int
    reduces: list[Line]
    events: list[Line]
    gathers: list[Line]

    @cached_property
    def _starts(self) -> list[int]:
        return [reduce["started"] for reduce in self.reduces]

    def round_at(self, at: int) -> int | None:
        """Return the round of the last reduce that had begun; None before the first."""
        place = bisect_right(self._starts, at)
        return int(self.reduces[place - 1]["iteration"]) if place else None

    def during(self, reduce: Line) -> Iterator[Line]:
        """Yield the events between a reduce's start and its end."""
        begin, end = reduce["started"], reduce["finished"]
        return (event for event in self.events if begin <= event["at"] <= end)


def read(folder: Path) -> tuple[int, list[HostRecords]]:
    """Return when the first host joined, ns of the machine's clock, and the records of the hosts
    that joined, in the order of the ranks. Raises FolderError where a log is damaged."""
    found = {}
    for path in (folder / HOSTS).glob("*.json"):
        log = read_lines(path.with_suffix(".jsonl"), unfinished=True)
        lines = [line for line in log if line["kind"] in ("joined", "reduce", "gather", *_EVENTS)]
        if lines:
            found[path] = lines
    origin = min((lines[0]["origin"] for lines in found.values()), default=0)
    hosts = [_host(lines, origin) for lines in found.values()]
    return origin, sorted((host for host in hosts if host.reduces), key=lambda host: host.worker)


def _host(lines: list[Line], origin: int) -> HostRecords:
    later = lines[0]["origin"] - origin
    for line in lines:
        for key in {"started", "finished", "at"} & line.keys():
            line[key] += later
    reduces = [line for line in lines if line["kind"] == "reduce"]
    events = [line for line in lines if line["kind"] in _EVENTS]
    gathers = [line for line in lines if line["kind"] == "gather"]
    return HostRecords(reduces[0]["worker"] if reduces else 0, reduces, events, gathers)


def reduces(folder: Path, ranks: Sequence[str]) -> dict[str, Any]:
    """Return the ranks' number, the most reduces and gathers of one, the results that all missed,
    and the verdicts on all hosts' packets. ranks: the names of their hosts."""
    logs = [folder / HOSTS / f"{name}.jsonl" for name in (*ranks, "others")]
    counts, gathers, missed = [0], [0], 0
    verdicts: Counter[tuple[str, str]] = Counter()
    for log in filter(Path.exists, logs):  # a script need not join
        lines = list(read_lines(log, unfinished=True))
        own = [line for line in lines if line["kind"] == "reduce"]
        counts.append(len(own))
        gathers.append(sum(line["kind"] == "gather" for line in lines))
        missed += sum(line["missed"] for line in own)
        verdicts.update(
            (line["verdict"], line["direction"]) for line in lines if line["kind"] == "verdict"
        )
    found = {"ranks": len(ranks), "reduces": max(counts), "gathers": max(gathers), "missed": missed}
    return found | {"losses_injected": injected(verdicts)}


def restored(folder: Path) -> int:
    """Return after how many reduces the ranks went on with a state that they loaded; 0 where they
    loaded none."""
    restored = (line for line in _lines(folder) if line["kind"] == "restored")
    return max((line["reduces"] for line in restored), default=0)


def done(folder: Path) -> int:
    """Return the reduces that a rank had ended, since the training's start where it loaded a
    state."""
    reduces = (line for line in _lines(folder) if line["kind"] == "reduce")
    return 1 + max((line["ticket"] for line in reduces), default=-1)


def _lines(folder: Path) -> Iterator[Line]:
    logs = [path.with_suffix(".jsonl") for path in (folder / HOSTS).glob("*.json")]
    for log in filter(Path.exists, logs):
        yield from read_lines(log, unfinished=True)


def write_metrics(folder: Path) -> None:
    """Write metrics.jsonl, a line a round, from the hosts' logs, where there are any."""
    if not is_folder(folder):
        return
    with (folder / METRICS).open("w", encoding="utf-8") as file:
        for line in rounds(read(folder)[1]):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def rounds(hosts: list[HostRecords]) -> Iterator[Line]:
    """Yield the lines of metrics.jsonl: of each round, its reduces added up, and the traffic of the
    gathers behind its first reduce."""
    found: dict[int, list[tuple[HostRecords, Line]]] = defaultdict(list)
    gathers: dict[int, list[Line]] = defaultdict(list)
    for host in hosts:
        for gather in host.gathers:
            gathers[gather["iteration"]].append(gather)
        for reduce in host.reduces:
            found[reduce["iteration"]].append((host, reduce))
    verdicts = _verdicts(hosts)
    for number in sorted(found):
        reduces = [reduce for _, reduce in found[number]]
        by_worker: dict[int, list[Line]] = defaultdict(list)
        for host, reduce in found[number]:
            by_worker[host.worker].append(reduce)
        yield {
            "job": reduces[0]["job"],
            "training_round": number,
            **_sums(reduces, gathers[number]),
            "values": sum(reduce["values"] for reduce in reduces),
            "verdicts": verdicts[number],
            "workers": [
                {"worker": worker, "reduces": len(own)}
                | _sums(own, [line for line in gathers[number] if line["worker"] == worker])
                for worker, own in by_worker.items()
            ],
        }


def _sums(reduces: list[Line], gathers: list[Line]) -> Line:
    return {
        "started": min(reduce["started"] for reduce in reduces),
        "finished": max(reduce["finished"] for reduce in reduces),
        "missed": sum(reduce["missed"] for reduce in reduces),
        **{key: sum(line[key] for line in (*reduces, *gathers)) for key in TRAFFIC},
    }


def _verdicts(hosts: list[HostRecords]) -> dict[int, dict[str, int]]:
    """Count packets by verdict and direction, "drop, up", in each round."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for host in hosts:
        for event in host.events:
            number = host.round_at(event["at"])
            if event["kind"] == "verdict" and number is not None:
                found[number][f"{event['verdict']}, {event['direction']}"] += 1
    return defaultdict(dict, found)
