"""The outcome of each slot of a run, from its arrivals.jsonl: all that a replay needs."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gradplane.aggregations.needs import Place


@dataclass
class Outcome:
    """The outcome of a norm or a chunk: which workers are in the result, which had it in time."""

    bitmap: int | None = None  # the workers in the result; None: nobody ever got it
    digest: str | None = None  # of the sums
    in_time: set[int] = field(default_factory=set)

    def contains(self, worker: int) -> bool:
        """Return whether the worker's packet is in the result."""
        return self.bitmap is not None and bool(self.bitmap >> worker & 1)


@dataclass
class JobOutcomes:
    """The outcomes of one job. A missing outcome had no effect: no worker waited for it."""

    norms: dict[Place, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    chunks: dict[Place, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    stats: dict[int, int] = field(default_factory=dict)  # by ticket: who is in a server's maximum
    pushes: dict[int, int] = field(default_factory=dict)  # by ticket: who is in a server's mean
    sources: dict[int, int | None] = field(default_factory=dict)  # by epoch: whose parameters

    def add(self, line: dict[str, Any]) -> None:
        """Add a line of arrivals.jsonl."""
        if line["kind"] == "epoch":
            self.sources[line["epoch"]] = line["source"]
        elif line["kind"] in ("norm", "arrival") and line["slot"] is None:
            through_server = self.stats if line["kind"] == "norm" else self.pushes
            through_server[line["ticket"]] = int(line["bitmap"], 16)
        elif line["kind"] == "norm":
            self._result(self.norms, line)
        elif line["kind"] == "arrival":
            self._result(self.chunks, line)

    def _result(self, outcomes: dict[Place, Outcome], line: dict[str, Any]) -> None:
        outcome = outcomes[line["slot"], line["round"]]
        if line["result"] != "lost":
            outcome.bitmap = int(line["bitmap"], 16)
            outcome.digest = line.get("digest")
        if line["result"] == "in time":
            outcome.in_time.add(line["worker"])


def read(lines: Iterable[dict[str, Any]]) -> dict[int, JobOutcomes]:
    """Return the outcomes of each job, by its number."""
    jobs: dict[int, JobOutcomes] = defaultdict(JobOutcomes)
    for line in lines:
        jobs[line["job"]].add(line)
    return jobs
