"""A finished run folder, read back for reports and replays."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradplane.runner.run_folder import (
    ARRIVALS,
    BASELINE,
    EXPERIMENT,
    IMPAIRMENTS,
    METRICS,
    read_lines,
    read_summary,
)

Line = dict[str, Any]

STREAM_TYPES = ("stream", "values", "ack", "other")  # of verdicts on packets that use no slot


@dataclass(frozen=True)
class RunData:
    """Reads each file when it is asked for. Raises FolderError if there is no finished run."""

    folder: Path
    summary: dict[str, Any]

    @classmethod
    def read(cls, folder: str | Path) -> "RunData":
        """The run in that folder."""
        return cls(Path(folder), read_summary(Path(folder)))

    @property
    def name(self) -> str:
        """What to call the run where several are shown."""
        return self.folder.resolve().name

    @property
    def machine(self) -> dict[str, Any]:
        """What the run ran on."""
        return {key: self.summary[key] for key in ("versions", "cpu", "blas", "platform")}

    @cached_property
    def experiment_text(self) -> str:
        """experiment.toml."""
        return (self.folder / EXPERIMENT).read_text("utf-8")

    @cached_property
    def metrics(self) -> list[Line]:
        """A line a round."""
        return list(read_lines(self.folder / METRICS))

    @cached_property
    def baseline_metrics(self) -> list[Line]:
        """The same of the baseline; empty if there was none."""
        return list(read_lines(self.folder / BASELINE / METRICS))

    @cached_property
    def arrivals(self) -> list[Line]:
        """Arrivals, norms, epochs and stalls, in the order of the log."""
        return list(read_lines(self.folder / ARRIVALS))

    @cached_property
    def verdicts(self) -> list[Line]:
        """What the impairments did, packet by packet."""
        return list(read_lines(self.folder / IMPAIRMENTS))

    def rounds_of_slots(self) -> dict[tuple[int, int, int], int]:
        """(job, slot, round of the slot) to the training round that used it."""
        kinds = ("arrival", "norm")
        lines = (line for line in self.arrivals if line["kind"] in kinds)
        return {(line["job"], line["slot"], line["round"]): line["ticket"] for line in lines}

    def verdicts_by_round(self) -> dict[tuple[str, str], Counter[int]]:
        """By (verdict, direction): how many in each training round, of packets with a slot."""
        rounds = self.rounds_of_slots()
        found: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for line in self.verdicts:
            if line["type"] in STREAM_TYPES:
                continue
            training_round = rounds.get((line["job"], line["slot"], line["round"]))
            if training_round is not None:
                found[line["verdict"], line["direction"]][training_round] += 1
        return found
