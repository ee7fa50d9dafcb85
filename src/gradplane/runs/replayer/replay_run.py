"""Replay a recorded run: the same losses and the same result, bit for bit; or the same losses
under a changed experiment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gradplane.aggregations.aggregation import WrongSum
from gradplane.experiment.deploying import unresolved
from gradplane.experiment.deployment import DeployedJob
from gradplane.experiment.impairment_sections import DropListSection, Impairment, ImpairmentSection
from gradplane.experiment.loading import Experiment, load
from gradplane.experiment.recorded_losses import listed, separated
from gradplane.hosts.absences import present
from gradplane.hosts.digest import digests_by
from gradplane.runs.machine import OneBlasThread, describe
from gradplane.runs.records import script_run
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer import reenactment
from gradplane.runs.replayer.reenactment import Reenactment, ReplayError
from gradplane.runs.replayer.replay_network import ReplayNetwork
from gradplane.runs.run_experiment import run

if TYPE_CHECKING:
    from gradplane.runs.replayer.replay_script import ScriptReplay
    from gradplane.runs.torchrun import Finished

COMPARED = ("gradient", "codes", "sums", "weights")
_REASONS = {
    "gradient": "A gradient is computed before anything is sent: the cause is the machine (or the"
    " model or data), not the network.",
    "codes": "The gradients are equal and their codes are not: the cause is the codec, or (partial"
    " sums of a ring) the P4 program.",
    "sums": "The codes are equal and their sums are not: the cause is the P4 program, its tables,"
    " or the recorded outcome.",
    "weights": "The sums are equal and the weights are not: the cause is the decoding or the"
    " update.",
    "mean": "The sums are equal and their mean is not: the cause is the decoding.",
    "stored gradient": "It is the input of the replay: the file beside the host's log is damaged.",
    "source": "The epoch's synchronisation copied another worker's parameters.",
}


@dataclass(frozen=True)
class Difference:
    """The first difference from the record. For sums, `place` has the slot and its use."""

    job: int
    round: int
    worker: int
    what: str
    recorded: str
    found: str
    place: WrongSum | None = None

    def text(self) -> str:
        """Describe where the difference is and what it means."""
        where = f"job {self.job}, round {self.round}, "
        if self.place is not None:
            where += f"slot {self.place.slot} (use {self.place.round}), "
        where += f"worker {self.worker}"
        return (
            f"first difference: {where}: {self.what} {self.found}, recorded {self.recorded}\n"
            f"{_REASONS[self.what]}"
        )


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay.

    weights: the digests of the parameters at the end of the records, by job and worker. notes: what
    is missing from the records, and what could not be checked."""

    folder: Path
    rounds: int
    difference: Difference | None
    machine: tuple[str, ...]  # in what this machine differs from the recorded one
    weights: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    finished: bool = True  # the recorded training is

    @property
    def equal(self) -> bool:
        """True when every digest equals the recorded one."""
        return self.difference is None

    def text(self) -> str:
        """Return the result in words."""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        if self.difference is None:
            lines = [f"equal: {rounds}, every gradient, code, sum and weight", *self._weights()]
        else:
            lines = [f"different, after {rounds} that were equal", self.difference.text()]
            if self.machine:
                different = "; ".join(self.machine)
                lines.append(f"This machine differs from the recorded one: {different}")
        return "\n".join([*lines, *self.notes])

    def _weights(self) -> Iterator[str]:
        which = "final weights" if self.finished else "last recorded weights"
        for name, workers in self.weights.items():
            digests = sorted(set(workers.values()))
            if len(digests) == 1:
                yield f"{which} of {name}, all workers: {digests[0]}"
            else:
                each = ", ".join(f"{worker} {digest}" for worker, digest in workers.items())
                yield f"{which} of {name}, by worker: {each}"


def replay(
    folder: str | Path,
    settings: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    net: str | None = None,
    console: bool = False,
    on_round: Callable[[int, int], None] | None = None,
) -> ReplayResult | Summary | ScriptReplay | Finished:
    """Re-enact the run in a folder and compare every digest with the recorded one.

    Of a run of `gradplane torchrun`, its exchanges; see replay_script.

    With settings (`KEY=VALUE`): run the changed experiment under the recorded losses instead, into
    a run folder of its own, `out`; returns its summary. net: "sim", the default, or "mininet"; with
    `console`, a line says if the recorded run was on another network. `on_round` is called with
    the numbers of rounds found equal so far and of all recorded ones. The recorded rounds of a
    stopped run are replayed. Raises FolderError if there are none or files are damaged,
    ExperimentError for wrong settings, ReplayError for records that cannot be re-enacted.
    """
    if script_run.is_folder(folder):
        from gradplane.runs.replayer import replay_script

        if settings:
            return replay_script.run_again(Path(folder), settings, out)
        return replay_script.replay(Path(folder), on_round)
    recorded = RunData.read(folder)
    if settings:
        if console:
            for note in recorded.notes:
                print(note)
        changed = under_recorded_losses(recorded.experiment, recorded.verdicts, settings)
        network = net or "sim"
        if console and recorded.network not in (None, "", network):
            text = (
                f"The recorded run was on {recorded.network}, this one is on {network}: their times"
                f" differ; use --net {recorded.network} to run it there"
            )
            Console(highlight=False).print(text, soft_wrap=True, markup=False)
        return run(changed, out, net=network, console=console)
    with OneBlasThread(), digests_by(recorded.digests):
        return _Replay(recorded, on_round).result()


def under_recorded_losses(
    experiment: Experiment, verdicts: Sequence[dict[str, Any]], settings: Sequence[str]
) -> Experiment:
    """Return a run's experiment with settings; it loses and delays the recorded packets.

    An impairment that a setting changes rules anew, and one that it removes does not: their
    recorded verdicts are left out. Keys of jobs that have their defaults follow from the changed
    ones, as in the experiment's own file. Raises ReplayError where they are not known."""
    before = after = experiment.impairment
    if any(setting.startswith("impairment") for setting in settings):
        after = load(experiment, settings).impairment
    pairs = enumerate(zip(before, after, strict=False))
    kept = {number for number, (one, other) in pairs if one == other}
    if len(kept) < len(before) and any("impairment" not in line for line in verdicts):
        raise ReplayError(
            "this folder, of an older version, does not say which impairment lost a packet: change"
            " other keys than those of impairments, or run the experiment again"
        )
    lines = [
        listed(line)
        for line in verdicts
        if line.get("impairment") is None or line["impairment"] in kept
    ]
    sections: list[Impairment] = [
        DropListSection.model_validate({"model": "drop list", "packets": packets})
        for packets in separated(lines)
    ]
    sections += [
        section
        for number, section in enumerate(after)
        if number not in kept or not isinstance(section, ImpairmentSection)
    ]
    base = unresolved(experiment).model_copy(
        update={"impairment": tuple(sections), "name": f"{experiment.name}-replay"}
    )
    return load(base, [s for s in settings if not s.startswith("impairment")])


class _Replay:
    """Replays all jobs of a run, one after another; they share the switches and nothing else."""

    def __init__(self, recorded: RunData, on_round: Callable[[int, int], None] | None) -> None:
        self._recorded, self._on_round = recorded, on_round
        self._deployment = recorded.deployment
        self._outcomes = reenactment.read_outcomes(recorded.arrivals)
        self._lines = digests(recorded.metrics)
        self._recorded_rounds = Counter(line["job"] for line in recorded.metrics)
        self._rounds = 0
        self._weights: dict[str, dict[str, str]] = {}

    def result(self) -> ReplayResult:
        difference = None
        with ReplayNetwork(self._deployment) as network:
            for deployed in self._deployment.jobs:
                difference = difference or self._job(deployed, network)
        return ReplayResult(
            self._recorded.folder,
            self._rounds,
            difference,
            _differing(self._recorded.machine, describe()),
            self._weights,
            tuple(self._recorded.notes),
            self._recorded.finished,
        )

    def _job(self, deployed: DeployedJob, network: ReplayNetwork) -> Difference | None:
        number = deployed.config.number
        job = Reenactment(deployed, self._outcomes[number], network)
        compare: dict[str, Callable[[dict[str, Any]], Difference | None]] = {
            "epoch": lambda line: self._epoch(line, number),
            "done": lambda line: self._done(line, number),
        }
        waiting: list[dict[str, Any]] = []
        left = self._recorded_rounds[number]
        for line in job if left else ():
            if line["kind"] == "round":
                if not left:
                    raise ReplayError(self._too_short(number))
                waiting.append(line)
                found = None
                config = deployed.config
                if len(waiting) == len(present(config.absences, config.workers, line["round"])):
                    found = self._round(waiting, number, job.wrong_sum)
                    waiting, left = [], left - 1
            else:
                found = compare[line["kind"]](line)
            if found is not None:
                return found
            if not (left or self._recorded.finished):
                self._weights[self._deployment.experiment.job[number].name] = self._last_weights(
                    number
                )
                return None
        if left:
            raise ReplayError(self._too_short(number))
        return None

    def _too_short(self, job: int) -> str:
        return (
            f"job {job}: metrics.jsonl has {self._recorded_rounds[job]} rounds, and experiment.toml"
            " trains another number of them: one of the two was changed"
        )

    def _last_weights(self, job: int) -> dict[str, str]:
        last = self._recorded_rounds[job] - 1
        workers = range(self._deployment.experiment.job[job].size)
        here = (worker for worker in workers if (job, last, worker) in self._lines)
        return {str(worker): self._lines[job, last, worker]["weights"] for worker in here}

    def _round(
        self, lines: list[dict[str, Any]], job: int, wrong: WrongSum | None
    ) -> Difference | None:
        """Return the first difference in a round: gradients before codes, and so on."""
        for what in COMPARED:
            for line in lines:
                recorded = self._lines[job, line["round"], line["worker"]][what]
                if recorded != line[what]:
                    place = wrong if what == "sums" else None
                    where = (job, line["round"], line["worker"])
                    return Difference(*where, what, recorded, line[what], place)
        self._rounds += 1
        if self._on_round is not None:
            self._on_round(self._rounds, self._recorded_rounds.total())
        return None

    def _epoch(self, line: dict[str, Any], job: int) -> Difference | None:
        recorded = self._outcomes[job].sources.get(line["epoch"])
        if recorded == line["source"]:
            return None
        last = max(r for j, r, _ in self._lines if j == job and r < self._rounds)
        return Difference(job, last, line["worker"], "source", _who(recorded), _who(line["source"]))

    def _done(self, line: dict[str, Any], job: int) -> Difference | None:
        recorded = self._recorded.summary["jobs"][job]
        worker, digest = line["worker"], line["weights"]
        self._weights.setdefault(recorded["name"], {})[str(worker)] = digest
        was = recorded["weights"][str(worker)]
        last = recorded["rounds"] - 1
        return None if was == digest else Difference(job, last, worker, "weights", was, digest)


def digests(metrics: list[dict[str, Any]]) -> dict[tuple[int, int, int], dict[str, str]]:
    """Return each worker's record of each round, by job, round and worker."""
    return {
        (line["job"], line["training_round"], worker["worker"]): worker
        for line in metrics
        for worker in line["workers"]
    }


def _who(source: int | None) -> str:
    return "nobody's" if source is None else f"worker {source}'s"


def _differing(recorded: dict[str, Any], here: dict[str, Any]) -> tuple[str, ...]:
    """Return the facts about the machines that are not equal; none if they were not recorded."""
    if not recorded:
        return ()
    found = [
        f"{key} {here[key]}, recorded {recorded[key]}"
        for key in ("cpu", "blas", "platform")
        if here[key] != recorded[key]
    ]
    versions = recorded["versions"]
    for name, version in here["versions"].items():
        if versions.get(name) != version:
            found.append(f"{name} {version}, recorded {versions.get(name)}")
    return tuple(found)
