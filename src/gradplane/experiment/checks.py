"""Checks of an experiment beyond those of the codecs, hosts, topologies and schemes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradplane import aggregations
from gradplane.aggregations.aggregation import PlacedJob
from gradplane.experiment import p4_programs
from gradplane.experiment.compute_times import workers_problem
from gradplane.experiment.deployment import DeployedJob
from gradplane.experiment.document import Key
from gradplane.experiment.schema import Experiment

COMPRESSES = "tos_compress.p4"  # the shipped program that compresses marked packets
_LEAST_DELAY = 1000  # ns; below it, a number without a unit is refused


@dataclass(frozen=True)
class Problem:
    """A problem that prevents a run. `keys`: the key to look at first, then related ones."""

    text: str
    keys: tuple[Key, ...]


def delays(experiment: Experiment) -> Iterator[Problem]:
    """Yield delays without a unit that are probably in ms by mistake."""
    args = experiment.topology.args
    for option in ("delay", "fabric_delay"):
        values = args.get(option)
        for delay in values if isinstance(values, list) else [values]:
            if type(delay) is int and 0 < delay < _LEAST_DELAY:
                yield Problem(
                    f"{option} = {delay} is {delay} ns: write the unit, such as"
                    f' {option} = "{delay}ms", or "{delay}ns" if it is meant',
                    (("topology", option),),
                )
                break


def job(experiment: Experiment, placed: PlacedJob) -> Iterator[Problem]:
    """Yield what cannot work in a job under any scheme."""
    job, program = placed.job, experiment.switch.program
    where, hosts = ("job", placed.number), experiment.topology.workers
    if job.first_host + job.size - 1 > hosts:
        yield Problem(
            f"{job.size} workers from host {job.first_host} on do not fit the topology's {hosts}",
            ((*where, "workers"), (*where, "first_host"), ("topology", "workers")),
        )
    if problem := workers_problem(job.compute_ms, job.size):
        yield Problem(problem, ((*where, "compute_ms"), (*where, "workers")))
    if job.quorum is not None and job.quorum > job.size:
        yield Problem(
            f"quorum = {job.quorum} is more than the job's {job.size} workers",
            ((*where, "quorum"), (*where, "workers"), ("topology", "workers")),
        )
    needed = aggregations.get(job.aggregation).program
    if needed is not None and _is_another(program, needed):
        yield Problem(
            f'aggregation = "{job.aggregation}" with program = "{program}", which sums nothing:'
            f' use program = "{needed}", or aggregation = "ps" or "ring"',
            ((*where, "aggregation"), ("switch", "program")),
        )
    if job.marked and _is_another(program, COMPRESSES):
        yield Problem(
            f'marked = true with program = "{program}", which compresses nothing: use'
            f' program = "{COMPRESSES}"',
            ((*where, "marked"), ("switch", "program")),
        )
    if job.marked and job.bound is None:
        yield Problem(
            "bound is missing: marked transfers need 6, 8 or 10, for 2^-bound",
            ((*where, "bound"), (*where, "marked")),
        )


def marked(deployed: DeployedJob, others: Sequence[DeployedJob]) -> Iterator[Problem]:
    """Yield where marked packets do not cross from one switch to another, under one bound."""
    job, network = deployed.job, deployed.placed.network
    if not job.marked:
        return
    where = ("job", deployed.placed.number)
    if len({network.attachment(host)[0] for host in deployed.marked_hosts}) == 1:
        yield Problem(
            f"marked = true on one switch ({network.kind}): packets are compressed between"
            ' switches: use kind = "ring" or "leaf-spine" with fewer hosts a switch',
            ((*where, "marked"), ("topology", "kind")),
        )
    for other in others:
        both = deployed.marked_receivers & other.marked_receivers
        if other.job.marked and other.job.bound != job.bound and both:
            yield Problem(
                f"bound = {job.bound} beside {other.job.bound} of job {other.job.name} for"
                f" {min(both)}: a switch has one error bound a destination",
                ((*where, "bound"),),
            )


def _is_another(program: str, needed: str) -> bool:
    """Return whether a program is a shipped one and not the needed one.

    What a user's program can do is known once it is compiled."""
    return program in p4_programs.shipped() and program != needed
