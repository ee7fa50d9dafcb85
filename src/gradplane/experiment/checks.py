"""What an experiment asks of codecs, hosts, topologies and controller, checked before it starts."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from gradplane.codecs import CodecError
from gradplane.controller.controller_errors import ControllerError
from gradplane.experiment import p4_programs, placement
from gradplane.experiment.document import Key, nearest
from gradplane.experiment.schema import Experiment, Job
from gradplane.experiment.tensor_codecs import host_codec
from gradplane.hosts.config import ConfigError
from gradplane.hosts.impairments.verdicts import Impairments
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.training.train import train
from gradplane.hosts.training.user_objects import LoadError
from gradplane.topologies.topology_errors import TopologyError

SUMS, COMPRESSES = "thc.p4", "tos_compress.p4"
MAX_JOBS = 255  # a job's number is one byte, and its multicast group is the number above it
_WORDS = {
    "codes": "push",
    "codec": "push",
    "granularity": "push",
    "model": "model",
    "hidden": "model",
    "data": "data",
    "test": "data",
    "batch": "batch",
    "slots": "slots",
    "reliability": "reliability",
    "quorum": "quorum",
    "bound": "bound",
    "local_steps": "local_steps",
}
Problem = tuple[Key, str]
"""The key to look at, and what is wrong with it."""


def problems_of(experiment: Experiment) -> list[Problem]:
    """Everything that cannot work in a resolved experiment, in the file's order."""
    found = list(_topology(experiment))
    if found:
        return found
    if not 1 <= len(experiment.job) <= MAX_JOBS:
        return [(("job",), f"{len(experiment.job)} jobs: there may be 1 to {MAX_JOBS}")]
    for number in range(len(experiment.job)):
        found += [(("job", number, key), text) for key, text in _job(experiment, number)]
    found += _impairments(experiment)
    return found


def _topology(experiment: Experiment) -> Iterator[Problem]:
    section = experiment.topology
    try:
        placement.topology(experiment)
    except TopologyError as error:
        named = [option for option in section.args if option in str(error).partition(":")[0]]
        yield ("topology", *named[:1]), str(error)


def _job(experiment: Experiment, number: int) -> Iterator[tuple[str, str]]:
    job, hosts = experiment.job[number], experiment.topology.workers
    problems = [
        *_members(job, hosts),
        *_program(experiment, job),
        *_width(experiment, job),
        *_codecs(job),
        *_marked(experiment, number),
    ]
    yield from problems or _first_error("", lambda: _try_hosts(experiment, number))


def _key_of(text: str) -> str:
    """The key of a [[job]] that a message of the hosts is about."""
    return next((key for word, key in _WORDS.items() if re.search(rf"\b{word}\b", text)), "")


def _members(job: Job, hosts: int) -> Iterator[tuple[str, str]]:
    if job.first_host + job.size - 1 > hosts:
        yield (
            "workers",
            f"{job.size} workers from host {job.first_host} on do not fit the topology's {hosts}",
        )
    if job.quorum is not None and job.quorum > job.size:
        yield "quorum", f"quorum = {job.quorum} is more than the job's {job.size} workers"


def _program(experiment: Experiment, job: Job) -> Iterator[tuple[str, str]]:
    """Of our programs it is known what they do; one's own are asked when they are loaded."""
    program = experiment.switch.program
    if program not in p4_programs.shipped():
        return
    if job.aggregation == "switch" and program != SUMS:
        yield (
            "aggregation",
            f'aggregation = "switch" with program = "{program}", which sums nothing: use'
            f' program = "{SUMS}", or aggregation = "ps" or "ring"',
        )
    if job.marked and program != COMPRESSES:
        yield (
            "marked",
            f'marked = true with program = "{program}", which compresses nothing: use'
            f' program = "{COMPRESSES}"',
        )


def _marked(experiment: Experiment, number: int) -> Iterator[tuple[str, str]]:
    """What is marked must cross from one switch to another, with one bound a destination."""
    job = experiment.job[number]
    if not job.marked:
        return
    if job.bound is None:
        yield "bound", "bound is missing: marked transfers need 6, 8 or 10, for 2^-bound"
        return
    network = placement.topology(experiment)
    if len({network.attachment(host)[0] for host in placement.marked_path(job, network)}) == 1:
        yield (
            "marked",
            f"marked = true on one switch ({experiment.topology.kind}): packets are compressed"
            ' between switches: use kind = "ring" or "leaf-spine" with fewer hosts a switch',
        )
    for other in experiment.job[:number]:
        both = placement.receivers(job, network) & placement.receivers(other, network)
        if other.marked and other.bound not in (None, job.bound) and both:
            yield (
                "bound",
                f"bound = {job.bound} beside {other.bound} of job {other.name} for {min(both)}: a"
                " switch has one error bound a destination",
            )


def _width(experiment: Experiment, job: Job) -> Iterator[tuple[str, str]]:
    """One program serves all jobs of a switch, and its sums have one width."""
    first = next((j for j in experiment.job if j.aggregation == "switch"), job)
    if job.aggregation == "switch" and job.sum_bits != first.sum_bits:
        yield (
            "sum_bits",
            f"sum_bits = {job.sum_bits} beside {first.sum_bits} of job {first.name}: the switch's"
            " program has one width for all jobs",
        )


def _codecs(job: Job) -> Iterator[tuple[str, str]]:
    yield from _first_error("push", lambda: host_codec(job.push, job))
    if job.pull is not None:
        pull = job.pull
        yield from _first_error("pull", lambda: host_codec(pull, job))
    if job.pull is not None and job.aggregation == "switch":
        yield "pull", 'a switch answers with the sums as they are: pull is for aggregation = "ps"'
    if job.pull is not None and job.aggregation == "ring":
        yield "pull", 'a ring has no server that answers: pull is for aggregation = "ps"'


def _try_hosts(experiment: Experiment, number: int) -> None:
    """Everything that a host of the job refuses, and what no switch program could do."""
    config = placement.job_config(experiment, number)
    if config.aggregation == "switch":
        summed_codec(config)
        placement.plans(experiment)
    if config.aggregation == "ring":
        RingPlan.of(config)
    train(config, 0)


def _impairments(experiment: Experiment) -> Iterator[Problem]:
    hosts = [host.name for host in placement.topology(experiment).hosts]
    for index, spec in enumerate(experiment.impairment):
        if spec.get("link", "*") not in ("*", *hosts):
            text = f'no link {spec["link"]!r}: {nearest(str(spec["link"]), hosts)}, or "*" for all'
            yield ("impairment", index, "link"), text
        for job in experiment.job:
            problems = list(_first_error("", lambda: _try_impairment(spec, job.size)))  # noqa: B023
            yield from [(("impairment", index), text) for _, text in problems]
            if problems:
                break


def _try_impairment(spec: dict[str, Any], workers: int) -> None:
    Impairments([spec], "h1", 0, workers, 0)


def _first_error(key: str, attempt: Callable[[], object]) -> Iterator[tuple[str, str]]:
    try:
        attempt()
    except (CodecError, ConfigError, LoadError, ControllerError) as error:
        yield key or _key_of(str(error)), str(error)
