"""Checks of a run folder's records against each other; FolderError names file and line.

They find damage in folders without digests, and describe it in folders with digests.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradplane._suggestions import quoted
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.schema import Experiment
from gradplane.hosts.absences import present
from gradplane.runs.records.record_types import (
    Arrivals,
    Epoch,
    LinkUse,
    Membership,
    Redo,
    Resend,
    Result,
    Round,
    RunSummary,
    Stall,
    Timeline,
    Timeout,
    Verdict,
    Window,
    fault,
)
from gradplane.runs.records.run_folder import EXPERIMENT, SUMMARY, FolderError

Line = dict[str, Any]

_ARRIVALS = {
    "arrivals": Arrivals,
    "arrival": Result,
    "norm": Result,
    "epoch": Epoch,
    "redo": Redo,
    "stall": Stall,
    "crash": Membership,
    "join": Membership,
    "timeline": Timeline,
    "timeout": Timeout,
    "resend": Resend,
    "window": Window,
}


def check_summary(path: Path, summary: Line, deployment: Deployment) -> None:
    """Check that summary.json has its keys, and the experiment's jobs, workers and rounds."""
    jobs = deployment.jobs
    _require(summary, RunSummary, str(path))
    for values, where in ((summary, str(path)), (summary.get("baseline"), f"{path}: baseline")):
        if values is None:
            continue
        if len(values["jobs"]) != len(jobs):
            raise FolderError(
                f"{where}: {len(values['jobs'])} jobs, and {EXPERIMENT} has"
                f" {len(jobs)}: one of the two was changed"
            )
        for job, planned in zip(values["jobs"], jobs, strict=True):
            workers = planned.job.size
            if set(job["weights"]) != set(map(str, range(workers))):
                raise FolderError(
                    f"{where}: job {job['name']}: weights of workers"
                    f" {', '.join(job['weights']) or 'none'}, and the job has {workers}:"
                    f" the file or {EXPERIMENT} was changed"
                )
            if job["rounds"] != planned.rounds:
                raise FolderError(
                    f"{where}: job {job['name']}: {job['rounds']} rounds, and by {EXPERIMENT} the"
                    f" job has {planned.rounds}: one of the two, or the job's data, was changed"
                )


def check_rounds(
    path: Path, lines: Sequence[Line], experiment: Experiment, summary: Line | None
) -> None:
    """Check that each job's rounds follow each other from 0, with a record of every worker.

    With a summary: that they are as many as it says."""
    counts = [0] * len(experiment.job)
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        _require(line, Round, place)
        job = line["job"]
        if job not in range(len(counts)):
            raise FolderError(f"{place}: job {job!r}, and {EXPERIMENT} has {len(counts)}")
        if line["training_round"] != counts[job]:
            raise FolderError(
                f"{place}: job {job}: round {line['training_round']} where round {counts[job]} is"
                " expected: lines before it are missing, or out of order"
            )
        counts[job] += 1
        here = present(experiment.absences(job), experiment.job[job].size, line["training_round"])
        _check_workers(line["workers"], here, place)
    for number, job in enumerate(summary["jobs"] if summary else ()):
        if counts[number] != job["rounds"]:
            raise FolderError(
                f"{path}: job {number}: it ends after {counts[number]} rounds, and {SUMMARY} has"
                f" {job['rounds']}: lines are missing at its end"
            )


def _check_workers(workers: Sequence[Line], here: tuple[int, ...], place: str) -> None:
    numbers = tuple(worker["worker"] for worker in workers)
    if numbers != here:
        raise FolderError(
            f"{place}: workers {', '.join(map(str, numbers)) or 'none'}, and the job has"
            f" {len(here)}: the line or {EXPERIMENT} was changed"
        )


def check_arrival_lines(path: Path, lines: Sequence[Line], experiment: Experiment) -> None:
    """Check the keys of arrivals.jsonl's lines."""
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        declared = _ARRIVALS.get(str(line.get("kind")))
        if declared is None:
            known = ", ".join(_ARRIVALS)
            raise FolderError(
                f"{place}: damaged: kind {quoted(line.get('kind'))} is none of {known}"
            )
        _require(line, declared, place)
        job = line["job"]
        if job not in range(len(experiment.job)):
            raise FolderError(f"{place}: job {job!r}, and {EXPERIMENT} has {len(experiment.job)}")
        if line["kind"] in ("arrival", "norm"):
            _require_bitmap(line["bitmap"], place)


def check_arrival_counts(
    path: Path, lines: Sequence[Line], metrics: Sequence[Line], experiment: Experiment
) -> None:
    """Check that every worker has as many results in every recorded round.

    `lines` are those of arrivals.jsonl, expanded to one a chunk."""
    for number, job in enumerate(experiment.job):
        own = [line for line in lines if line["job"] == number]
        rounds = [line for line in metrics if line["job"] == number]
        for kind in ("norm", "arrival"):
            found = Counter(
                (line["ticket"], line["worker"])
                for line in own
                if line["kind"] == kind and line["result"] != "late"
            )
            skips = kind == "norm" and job.local_steps > 1  # rounds without an exchange have none
            here = [present(experiment.absences(number), job.size, r) for r in range(len(rounds))]
            _check_counts(path, number, kind, found, here, skips)
        ended = Counter((line["epoch"], line["worker"]) for line in own if line["kind"] == "epoch")
        for line in (line for line in rounds if "test_accuracy" in line):
            epoch = line["epoch"]
            for worker in present(experiment.absences(number), job.size, line["training_round"]):
                if not ended[epoch, worker]:
                    raise FolderError(
                        f"{path}: job {number}, worker {worker}: the line of the end of epoch"
                        f" {epoch} is missing"
                    )


def _check_counts(
    path: Path,
    job: int,
    kind: str,
    found: Counter[tuple[int, int]],
    here: Sequence[tuple[int, ...]],
    skips: bool,
) -> None:
    """Check that each worker has as many lines as the others in every round.

    here: the workers of each round. All of them wait for equally many results in all rounds; with
    `skips`, a round may have none.
    """
    most = max(found.values(), default=0)
    for training_round, workers in enumerate(here):
        any_lines = any(found[training_round, worker] for worker in workers)
        expected = most if any_lines or not skips else 0
        for worker in workers:
            count = found[training_round, worker]
            if count != expected:
                raise FolderError(
                    f"{path}: job {job}, round {training_round}, worker {worker}: {count} lines of"
                    f" kind {quoted(kind)}, other rounds or workers have {expected}: lines are"
                    " missing"
                )


def check_link_lines(path: Path, lines: Sequence[Line], links: int) -> None:
    """Check the keys of links.jsonl's lines, and that each has so many links."""
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        _require(line, LinkUse, place)
        if len(line["links"]) != links:
            raise FolderError(
                f"{place}: {len(line['links'])} links, and the topology has {links}: the line or"
                f" {EXPERIMENT} was changed"
            )


def check_verdicts(path: Path, lines: Sequence[Line], summary: Line | None) -> None:
    """Check the lines' keys and, with a summary, that they are as many of each kind as it says."""
    for number, line in enumerate(lines, 1):
        _require(line, Verdict, f"{path}:{number}")
    if summary is None:
        return
    found = Counter((line["verdict"], line["direction"]) for line in lines)
    for verdict, ways in summary["losses_injected"].items():
        for direction, count in ways.items():
            if found.pop((verdict, direction), 0) != count:
                raise FolderError(
                    f"{path}: not the {count} verdicts {quoted(verdict)}, {direction}, that"
                    f" {SUMMARY} counts: lines are missing or were added"
                )
    for verdict, direction in found:
        raise FolderError(
            f"{path}: verdicts {quoted(verdict)}, {direction}, which {SUMMARY} does not count"
        )


def _require(found: object, kind: type[Any], place: str) -> None:
    """Raise FolderError if the record has not the keys and values of its kind."""
    if wrong := fault(found, kind):
        raise FolderError(f"{place}: damaged: {wrong}")


def _require_bitmap(text: Any, place: str) -> None:
    try:
        int(text, 16)
    except (TypeError, ValueError):
        raise FolderError(f"{place}: damaged: bitmap {quoted(text)} is not hexadecimal") from None
