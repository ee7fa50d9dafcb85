"""Losses from a file, `model = "recorded"`: another run's verdicts, a CSV, or a pair of captures.

The file's content takes its name's place: the section becomes a drop list, so that a run folder
needs nothing else. A packet's second verdict is in a second list, and so on, as a list has one
verdict for a packet, and several delays and copies add up.
"""

import csv
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gradplane._captures import CaptureError
from gradplane._suggestions import near_file
from gradplane._toml_documents import faults, nearest
from gradplane.experiment.capture_pairs import missing_packets
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.impairment_sections import DropListSection, ListedPacket, RecordedSection

log = logging.getLogger(__name__)

IDENTITY = ("link", "direction", "job", "type", "use", "slot", "attempt", "peer")
_VERDICTS = "impairments.jsonl"  # of a run folder
_HOSTS = "hosts"  # of the folder of `gradplane torchrun`
_UNITS = {"": 1e9, "_s": 1e9, "_ms": 1e6, "_us": 1e3, "_ns": 1.0}
_TIMES = {
    f"{name}{unit}": (f"{name}_ns", ns) for name in ("time", "until") for unit, ns in _UNITS.items()
}
_WORDS = ("link", "direction", "type", "peer", "verdict")
_NUMBERS = (
    "packet", "job", "training_round", "use", "slot", "attempt", "delay_ns", "round",
)  # fmt: skip
_LEFT_OUT = ("kind", "at", "impairment", "entry")  # of `gradplane records`, without a meaning
_SHOWN = 5  # lines of a file that are wrong


def drop_lists(section: RecordedSection, folder: Path) -> list[DropListSection]:
    """Return the drop lists that a section stands for; its files are looked for from a folder.

    Raises ExperimentError, with file and line where there is one."""
    if isinstance(section.file, str):
        if section.by == "packet" or (section.by and section.file.endswith(".csv")):
            raise ExperimentError(
                'by is a key of two captures, file = [ENTERED, LEFT], and, as by = "time", of'
                " another run's losses"
            )
        by_time = section.by is not None
        files = _files(folder / section.file)
        packets = [found for file in files for found in _listed(file, by_time)]
        if not packets:
            raise ExperimentError(f"{section.file}: no packet was lost or delayed there")
    else:
        entered, left = section.file
        packets = list(_not_left(folder / entered, folder / left, section.by or "packet"))
        if not packets:
            raise ExperimentError(
                f"{left}: every packet of {entered} is in it, so none was lost: the capture of what"
                " entered comes first"
            )
    if section.within_ms is not None and not any("time_ns" in packet for packet in packets):
        raise ExperimentError(
            'within_ms ends losses that go by their time: use by = "time", or a column time'
        )
    keys = section.model_dump(exclude={"model", "file", "by"}) | {"model": "drop list"}
    return [
        DropListSection.model_validate(keys | {"packets": packets})
        for packets in separated(packets)
    ]


def separated(lines: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return verdicts as drop lists, each of which has one verdict for a packet at most."""
    lists: list[list[dict[str, Any]]] = []
    seen: Counter[tuple[Any, ...]] = Counter()
    for line in lines:
        packet = tuple(line.get(key) for key in (*IDENTITY, "packet", "time_ns", "until_ns"))
        if seen[packet] == len(lists):
            lists.append([])
        lists[seen[packet]].append(line)
        seen[packet] += 1
    return lists


def listed(line: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded verdict as an entry of a drop list."""
    return {key: line[key] for key in (*IDENTITY, "verdict", "delay_ns")}


def _files(path: Path) -> list[Path]:
    """Return the files of verdicts of a run folder: of a script's run the log of each host."""
    if not path.is_dir():
        return [path]
    logs = sorted(path.glob(f"{_HOSTS}/*.jsonl"))
    found = [log for log in logs if not log.match("*.values.jsonl")] or [path / _VERDICTS]
    if not found[0].exists():
        raise ExperimentError(f"{path}: not a run's folder: it has no {_VERDICTS}")
    return found


def _listed(path: Path, by_time: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the entries of a file of verdicts, of a host's log, or of a CSV, each checked; by_time:
    of a verdict, the first packet of its link and direction from its time on."""
    wrong: list[str] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            recorded = path.suffix == ".jsonl"
            for number, row in enumerate(file, 1) if recorded else _rows(path, file):
                try:
                    found = _verdict(row, by_time) if isinstance(row, str) else _entry(row)
                    if found is None:
                        continue
                    ListedPacket.model_validate(found)
                    yield found | {"origin": f"{path}:{number}"}
                except ValidationError as error:
                    wrong += [f"{path}:{number}: {text}" for text in faults(ListedPacket, error)]
                except _RowError as error:
                    wrong.append(f"{path}:{number}: {error}")
    except UnicodeDecodeError:
        raise ExperimentError(
            f"{path}: neither a CSV nor a run's verdicts; two captures are file = [ENTERED, LEFT]"
        ) from None
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror or error}{near_file(path)}") from None
    if wrong:
        more = [f"{path}: {len(wrong) - _SHOWN} more lines are wrong"][: len(wrong) > _SHOWN]
        raise ExperimentError("\n".join([*wrong[:_SHOWN], *more]))


class _RowError(Exception):
    """A line that cannot be read as an entry."""


def _verdict(text: str, by_time: bool) -> dict[str, Any] | None:
    """Return the entry of a recorded verdict; None for another line of a host's log."""
    try:
        line = json.loads(text)
        if line.get("kind", "verdict") != "verdict":
            return None
        if by_time:
            keys = ("link", "direction", "verdict", "delay_ns")
            return {key: line[key] for key in keys} | {"time_ns": line["at"]}
        return listed({"use": line.get("round")} | line)  # of an older version
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _RowError(f"not a line of {_VERDICTS} ({error})") from None


def _rows(path: Path, file: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV, by the names in its first line, each with its line's number."""
    lines = iter(file)
    first, comments = next(lines, ""), 0
    while first.startswith("#"):
        first, comments = next(lines, ""), comments + 1
    rest = ("\n" if line.startswith("#") else line for line in lines)
    reader = csv.DictReader(chain([first], rest), skipinitialspace=True)
    known = (*_TIMES, *_WORDS, *_NUMBERS, *_LEFT_OUT)
    columns = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    for name in columns:
        if name not in known:
            other = next((mark for mark in (";", "\t") if mark in name), "")
            hint = f"{other!r} stands between columns" if other else nearest(name, known)
            raise ExperimentError(
                f'{path}:{1 + comments}: no column "{name}": {hint}; the first line'
                " has the columns' names, such as packet,link,direction or time,link,direction"
            )
    if not columns:
        raise ExperimentError(f"{path}: it is empty; its first line has the columns' names")
    for row in reader:
        yield reader.line_num + comments, row


def _entry(row: dict[str, str | None]) -> dict[str, Any]:
    """Return the entry of a CSV's row; an empty cell is not given."""
    found: dict[str, Any] = {}
    for name, cell in row.items():
        if name is None:
            raise _RowError("more cells than columns in the first line")
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or name in _LEFT_OUT:
            continue
        try:
            if name in _TIMES:
                key, unit = _TIMES[name]
                found[key] = round(float(text) * unit)
            else:
                found[name] = int(text) if name in _NUMBERS else text
        except (ValueError, OverflowError):
            kind = "a number" if name in _TIMES else "a whole number"
            raise _RowError(f'{name} = "{text}": expected {kind}') from None
    return found


def _not_left(entered: Path, left: Path, by: str) -> Iterator[dict[str, Any]]:
    """Yield an entry for each packet that is in the first capture and not in the second."""
    try:
        found = missing_packets(entered, left)
    except CaptureError as error:
        raise ExperimentError(str(error)) from None
    if found.packets and len(found.lost) == found.packets:
        raise ExperimentError(
            f"{left}: none of the {found.packets} packets of {entered} is in it: captures of two"
            " places on one path are expected, with packets of equal length (tcpdump -s)"
        )
    if found.guessed:
        log.warning(
            "%s: %d of %d packets look alike, and neither order nor times tell which of them left;"
            " losses that are guesses: %d",
            entered, found.alike, found.packets, found.guessed,
        )  # fmt: skip
    if found.strangers:
        log.warning(
            "%s: %d packets of it are not in %s: if they were changed on the way, as by a program"
            " that rewrites them, the same packets count as lost",
            left, found.strangers, entered,
        )  # fmt: skip
    for index, time in found.lost:
        place = {"packet": index + 1} if by == "packet" else {"time_ns": max(0, time)}
        yield place | {"origin": f"{entered}: packet {index + 1}"}
