"""A run folder read back for reports, replays and `run --resume`.

A run that was stopped is read as far as it was recorded. Every file is compared with the manifest's
digests; every line that is used is checked, by itself and together with the others.

A line of kind "arrivals" has all chunks of one worker's reduce, as columns; it is read as the lines
of kind "arrival", one a chunk, that it stands for. docs/architecture.md lists the fields.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from gradplane._suggestions import near_file
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import Experiment, ExperimentError
from gradplane.hosts.digest import OLDER
from gradplane.hosts.packed_columns import unpack
from gradplane.runs.records import consistency, own_parts, recorder, run_folder, script_run
from gradplane.runs.records.manifest import Extent, FileDigest, Manifest, extents, program_digest
from gradplane.runs.records.run_folder import (
    ARRIVALS,
    BASELINE,
    EXPERIMENT,
    IMPAIRMENTS,
    LINKS,
    MANIFEST,
    METRICS,
    PARTS,
    SUMMARY,
    FolderError,
    read_lines,
)
from gradplane.runs.records.summary import outcome

_COLUMNS = ("count", "bitmap", "attempts", "notices", "digest", "at")
_SENT = "sent"  # a column that lines of older versions lack


def expanded(lines: Iterable[Line], path: object) -> Iterator[Line]:
    """Yield the lines, each of kind "arrivals" as the lines of its chunks. Raises FolderError that
    names the line of `path` whose columns are damaged.
    """
    for number, line in enumerate(lines, 1):
        if line.get("kind") != "arrivals":
            yield line
            continue
        try:
            yield from _chunks(line)
        except (ValueError, TypeError, AttributeError) as error:
            raise FolderError(f"{path}:{number}: damaged: {error}") from None


def _chunks(line: Line) -> Iterator[Line]:
    columns = [unpack(line[name], line["chunks"]).tolist() for name in _COLUMNS]
    sent = unpack(line[_SENT], line["chunks"]).tolist() if _SENT in line else None
    who = {"kind": "arrival"} | {name: line[name] for name in ("job", "worker", "ticket")}
    slots, rack, workers = line["slots"], line.get("rack"), line.get("workers")
    begin, end = line.get("own", (0, line["chunks"]))  # of a reduce-scatter: with sums
    for index, values in enumerate(zip(*columns, strict=True)):
        number = line["first"] + index
        count, bitmap, attempts, notices, digest, at = values
        if not count:
            bitmap = 0
        elif count == workers:
            bitmap = (1 << workers) - 1
        elif rack is not None:
            bitmap = sum((bitmap >> child & 1) << worker for child, worker in enumerate(rack))
        yield (
            who
            | {
                "slot": number % slots,
                "use": number // slots + 1,
                "result": "in time" if count else "lost",
                "count": count,
                "bitmap": f"{bitmap:016x}",
                "digest": f"{digest:016x}" if count and begin <= index < end else None,
                "attempts": attempts,
                "notices": notices,
                "at": at,
            }
            | ({} if sent is None else {_SENT: sent[index]})
            | ({"lost": line["lost"]} if "lost" in line and not index else {})
        )


Line = dict[str, Any]

STREAM_TYPES = ("stream", "values", "ack", "other")  # of verdicts on packets that use no slot
_MACHINE = ("versions", "cpu", "blas", "platform")


@dataclass(frozen=True)
class RunData:
    """A run folder's contents; each file is read when it is asked for.

    `manifest` is None in folders of older versions. `finished` is False where the training was
    stopped: `summary` then holds what was recorded until then. Raises FolderError where files are
    damaged, and ExperimentError where experiment.toml is."""

    folder: Path
    deployment: Deployment
    manifest: Manifest | None
    stored: dict[str, Any] | None  # summary.json

    @classmethod
    def read(cls, folder: str | Path) -> RunData:
        """Read the run in that folder. FolderError if it is not a run folder, if it is damaged,
        or if the run was stopped before the end of its first round."""
        run = cls.opened(Path(folder))
        if not run.metrics:
            raise FolderError(f"{folder}: {run.state}")
        run.check()
        return run

    @classmethod
    def opened(cls, folder: Path) -> RunData:
        """Read the run in that folder, which may have recorded nothing yet."""
        if folder.is_file():
            makes = f": gradplane run {folder} makes one" if folder.suffix == ".toml" else ""
            raise FolderError(f"{folder}: a file, and not a run's folder{makes}")
        if not folder.is_dir():
            raise FolderError(f"{folder}: no such run folder{near_file(folder)}")
        inside = (sorted((folder / name).glob("*")) for name in (BASELINE, PARTS))
        for path in (*sorted(folder.iterdir()), *chain.from_iterable(inside)):
            if path.is_symlink() and path.suffix != ".html":  # pages are replaced, not read
                raise FolderError(
                    f"{path}: a link: no links in a run's folder are followed; put a copy of the"
                    " file in its place"
                )
        if script_run.is_folder(folder):
            raise FolderError(
                f"{folder}: a run of gradplane torchrun, whose script trained: it cannot be"
                f" resumed, viewed or compared; gradplane report {folder} shows it, gradplane"
                f" replay {folder} replays its exchanges"
            )
        manifest = Manifest.read(folder)
        if not (folder / EXPERIMENT).exists():
            if manifest:
                raise FolderError(f"{folder / EXPERIMENT}: missing: nothing can be read without it")
            depths = (sorted(folder.glob(f"{way}/{EXPERIMENT}")) for way in ("*", "*/*"))
            within = next(chain.from_iterable(depths), None)
            near = (
                f"; there are runs in it, such as {within.parent}" if within else near_file(folder)
            )
            raise FolderError(f"{folder}: not a run folder: it has no {EXPERIMENT}{near}")
        wrong = list(manifest.mismatches(folder)) if manifest else []
        if manifest and wrong:
            raise FolderError(_damage(folder, manifest, wrong))
        return cls._parsed(folder, manifest)

    @classmethod
    def _parsed(cls, folder: Path, manifest: Manifest | None) -> RunData:
        summary = run_folder.read_summary(folder)
        deployment = own_parts.recorded_deployment(folder)
        if manifest and manifest.program not in (None, program_digest(deployment)):
            paths = " or ".join(str(program.path) for program in deployment.used_programs)
            raise FolderError(
                f"{paths}: not the program of the run in {folder}: it, or a file"
                " that it includes, was changed since: restore it"
            )
        if summary is not None:
            consistency.check_summary(folder / SUMMARY, summary, deployment)
        return cls(folder, deployment, manifest, summary)

    @property
    def experiment(self) -> Experiment:
        """The resolved experiment."""
        return self.deployment.experiment

    @property
    def name(self) -> str:
        """The run's name for places that show several runs."""
        return self.folder.resolve().name

    # Progress

    @property
    def finished(self) -> bool:
        """True when the training is finished; its baseline may not be."""
        return self.stored is not None

    @property
    def complete(self) -> bool:
        """True when nothing is missing, the baseline included."""
        wanted = self.experiment.output.baseline
        return self.stored is not None and ("baseline" in self.stored or not wanted)

    @property
    def progress(self) -> str:
        """The progress of the training, or of its baseline, in words: "3 of 20 rounds"."""
        lines, where = self.metrics, ""
        if self.finished:
            path = self.folder / BASELINE / METRICS
            lines, where = list(read_lines(path, unfinished=True)), " of the baseline"
        planned = sum(job.rounds for job in self.extents)
        return f"{len(lines):,} of {planned:,} rounds{where} are recorded"

    @property
    def state(self) -> str:
        """The progress of a stopped run and the reason; "finished" if nothing is missing."""
        if self.complete:
            return "finished"
        if run_folder.is_in_use(self.folder):
            return f"{self.progress}, the run is still running"
        reason = run_folder.read_failure(self.folder) or "the run was killed"
        return f"{self.progress}, then {reason}"

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        """The rounds and values that each job was to train."""
        return self.manifest.jobs if self.manifest else extents(self.deployment)

    @property
    def unfinished(self) -> str:
        """A sentence that says how far the run went; empty if it is complete."""
        if self.complete:
            return ""
        if run_folder.is_in_use(self.folder):
            return f"Not finished: {self.state}."
        return f"Not finished: {self.state} (gradplane run --resume {self.folder} finishes it)."

    @property
    def unchecked(self) -> str:
        """A sentence that says that no digest was checked; empty if they were."""
        if self.manifest is not None:
            return ""
        return f"No {MANIFEST}, as in folders of older versions: no digest was checked."

    @property
    def notes(self) -> list[str]:
        """Notes for the reader of the records: missing parts, missing digests, changed files."""
        found = (self.unfinished, self.unchecked, self._renamed, *own_parts.notes(self.folder))
        return [note for note in found if note]

    @property
    def _renamed(self) -> str:
        """A sentence about names of an older version; empty in today's folders."""
        with suppress(OSError), (self.folder / METRICS).open("rb") as file:
            if b'"round":' in file.readline():
                return (
                    "Records of an older version: their round is read as training_round (from 0) in"
                    " metrics.jsonl, and as use (of the slot, from 1) of packets."
                )
        return ""

    # Records

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json; for a stopped training, computed from what was recorded."""
        if self.stored is None:
            return self._so_far()
        for job, planned in zip(self.stored["jobs"], self._needed(), strict=True):
            job.setdefault("needed", planned)
        return self.stored

    @property
    def machine(self) -> dict[str, Any]:
        """Processor, BLAS, platform and versions of the run's machine; empty if not known."""
        if self.manifest is not None:
            return self.manifest.machine
        return {key: self.stored[key] for key in _MACHINE} if self.stored else {}

    @property
    def digests(self) -> str:
        """The function that made its digests, one of hosts.digest.FUNCTIONS. Raises FolderError."""
        stored = self.stored or {}
        found = self.manifest.digests if self.manifest else stored.get("digests", OLDER)
        return run_folder.digest_function(self.folder, found)

    @property
    def network(self) -> str:
        """ "mininet" or "sim"; "" where it is not known."""
        if self.manifest is not None:
            return self.manifest.network
        return str(self.stored["network"]) if self.stored else ""

    @cached_property
    def experiment_text(self) -> str:
        """The text of experiment.toml."""
        return (self.folder / EXPERIMENT).read_text("utf-8")

    @cached_property
    def metrics(self) -> list[Line]:
        """The lines of metrics.jsonl, one per round."""
        path = self.folder / METRICS
        lines = list(read_lines(path, unfinished=not self.finished))
        consistency.check_rounds(path, lines, self.experiment, self.stored)
        return lines

    @cached_property
    def baseline_metrics(self) -> list[Line]:
        """The baseline's lines, one per round; empty if there is no finished baseline."""
        if self.stored is None or "baseline" not in self.stored:
            return []
        path = self.folder / BASELINE / METRICS
        lines = list(read_lines(path))
        consistency.check_rounds(path, lines, self.experiment, self.stored["baseline"])
        return lines

    @cached_property
    def arrivals(self) -> list[Line]:
        """Arrivals, one a chunk, norms, epochs and stalls, in the order of the log."""
        path = self.folder / ARRIVALS
        lines = list(read_lines(path, unfinished=not self.finished))
        consistency.check_arrival_lines(path, lines, self.experiment)
        lines = list(expanded(lines, path))
        consistency.check_arrival_counts(path, lines, self.metrics, self.experiment)
        return lines

    @cached_property
    def verdicts(self) -> list[Line]:
        """The verdicts of the impairments, packet by packet."""
        path = self.folder / IMPAIRMENTS
        lines = list(read_lines(path, unfinished=not self.finished))
        consistency.check_verdicts(path, lines, self.stored)
        return lines

    @cached_property
    def link_use(self) -> list[Line]:
        """The lines of links.jsonl, one per round; empty where the network kept none."""
        path = self.folder / LINKS
        lines = list(read_lines(path, unfinished=True)) if path.exists() else []
        consistency.check_link_lines(path, lines, len(self.deployment.topology.links))
        return lines

    def check(self) -> None:
        """Read everything now; FolderError if anything is damaged."""
        _ = self.metrics, self.baseline_metrics, self.arrivals, self.verdicts, self.link_use

    def rounds_of_slots(self) -> dict[tuple[int, int, int], int]:
        """Return the training round of each (job, slot, use of the slot)."""
        kinds = ("arrival", "norm")
        lines = (line for line in self.arrivals if line["kind"] in kinds)
        return {(line["job"], line["slot"], line["use"]): line["ticket"] for line in lines}

    def verdicts_by_round(self) -> dict[tuple[str, str], Counter[int]]:
        """Count packets with a slot in each recorded round, by (verdict, direction)."""
        rounds = self.rounds_of_slots()
        recorded = Counter(line["job"] for line in self.metrics)
        found: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for line in self.verdicts:
            if line["type"] in STREAM_TYPES:
                continue
            training_round = rounds.get((line["job"], line["slot"], line["use"]))
            if training_round is not None and training_round < recorded[line["job"]]:
                found[line["verdict"], line["direction"]][training_round] += 1
        return found

    def _so_far(self) -> dict[str, Any]:
        verdicts = Counter((line["verdict"], line["direction"]) for line in self.verdicts)
        network = {"switches": {}, "links": [], "link_bytes": {"hosts": 0, "fabric": 0}}
        met = set().union(*map(recorder.met, self.verdicts))
        values = outcome(self.experiment, self._tallies(), verdicts, met, network)
        for job, planned in zip(values["jobs"], self.extents, strict=True):
            job["values"] = planned.values
        about = {"name": self.experiment.name, "network": self.network}
        about |= {"target": self.experiment.switch.target}
        return values | about | {"seed": self.experiment.seed} | self.machine

    def _tallies(self) -> list[recorder.Tally]:
        """Return the sums of the recorded lines, one per job."""
        jobs = [recorder.Tally(job.size) for job in self.experiment.job]
        for line in self.metrics:
            jobs[line["job"]].add_round(line)
            if "test_accuracy" in line:
                jobs[line["job"]].add_accuracy(line)
            jobs[line["job"]].weights |= {w["worker"]: w["weights"] for w in line["workers"]}
        for line in self.arrivals:
            if line["kind"] == "epoch":
                jobs[line["job"]].add_epoch(line)
            elif line["kind"] == "arrival" and line["ticket"] < jobs[line["job"]].rounds:
                jobs[line["job"]].add_arrival(line)
            elif line["kind"] in ("timeout", "resend"):
                jobs[line["job"]].add_resend(line)
        return jobs

    def _needed(self) -> Iterator[dict[str, float]]:
        """Return the jobs' values of `needed`, a key that summaries of older versions lack."""
        assert self.stored is not None
        if all("needed" in job for job in self.stored["jobs"]):
            yield from (job["needed"] for job in self.stored["jobs"])
            return
        values = outcome(self.experiment, self._tallies(), {}, (), {})
        yield from (job["needed"] for job in values["jobs"])


def _damage(folder: Path, manifest: Manifest, wrong: Sequence[str]) -> str:
    """Describe what is wrong with each of these files, and what to do.

    Names the first damaged line where the records do not fit together."""
    try:
        RunData._parsed(folder, None).check()
        found = []
    except (FolderError, ExperimentError) as error:
        found = [str(error)]
    for name in wrong:
        if not any(str(folder / name) in text for text in found):
            found.append(_difference(folder / name, manifest.files[name]))
    way_out = f"restore it, or delete {folder / MANIFEST} to use what is left unchecked"
    return "\n".join([*found, f"This is not what the run wrote: {way_out}."])


def _difference(path: Path, recorded: FileDigest) -> str:
    """Describe how the file differs from what the run wrote."""
    if not path.exists():
        return f"{path}: missing ({recorded.lines:,} lines, {recorded.bytes:,} bytes)"
    lines = FileDigest.of(path).lines
    if lines != recorded.lines:
        return f"{path}: damaged: {lines:,} lines, the run wrote {recorded.lines:,}"
    return f"{path}: changed: its SHA-256 digest is not the recorded one"
