"""Checks of an experiment beyond those of the codecs, hosts, topologies and schemes."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from gradplane import aggregations
from gradplane._shipped_programs import shipped
from gradplane._toml_documents import Key, nearest
from gradplane.aggregations.aggregation import PlacedJob
from gradplane.controller.plan import quorum_problem
from gradplane.controller.targets import Target
from gradplane.experiment import p4_programs
from gradplane.experiment.compute_times import workers_problem
from gradplane.experiment.deployment import DeployedJob, Deployment
from gradplane.experiment.impairment_sections import (
    CrashSection,
    DropListSection,
    ImpairmentSection,
    LateJoinSection,
    RestartSection,
    StragglerSection,
)
from gradplane.experiment.schema import Experiment, Job, SwitchSection
from gradplane.hosts.absences import Absence, donor, of_worker, present
from gradplane.hosts.config import JobConfig
from gradplane.hosts.group_tree import levels
from gradplane.hosts.impairments.packet_types import AGG_TYPES
from gradplane.hosts.wire.aggregation import MAX_WORKERS
from gradplane.topologies.description import MAX_HOSTS, Topology
from gradplane.topologies.link_options import bare_rate

log = logging.getLogger(__name__)

COMPRESSES = "tos_compress.p4"  # the shipped program that compresses marked packets
_LEAST_DELAY = 1000  # ns; below it, a number without a unit is refused


@dataclass(frozen=True)
class Problem:
    """A problem that prevents a run. `keys`: the key to look at first, then related ones."""

    text: str
    keys: tuple[Key, ...]


def workers_left(experiment: Experiment, job: Job) -> int:
    """Return how many workers a job has that does not say it: all hosts from its first one on."""
    return min(max(1, experiment.topology.workers - job.first_host + 1), MAX_HOSTS)


def many_workers(experiment: Experiment, placed: PlacedJob) -> Iterator[Problem]:
    """Yield the problem of a job with more workers than its switches or its baseline can have."""
    job, where, network = placed.job, ("job", placed.number), ("topology", "workers")
    scheme = aggregations.get(job.aggregation)
    if job.size <= scheme.most_workers:
        return
    if placed.groups and not scheme.group_servers:
        lowest = levels(placed.groups)[0]
        if (
            max(map(len, (placed.groups, *chain.from_iterable(levels(placed.groups)))))
            > MAX_WORKERS
        ):
            text = f"{len(lowest)} groups of up to {max(map(len, lowest))} workers"
            problem = f"{text}: a ring has {MAX_WORKERS} members at most, leaders too"
            yield Problem(problem, ((*where, "groups"),))
        return
    if not (scheme.has_levels and len(placed.switches) > 1):
        leaves = -(-job.size // MAX_WORKERS)
        in_groups = scheme.takes_groups and not scheme.group_servers
        yield Problem(
            f"{job.size} workers in a job that"
            + (" one switch sums" if scheme.has_levels else f' has aggregation = "{scheme.name}"')
            + f": it has {MAX_WORKERS} at most; write "
            + (f"groups = {leaves} or more under [[job]], or " if in_groups else "")
            + "workers under [[job]], several jobs with"
            ' their first_host, or aggregation = "switch" with kind = "leaf-spine" and leaves ='
            f" {leaves} or more",
            (network, (*where, "workers")),
        )
    elif experiment.output.baseline and job.size > (most := _most(scheme.baseline)):
        yield Problem(
            f'{job.size} workers, and the baseline\'s aggregation = "{scheme.baseline}" has'
            f" {most} at most: use output.baseline = false",
            (("output", "baseline"), network, (*where, "workers")),
        )


def _most(scheme: str) -> int:
    return aggregations.get(scheme).most_workers


def rates(experiment: Experiment) -> Iterator[Problem]:
    """Yield rates without a unit, which are bit/s and probably meant otherwise."""
    args = experiment.topology.args
    given: list[tuple[Key, object]] = [
        (("topology", name), args.get(name)) for name in args if name.endswith("rate")
    ]
    given += [(("traffic", n, "rate"), flow.rate) for n, flow in enumerate(experiment.traffic)]
    for n, job in enumerate(experiment.job):
        if job.device is not None:
            given += [
                (("job", n, "device", name), getattr(job.device, name))
                for name in ("rate", "back_rate")
            ]
    for key, value in given:
        for rate in value if isinstance(value, list | tuple) else [value]:
            if type(rate) is int and rate > 0:
                yield Problem(bare_rate(str(key[-1]), rate), (key,))
                break


def delays(experiment: Experiment) -> Iterator[Problem]:
    """Yield delays without a unit that are probably in ms by mistake."""
    args = experiment.topology.args
    for option in ("delay", "fabric_delay"):
        values = args.get(option)
        for delay in values if isinstance(values, list) else [values]:
            if type(delay) is int and 0 < delay < _LEAST_DELAY:
                yield Problem(
                    f"{option} = {delay} is {delay} ns: write the unit, such as"
                    f' {option} = "{delay}ms", or "{delay}ns" if nanoseconds are meant',
                    (("topology", option),),
                )
                break


def switches(experiment: Experiment, target: Target, network: Topology) -> Iterator[Problem]:
    """Yield the problems of keys of switches, each once where it is of several switches."""
    names, whole = [switch.name for switch in network.switches], experiment.switch
    for name in whole.only or ():
        if name not in names:
            text = f'no switch "{name}": {nearest(name, names)}'
            yield Problem(text, (("switch", "only", name),))
    if whole.ecn_threshold is not None and target.name != "embedded":
        yield Problem(
            f'ecn_threshold with target "{target.name}": thc.p4 and shared.p4 mark packets on'
            ' switches of target = "embedded" only, which see the queues of their links',
            (("switch", "ecn_threshold"), ("switch", "target")),
        )
    for n, job in enumerate(experiment.job):
        if job.nonzero_blocks and target.name != "embedded":
            yield Problem(
                f'nonzero_blocks with target "{target.name}": thc.p4 fills in the blocks that'
                ' workers leave out on switches of target = "embedded" only',
                (("job", n, "nonzero_blocks"), ("switch", "target")),
            )
    each = (_queues(whole, name, target) for name in names)
    own = (_own_entries(whole, name, target) for name in names)
    macros = (_macros(whole, name) for name in names)
    cores = (_cores(whole, name, target) for name in names)
    yield from dict.fromkeys(chain(*each, *own, *cores, *macros))


def _own_entries(whole: SwitchSection, switch: str, target: Target) -> Iterator[Problem]:
    """Yield the problem of entries that are P4Runtime's on a switch that speaks BFRuntime."""
    if whole.of(switch).entries is not None and target.protocol == "bfruntime":
        yield Problem(
            f'entries with target "{target.name}": they are those of P4Runtime, and its driver'
            " takes BFRuntime's: install them there, and leave them out here",
            (whole.place(switch, "entries"), ("switch", "target")),
        )


def _cores(whole: SwitchSection, switch: str, target: Target) -> Iterator[Problem]:
    """Yield the problem of several cores for a switch that is not ours."""
    if whole.of(switch).cores > 1 and not target.cores:
        yield Problem(
            f'cores with target "{target.name}": only targets "embedded" and "tna" take them',
            (whole.place(switch, "cores"), ("switch", "target")),
        )


def _macros(whole: SwitchSection, switch: str) -> Iterator[Problem]:
    """Yield macros of one switch that are no names."""
    for name in whole.of(switch).defines or ():
        if not (name.isascii() and name.isidentifier()):
            text = f'defines: "{name}" is no name of a macro: letters, digits and _'
            yield Problem(text, (whole.place(switch, "defines"),))


def _queues(whole: SwitchSection, switch: str, target: Target) -> Iterator[Problem]:
    """Yield the problems of the keys of one switch's own queues."""
    section = whole.of(switch)
    given = [key for key in ("queue_rate", "queue_depth") if getattr(section, key) is not None]
    places = tuple(whole.place(switch, key) for key in given)
    if given and not target.queues:
        yield Problem(
            f'{" and ".join(given)} with target "{target.name}": only targets "embedded" and'
            ' "tna" take the queues of their switches from the experiment',
            (*places, ("switch", "target")),
        )
    elif given == ["queue_depth"]:
        yield Problem(
            "queue_depth without queue_rate: packets wait in a switch's own queues only where these"
            " have a rate, in packets a second",
            places,
        )


def running_switch(experiment: Experiment, target: Target, network: Topology) -> Iterator[Problem]:
    """Yield the problems of a network around a switch that runs already, before any run."""
    if not target.lasting or (experiment.cluster is not None and not target.attachments):
        return
    if experiment.output.pcap:
        yield Problem(
            f'pcap with target "{target.name}": captures are made by switches that the run starts;'
            " use tcpdump on the interfaces",
            (("output", "pcap"), ("switch", "target")),
        )
    if len(network.switches) > 1:
        yield Problem(
            f'target "{target.name}" is one switch, and this network has {len(network.switches)}:'
            ' use kind = "star"',
            (("topology", "kind"), ("switch", "target")),
        )
        return
    hosts = {host.name for host in network.hosts}
    places = (("switch", "ports"), ("switch", "target"))
    lacking = sorted(hosts - target.attachments.keys())
    if lacking:
        yield Problem(
            f'ports lacks {", ".join(lacking)}: write ports = {{ {lacking[0]} = "PORT@INTERFACE",'
            " ... } for each of the network's hosts; the last one is for servers where a job or its"
            " baseline has them",
            places,
        )
    for host in target.attachments.keys() - hosts:
        yield Problem(f"ports: the network has no host {host}", places)


def cluster(experiment: Experiment, target: Target, network: Topology) -> Iterator[Problem]:
    """Yield what [cluster] says of hosts, switches and ports that the topology does not have,
    machines that would be two hosts, and ports that a chip does not number by itself."""
    section = experiment.cluster
    if section is None:
        return
    hosts, switches = network.host, [switch.name for switch in network.switches]
    for kind, given, known in (
        ("hosts", section.hosts, hosts),
        ("switches", section.switches, switches),
    ):
        for name in given:
            if name not in known:
                text = f'no {kind[:-2] if kind == "switches" else "host"} "{name}":'
                yield Problem(f"{text} {nearest(name, known)}", (("cluster", kind, name),))
    for name in section.switches.keys() & switches:
        ends = [link.other_end(name)[0] for link in network.ports(name).values()]
        lacking = [node for node in ends if section.port(name, node) is None]
        if target.lasting and not target.attachments and lacking:
            text = f'target "{target.name}": ports lacks {", ".join(lacking)}, as the chip has them'
            yield Problem(text, (("cluster", "switches", name),))
        for node in (section.switches[name].ports or {}).keys() - set(ends):
            text = f'switch {name} has no link to "{node}": {nearest(node, ends)}'
            yield Problem(text, (("cluster", "switches", name, "ports"),))
    if section.tls is not None:
        encrypted = section.scheduler.startswith("tls://")
        if not encrypted:
            text = f"{section.scheduler}: with [cluster.tls] the scheduler's address is tls://..."
            yield Problem(text, (("cluster", "scheduler"),))
        if (section.tls.cert is None) != (section.tls.key is None):
            yield Problem("cert and key: give both or none", (("cluster", "tls"),))
    of_machine: dict[str, str] = {}
    for name, place in section.hosts.items():
        if (other := of_machine.setdefault(place.machine, name)) != name:
            text = f"{other} and {name} are both on machine {place.machine}: a host is a machine"
            yield Problem(text, (("cluster", "hosts", name, "machine"),))


def job(experiment: Experiment, placed: PlacedJob) -> Iterator[Problem]:
    """Yield the problems of a job that do not depend on its scheme."""
    job, hosts = experiment.job[placed.number], experiment.topology.workers
    where = ("job", placed.number)
    if job.first_host + job.size - 1 > hosts:
        yield Problem(
            f"{job.size} workers from host {job.first_host} on do not fit the topology's {hosts}",
            ((*where, "workers"), (*where, "first_host"), ("topology", "workers")),
        )
    yield from many_workers(experiment, placed)
    if mismatch := workers_problem(job.compute_ms, job.size):
        yield Problem(mismatch, ((*where, "compute_ms"), (*where, "workers")))
    assert job.quorum is not None, "not resolved"
    if problem := quorum_problem(job.quorum, job.size):
        keys = (*where, "quorum"), (*where, "workers"), ("topology", "workers")
        yield Problem(problem, keys)
    yield from _programs(experiment, placed)
    if job.marked and job.bound is None:
        yield Problem(
            "bound is missing: marked transfers need 6, 8 or 10, for 2^-bound",
            ((*where, "bound"), (*where, "marked")),
        )
    if job.marked and job.plan is None and job.push.name != "float32":
        yield Problem(
            f'marked = true with push = "{job.push.name}": the network compresses float32 values'
            ' only: use push = "float32", or marked = false',
            ((*where, "push"), (*where, "marked")),
        )


def _programs(experiment: Experiment, placed: PlacedJob) -> Iterator[Problem]:
    """Yield shipped programs of the job's switches that cannot do their part of it."""
    job, section = experiment.job[placed.number], experiment.switch
    where, scheme = ("job", placed.number), aggregations.get(job.aggregation)
    if not placed.members:
        return
    needed = scheme.needed_program(job)
    summing = {section.of(switch).program: switch for switch in scheme.aggregators(placed)}
    for program, switch in summing.items():
        if needed is None or not _is_another(program, needed):
            continue
        yield Problem(
            f'aggregation = "{job.aggregation}" with program = "{program}", which sums nothing:'
            f' use program = "{needed}", or '
            + (
                "plan again with --constraint without=switch-int32"
                if job.plan
                else 'aggregation = "ps" or "ring"'
            ),
            ((*where, "aggregation"), section.place(switch, "program")),
        )
    hosts = (*placed.members, *scheme.marked_receivers(placed)) if job.marked else ()
    at_edge = dict.fromkeys(placed.network.attachment(host.name)[0] for host in hosts)
    wrong = {section.of(edge).program: edge for edge in at_edge}
    for program, edge in wrong.items():
        if _is_another(program, COMPRESSES):
            yield Problem(
                f'marked = true with program = "{program}", which compresses nothing: use'
                f' program = "{COMPRESSES}"',
                ((*where, "marked"), section.place(edge, "program")),
            )


def marked(deployed: DeployedJob, others: Sequence[DeployedJob]) -> Iterator[Problem]:
    """Yield the problems of marked transfers: only one switch, or two bounds for a destination."""
    job, network = deployed.job, deployed.network
    if not job.marked:
        return
    where = ("job", deployed.number)
    if len({network.attachment(host)[0] for host in deployed.marked_hosts}) == 1:
        yield Problem(
            f"marked = true on one switch ({network.kind}): packets are compressed between"
            ' switches: use kind = "ring" or "leaf-spine" with fewer hosts per switch',
            ((*where, "marked"), ("topology", "kind")),
        )
    for other in others:
        both = deployed.marked_receivers & other.marked_receivers
        if other.job.marked and other.job.bound != job.bound and both:
            yield Problem(
                f"bound = {job.bound} beside {other.job.bound} of job {other.job.name} for"
                f" {min(both)}: a switch has one error bound per destination",
                ((*where, "bound"),),
            )


def impairments(experiment: Experiment, network: Topology) -> Iterator[Problem]:
    """Yield links that do not exist, and stragglers that are no workers of some job."""
    hosts, least = [host.name for host in network.hosts], min(job.size for job in experiment.job)
    for index, spec in enumerate(experiment.impairment):
        where = ("impairment", index)
        if not isinstance(spec, ImpairmentSection):
            continue
        if spec.link not in ("*", *hosts):
            text = f'no link "{spec.link}": {nearest(spec.link, hosts)}, or "*" for all'
            yield Problem(text, ((*where, "link"),))
        if not isinstance(spec, StragglerSection):
            continue
        for worker in spec.workers or ():
            if worker >= least:
                text = f"impairment straggler: worker {worker}: the job's are 0 to {least - 1}"
                yield Problem(text, ((*where, "workers"),))
        if spec.count is not None and spec.count > least:
            text = f"impairment straggler: count = {spec.count}: the job has {least} workers"
            yield Problem(text, ((*where, "count"),))


def listed_links(experiment: Experiment, network: Topology) -> Iterator[Problem]:
    """Yield lists of packets none of whose links exist; warn of those with some such links, and of
    packets that no job sends."""
    hosts = [host.name for host in network.hosts]
    summed_by_hosts = all(job.aggregation in ("ps", "ring") for job in experiment.job)
    for index, spec in enumerate(experiment.impairment):
        if not isinstance(spec, DropListSection):
            continue
        named = {one.link: one for one in reversed(spec.packets) if one.link is not None}
        unknown = {link: one for link, one in reversed(named.items()) if link not in hosts}
        texts = [
            (f"{one.origin}: " if one.origin else "") + f'no link "{link}": {nearest(link, hosts)}'
            for link, one in unknown.items()
        ]
        if unknown and all(one.link in unknown for one in spec.packets):
            text = f"drop list: {texts[0]}; no packet of it is met"
            yield Problem(text, (("impairment", index),))
        elif unknown:
            log.warning("impairment %d: %s; such packets are never met", index, "; ".join(texts))
        if summed_by_hosts and {one.type for one in spec.packets} <= {*AGG_TYPES}:
            log.warning(
                "impairment %d: all its packets are of a kind (%s) that only jobs summed in"
                ' switches send, so none is met; another run\'s losses may go by = "time"',
                index, spec.packets[0].type,
            )  # fmt: skip


def absences(experiment: Experiment, jobs: Sequence[DeployedJob]) -> Iterator[Problem]:
    """Yield absences of workers that are none, that overlap, or that the job cannot go on with."""
    of_job = {job.config.number: (job, iter(job.config.absences)) for job in jobs}
    for index, spec in enumerate(experiment.impairment):
        if not isinstance(spec, CrashSection | LateJoinSection):
            continue
        where = ("impairment", index)
        last = len(experiment.job) - 1
        if spec.job > last:
            text = f"impairment {spec.model}: job {spec.job}: the jobs are 0 to {last}"
            yield Problem(text, ((*where, "job"),))
        elif spec.job in of_job:  # the job has no problem itself
            job, listed = of_job[spec.job]
            if problem := _absence_problem(job, spec, next(listed)):
                text, key = problem
                yield Problem(f"impairment {spec.model}: {text}", ((*where, key),))


def _absence_problem(
    deployed: DeployedJob, spec: CrashSection | LateJoinSection, absence: Absence
) -> tuple[str, str] | None:
    """Return what is wrong with one absence, and the key that it is about."""
    config, worker = deployed.config, absence.worker
    back = "back" if isinstance(spec, CrashSection) else "round"
    if config.aggregation != "switch":
        text = f'aggregation = "{config.aggregation}": only "switch" goes on without a worker'
        return text, "job"
    if worker >= config.workers:
        return f"worker {worker}: the job's are 0 to {config.workers - 1}", "worker"
    if absence.back >= deployed.rounds:
        return f"{back} = {absence.back}: the job has {deployed.rounds} rounds", back
    own = of_worker(config.absences, worker)
    for one, other in pairwise(own):
        if other.first <= one.back:
            return f"worker {worker} is away again before it is back", "round"
    if donor(config.absences, config.workers, absence.back) is None:
        return f"no other worker of round {absence.back} has weights to copy", back
    if quorums := deployed.job.quorums:
        return _racks_problem(config, quorums)
    rounds = {a.first for a in config.absences}
    least = min(len(present(config.absences, config.workers, round)) for round in rounds)
    if least == 0 or (config.transport.reliability == "retransmit" and least < config.quorum):
        return (
            f"{least} workers are left at times, and the quorum is {config.quorum}: use"
            f' quorum ≤ {least}, or reliability = "lossy"',
            "worker",
        )
    return None


def _racks_problem(config: JobConfig, quorums: Sequence[int]) -> tuple[str, str] | None:
    """Return what is wrong with absences where switches in levels wait for some children."""
    if config.transport.reliability == "lossy":
        return None
    away = {absence.worker for absence in config.absences}
    racks = [len(set(rack) - away) for rack in config.leaves]
    enough = sum(left >= quorums[0] for left in racks)
    if enough == len(racks) or (len(quorums) == 2 and enough >= quorums[-1]):
        return None
    return (
        f"{racks} workers of the racks are always there, and quorums = {list(quorums)}: use smaller"
        ' ones, or reliability = "lossy"',
        "worker",
    )


def restarts(
    experiment: Experiment, jobs: Sequence[DeployedJob], target: Target, network: Topology
) -> Iterator[Problem]:
    """Yield restarts of switches that are none, or whose jobs cannot go on."""
    names = [switch.name for switch in network.switches]
    for index, spec in enumerate(experiment.impairment):
        if not isinstance(spec, RestartSection):
            continue
        where = ("impairment", index, "switch")
        if spec.switch not in names:
            text = f'impairment restart: no switch "{spec.switch}": {nearest(spec.switch, names)}'
            yield Problem(text, (where,))
        elif target.lasting:
            text = f'impairment restart: target = "{target.name}" is not started by the run'
            yield Problem(text, (where, ("switch", "target")))
        for job in jobs:
            if spec.switch not in dict(job.scheme.plans(job, job.config, {})):
                continue
            at = ("job", job.number, "quorum")
            if problem := restart_problem(job):
                yield Problem(f"impairment restart: job {job.job.name}: {problem}", (where, at))


def restart_problem(job: DeployedJob) -> str | None:
    """Return None if a job goes on after its switch has lost its state, else why not."""
    if not job.scheme.restarts:
        return f'aggregation = "{job.config.aggregation}" does not go on: use "switch"'
    if job.config.quorum < job.config.workers:
        return (
            f"quorum = {job.config.quorum} of {job.config.workers} workers: after a restart a chunk"
            " may have a second result, and a replay cannot tell who took which: use a quorum of"
            " all"
        )
    return None


def script_problem(deployment: Deployment) -> str | None:
    """Return None if the ranks of a script can be the job's workers, else why not."""
    if len(deployment.jobs) != 1:
        return (
            f"{len(deployment.jobs)} jobs: torchrun starts one script, so the experiment must have"
            " one [[job]]"
        )
    config = deployment.jobs[0].config
    if config.coding.served_steps:
        return (
            "a job whose server makes the steps is for `gradplane run`: a script makes its own:"
            " use a pull without a policy, and pull_deltas = false"
        )
    if config.coding.plan is not None or config.absences:
        what = "a plan" if config.coding.plan is not None else "workers that crash or join late"
        return f"a job with {what} is for `gradplane run`: a script trains itself"
    return None


def traffic(experiment: Experiment, network: Topology) -> Iterator[Problem]:
    """Yield ends of background flows that are no hosts."""
    hosts = [host.name for host in network.hosts]
    for index, section in enumerate(experiment.traffic):
        for key in ("source", "destination"):
            name = getattr(section, key)
            if name not in hosts:
                text = f'no host "{name}": {nearest(name, hosts)}'
                yield Problem(text, (("traffic", index, key),))


def _is_another(program: str, needed: str) -> bool:
    """Return whether a program is a shipped one and not the needed one.

    A user's program is only known once it is compiled."""
    return program in shipped() and p4_programs.original(program) != needed
