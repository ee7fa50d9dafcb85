"""Run one experiment on several targets and find the first difference between their records."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.controller import targets
from gradplane.experiment.loading import Experiment, ExperimentError, load, load_deployment
from gradplane.experiment.schema import Output
from gradplane.runs.records import run_folder
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import rate
from gradplane.runs.replayer import reenactment
from gradplane.runs.replayer.replay_run import COMPARED, digests
from gradplane.runs.run_experiment import check_target, choose_network, run


@dataclass(frozen=True)
class TargetDifference:
    """The first difference: `found` are the digests by target.

    arrivals: whether other packets were in the results by then, so that it may be the network.
    """

    job: int
    round: int
    worker: int
    what: str
    found: dict[str, str]
    arrivals: bool

    def text(self) -> str:
        """Describe where the difference is."""
        where = f"job {self.job}, round {self.round}, worker {self.worker}"
        found = ", ".join(f"{digest} on {target}" for target, digest in self.found.items())
        lines = [f"first difference: {where}: {self.what} {found}"]
        if self.arrivals:
            lines.append(
                "Other packets arrived in time: with a longer timeout_ms, or reliability ="
                ' "retransmit", the slower switch loses none.'
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class TargetComparison:
    """The result: the runs by target, how many rounds are equal, and the first difference."""

    runs: dict[str, RunData]
    rounds: int
    difference: TargetDifference | None

    @property
    def equal(self) -> bool:
        """True if every digest is equal."""
        return self.difference is None

    def text(self) -> str:
        """Return the result in words, with each target's rounds a second."""
        if self.difference is None:
            lines = [f"equal: {self.rounds} rounds, every gradient, code, sum and weight"]
        else:
            lines = [f"different, after {self.rounds} rounds that were equal"]
            lines.append(self.difference.text())
        for data in self.runs.values():
            speed = rate(data.summary["rounds_per_second"])
            lines.append(f"{data.summary['target']}: {speed} rounds a second, {data.folder}")
        return "\n".join(lines)


def compare(
    experiment: str | Path | Experiment,
    names: Sequence[str],
    out: str | Path | None = None,
    *,
    net: str | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    console: bool = False,
    on_end: Callable[[Path], object] = lambda folder: None,
) -> TargetComparison:
    """Run an experiment, without its baseline, on each target, and compare the records.

    names: of targets, two or more. out: a folder that must not exist and gets a run folder for each
    target (default: runs/NAME-targets-N). on_end: is called with each run folder when its run is
    finished. Other arguments and errors: as of `run`. All targets are checked before the first run
    starts.
    """
    if len(set(names)) < 2:
        known = ", ".join(targets.names())
        raise ExperimentError(f"{', '.join(names)}: name two targets or more of {known}")
    base = load(experiment, settings, seed)
    network = choose_network(net, None)
    experiments = {name: _on(base, name) for name in names}
    for changed in experiments.values():
        check_target(load_deployment(changed), network)
    folder = run_folder.create(out, f"{base.name}-targets")
    for name, changed in experiments.items():
        on_end(run(changed, folder / name, net=network, console=console).folder)
    return first_difference({name: RunData.read(folder / name) for name in names})


def _on(experiment: Experiment, name: str) -> Experiment:
    """Return the experiment on a target, without keys of other targets and without baseline."""
    keys = dict.fromkeys(experiment.switch.target_keys.keys() - set(targets.keys(name)))
    switch = experiment.switch.model_copy(update={"target": name} | keys)
    output = Output(baseline=False, pcap=experiment.output.pcap)
    return experiment.model_copy(update={"switch": switch, "output": output})


def first_difference(runs: dict[str, RunData]) -> TargetComparison:
    """Compare runs of one experiment, round by round: gradients before codes, and so on."""
    lines = {name: digests(data.metrics) for name, data in runs.items()}
    first = next(iter(runs.values()))
    rounds = 0
    for line in first.metrics:
        for what in COMPARED:
            for worker in line["workers"]:
                place = line["job"], line["training_round"], worker["worker"]
                found = {name: lines[name].get(place, {}).get(what) for name in runs}
                if len(set(found.values())) > 1:
                    shown = {name: str(digest) for name, digest in found.items()}
                    arrivals = _arrivals_differ(runs, line["job"])
                    return TargetComparison(
                        runs, rounds, TargetDifference(*place, what, shown, arrivals)
                    )
        rounds += 1
    return TargetComparison(runs, rounds, None)


def _arrivals_differ(runs: dict[str, RunData], job: int) -> bool:
    """Return whether the results of a job were made of different workers' packets."""
    found = [list(_bitmaps(data.arrivals, job)) for data in runs.values()]
    return any(other != found[0] for other in found[1:])


def _bitmaps(arrivals: Sequence[dict[str, Any]], job: int) -> Iterator[Any]:
    """Yield who is in each result of a job, in the order of slots and their rounds."""
    results = reenactment.read_outcomes(arrivals)[job]
    for kind in (results.norms, results.chunks):
        for place in sorted(kind):
            yield place, kind[place].bitmap, sorted(kind[place].in_time)
