"""`gradplane records`: a run folder's records as CSV, a line a packet."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from gradplane.runs.records.run_data import RunData

KINDS = ("arrival", "norm", "stall", "epoch", "verdict")


def write(folder: Path, kind: str, out: TextIO) -> int:
    """Write the records of one of KINDS, under a line of their fields' names; return their number.

    Raises FolderError where the folder is damaged.
    """
    data = RunData.opened(folder)
    lines: Iterable[dict[str, Any]] = data.verdicts
    if kind != "verdict":
        lines = (line for line in data.arrivals if line["kind"] == kind)
    writer = None
    count = 0
    for line in lines:
        fields = {key: value for key, value in line.items() if key != "kind"}
        if writer is None:
            writer = csv.DictWriter(out, list(fields), extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        writer.writerow(fields)
        count += 1
    return count
