"""Replay the exchanges of a script's run: its gradients are recorded, everything else is computed.

The gradients that the ranks gave to their reduces are kept (`[output] gradients_mb`). From them the
codecs, with their error feedback, the P4 program or the server, and the recorded losses give the
codes, the sums and the means again. The script does not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.aggregations.aggregation import ReplayedJob, ReplayedWorker, ReplayError, WrongSum
from gradplane.experiment.deployment import Deployment
from gradplane.hosts import vector_file
from gradplane.hosts.digest import OLDER, digest, digests_by
from gradplane.hosts.reducer import VECTORS
from gradplane.hosts.training.train import Reduce
from gradplane.hosts.vector_file import Array
from gradplane.runs.machine import OneBlasThread
from gradplane.runs.records.own_parts import recorded_deployment
from gradplane.runs.records.run_data import expanded
from gradplane.runs.records.run_folder import HOSTS, FolderError, digest_function, read_lines
from gradplane.runs.records.script_run import COUNTERS
from gradplane.runs.replayer.reenactment import RecordedOutcomes
from gradplane.runs.replayer.replay_network import ReplayNetwork
from gradplane.runs.replayer.replay_run import Difference, under_recorded_losses
from gradplane.runs.torchrun import Finished, torchrun

# The exchanges of a script's run: what each rank gave to each reduce, and what came of it

Line = dict[str, Any]

_ARRIVALS = ("arrivals", "arrival", "norm")


@dataclass(frozen=True)
class RankLog:
    """The log of a rank that joined: its lines, and the file of its vectors beside it."""

    path: Path
    lines: list[Line]

    @property
    def reduces(self) -> list[Line]:
        """The reduces that ended, by ticket."""
        return sorted(self.of("reduce"), key=lambda line: int(line["ticket"]))

    def of(self, *kinds: str) -> list[Line]:
        """Return the lines of some kinds."""
        return [line for line in self.lines if line["kind"] in kinds]

    @property
    def digests(self) -> str:
        """The function that made its digests. Raises FolderError for one that is not known."""
        found = (line.get("digests", OLDER) for line in self.of("joined"))
        return digest_function(self.path, next(found, OLDER))

    def arrivals(self) -> Iterator[Line]:
        """Yield the results that came, chunk by chunk. Raises FolderError for damaged lines."""
        return expanded(self.of(*_ARRIVALS), self.path)

    def vector(self, reduce: Line) -> Array | None:
        """Return what a reduce was given; None where it was not kept. Raises FolderError."""
        place = reduce.get("vector")
        if place is None:
            return None
        file = self.path.with_suffix(VECTORS)
        try:
            return vector_file.read(file, (place[0], place[1]), reduce["values"])
        except OSError as error:
            raise FolderError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise FolderError(f"{file}: damaged: {error}") from None


def read(folder: Path) -> list[RankLog]:
    """Return the logs of the ranks that reduced, in their order. Raises FolderError."""
    logs = [path.with_suffix(".jsonl") for path in (folder / HOSTS).glob("*.json")]
    found = [RankLog(path, list(read_lines(path, unfinished=True))) for path in logs]
    ranks = [log for log in found if log.of("reduce")]
    return sorted(ranks, key=lambda log: int(log.of("reduce")[0]["worker"]))


COMPARED = {"gradient": "stored gradient", "codes": "codes", "sums": "sums", "mean": "mean"}
"""The digests of a reduce that are compared, in that order, and their names in a Difference."""


@dataclass(frozen=True)
class ScriptReplay:
    """The result of a replay: the reduces and rounds that are equal, the first difference, and the
    reduces that all ranks ended."""

    folder: Path
    reduces: int
    rounds: int
    difference: Difference | None
    recorded: int

    @property
    def equal(self) -> bool:
        """True when every digest equals the recorded one."""
        return self.difference is None

    def text(self) -> str:
        """Return the result in words."""
        done = f"{self.reduces:,} reduces of each rank in {self.rounds:,} rounds"
        if self.difference is not None:
            return f"different, after {done} that were equal\n{self.difference.text()}"
        lines = [f"equal: {done}, every code, sum and mean"]
        if self.reduces < self.recorded:
            lines.append(
                f"{self.recorded - self.reduces:,} later reduces cannot be replayed: their"
                " gradients were not kept (output.gradients_mb)"
            )
        return "\n".join(lines)


def replay(folder: Path, on_round: Callable[[int, int], None] | None = None) -> ScriptReplay:
    """Re-enact the reduces that all ranks ended and compare every digest with the recorded one.

    on_round: called with the numbers of rounds found equal so far and of all. Raises FolderError
    where there is nothing to replay or files are damaged, ReplayError for records that do not fit
    together.
    """
    deployment = recorded_deployment(folder)
    logs = read(folder)
    together = list(zip(*(log.reduces for log in logs), strict=False))
    workers = deployment.jobs[0].config.workers
    if len(logs) < workers or not together:
        raise FolderError(f"{folder}: its ranks reduced nothing together: nothing can be replayed")
    if "vector" not in together[0][0] or together[0][0]["vector"] is None:
        raise FolderError(
            f"{folder}: the gradients of its script were not kept, so it cannot be replayed: run it"
            " with output.gradients_mb above 0"
        )
    with OneBlasThread(), digests_by(logs[0].digests), ExitStack() as stack:
        network = stack.enter_context(ReplayNetwork(deployment))
        return _Replay(folder, deployment, logs, network).result(together, on_round)


def run_again(folder: Path, settings: Sequence[str], out: str | Path | None) -> Finished:
    """Run the script under the recorded losses and a changed experiment. Raises as torchrun."""
    path = folder / COUNTERS
    try:
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
        script, arguments = Path(values["script"]), values["arguments"]
    except (OSError, ValueError, KeyError) as error:
        raise FolderError(f"{path}: it does not say which script was run ({error})") from None
    if not values["script"]:
        raise FolderError(f"{folder}: its programs were started from the prompt: start them again")
    experiment = recorded_deployment(folder).experiment
    verdicts = [line for log in read(folder) for line in log.of("verdict")]
    changed = under_recorded_losses(experiment, verdicts, settings)
    return torchrun(changed, script, arguments, out=out)


class _Replay:
    """Re-enacts the reduces of a folder, one after the other."""

    def __init__(
        self, folder: Path, deployment: Deployment, logs: list[RankLog], network: ReplayNetwork
    ) -> None:
        self._folder, self._logs = folder, logs
        deployed = deployment.jobs[0]
        job = deployed.config.changed(codec_ns=0.0, reduce_ns=0.0)
        self._workers = [ReplayedWorker(number) for number in range(job.workers)]
        outcomes = RecordedOutcomes()
        for log in logs:
            for line in log.arrivals():
                outcomes.add(line)
        hosts = [host.name for host in deployed.members]
        self._job = ReplayedJob(job, hosts, self._workers, outcomes, network)
        self._reduce = deployed.scheme.replay(self._job)

    def result(
        self, together: Sequence[tuple[Line, ...]], on_round: Callable[[int, int], None] | None
    ) -> ScriptReplay:
        """Replay reduces: of each, the lines of all ranks."""
        rounds: set[int] = set()
        total = len({lines[0]["iteration"] for lines in together})
        for number, lines in enumerate(together):
            if not self._begin(number, lines):
                return ScriptReplay(self._folder, number, len(rounds), None, len(together))
            self._reduce()
            if (found := self._difference(lines)) is not None:
                return ScriptReplay(self._folder, number, len(rounds), found, len(together))
            rounds.add(lines[0]["iteration"])
            if on_round is not None:
                on_round(len(rounds), total)
        return ScriptReplay(self._folder, len(together), len(rounds), None, len(together))

    def _begin(self, number: int, lines: Sequence[Line]) -> bool:
        """Give each worker its part in a reduce; return False where a gradient was not kept."""
        for worker, log, line in zip(self._workers, self._logs, lines, strict=True):
            if log.of("restored"):
                raise ReplayError(
                    f"{log.path}: its rank went on with a state that it loaded, which the folder"
                    " does not have: only what begins with no state can be replayed"
                )
            if (line["worker"], line["ticket"]) != (worker.number, number):
                raise ReplayError(
                    f"{log.path}: reduce {number} of worker {worker.number} is missing: the log is"
                    " not complete"
                )
            vector = log.vector(line)
            if vector is None:
                return False
            worker.step = Reduce(number, vector, line["tensor"])
            worker.expect()
        return True

    def _difference(self, lines: Sequence[Line]) -> Difference | None:
        """Return the first difference in a reduce: gradients before codes, and so on."""
        results = [worker.result for worker in self._workers]
        for key, what in COMPARED.items():
            for line, result in zip(lines, results, strict=True):
                found = digest(result.mean) if key == "mean" else getattr(result, key)
                if found != line[key]:
                    place = self._job.wrong_sum if key == "sums" else None
                    return self._different(line, what, line[key], found, place)
        return None

    def _different(
        self, line: Line, what: str, recorded: str, found: str, place: WrongSum | None
    ) -> Difference:
        return Difference(
            line["job"], line["iteration"], line["worker"], what, recorded, found, place
        )
