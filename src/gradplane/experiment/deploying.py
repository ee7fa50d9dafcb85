"""The way from a resolved experiment to its Deployment: placement, addresses, switch set-ups.

Addresses are those of docs/architecture.md: host N is hN, 10.0.0.N; the hosts of workers come
first, then one for servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from gradplane import aggregations
from gradplane._plugins import LoadError, is_reference
from gradplane._toml_documents import nearest
from gradplane.aggregations import groups
from gradplane.aggregations.aggregation import STREAM_PORT, PlacedJob
from gradplane.codecs import CodecError
from gradplane.controller import targets
from gradplane.controller.compression import Bound, Compression, Format
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import MAX_JOBS, JobPlan, Route, Setup
from gradplane.experiment import (
    checks,
    compute_times,
    own_entries,
    p4_programs,
    planned_jobs,
    routing,
    tensor_codecs,
)
from gradplane.experiment.checks import Problem
from gradplane.experiment.deployment import DeployedJob, Deployment
from gradplane.experiment.document import ExperimentError, Key
from gradplane.experiment.impairment_sections import ImpairmentSection
from gradplane.experiment.p4_programs import P4Program
from gradplane.experiment.schema import (
    Experiment,
    Job,
    NamedModel,
    Output,
    SwitchSection,
    TopologySection,
)
from gradplane.experiment.tensor_codecs import Named, host_codec
from gradplane.hosts.absences import Absence
from gradplane.hosts.config import Coding, ConfigError, HostConfig, JobConfig, Training, Transport
from gradplane.hosts.group_tree import Group
from gradplane.hosts.protocols.job_codec import make_codec
from gradplane.hosts.stream.segments import VALUES_HEADER_SIZE
from gradplane.hosts.training import datasets, models
from gradplane.hosts.training.models import check_parameters
from gradplane.hosts.wire.aggregation import CODE_BITS
from gradplane.topologies import description
from gradplane.topologies.description import HostNode, Topology
from gradplane.topologies.topology_errors import NoPlaceError, TopologyError

if TYPE_CHECKING:
    from gradplane.controller.connection import Entity

_KEYS = {"codec": "push", "pull_codec": "pull"}
"""The keys of a [[job]] that fields of JobConfig with another name come from."""


class DeploymentError(Exception):
    """An experiment that cannot be deployed, with all that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.text for problem in problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[type, tuple[list[Problem]]]:
        return DeploymentError, (self.problems,)


def resolve(experiment: Experiment) -> Experiment:
    """Return the experiment with every default that depends on another key filled in."""
    jobs = _with_code_bits([_resolved(experiment, n, job) for n, job in enumerate(experiment.job)])
    seed = {"seed": experiment.seed}
    impairments = tuple(
        spec.model_copy(update=seed) if getattr(spec, "seed", 0) is None else spec
        for spec in experiment.impairment
    )
    traffic = tuple(
        flow.model_copy(update=seed) if flow.seed is None else flow for flow in experiment.traffic
    )
    resolved = {"job": jobs, "impairment": impairments, "traffic": traffic}
    return experiment.model_copy(update=resolved)


def unresolved(experiment: Experiment) -> Experiment:
    """Return a resolved experiment without the keys of jobs that `resolve` gives the same values,
    so that they follow other keys that change."""
    keys = [key for key, field in Job.model_fields.items() if field.default is None]
    blank = [job.model_copy(update=dict.fromkeys(keys)) for job in experiment.job]
    filled = resolve(experiment.model_copy(update={"job": tuple(blank)})).job
    jobs = tuple(
        job.model_copy(
            update={key: None for key in keys if getattr(job, key) == getattr(again, key)}
        )
        for job, again in zip(experiment.job, filled, strict=True)
    )
    return experiment.model_copy(update={"job": jobs})


def _with_code_bits(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return the jobs with a width of codes where switches sum them: the program has one for all,
    the widest that one of them needs or asks for."""
    needed = [tensor_codecs.code_bits(job) for job in jobs]
    asked = [job.code_bits or need for job, need in zip(jobs, needed, strict=True) if need]
    return tuple(
        job.changed({"code_bits": max(asked)}) if need and job.code_bits is None else job
        for job, need in zip(jobs, needed, strict=True)
    )


def _resolved(experiment: Experiment, number: int, job: Job) -> Job:
    workers = job.workers or checks.workers_left(experiment, job)
    several = len(experiment.job) > 1
    defaults = {
        "name": job.name or (f"job{number}" if several else experiment.name),
        "workers": workers,
        "quorum": job.quorum or (prod(job.quorums) if job.quorums else workers),
        "seed": experiment.seed if job.seed is None else job.seed,
    }
    if job.by_tensor is None and tensor_codecs.may_be_by_tensor(job):
        defaults["by_tensor"] = "paper"
    for key, value in aggregations.get(job.aggregation).defaults().items():
        if key not in Job.model_fields:
            near = nearest(key, Job.model_fields)
            raise LoadError(f'aggregation {job.aggregation}: defaults has the key "{key}": {near}')
        if getattr(job, key) is None:
            defaults[key] = value
    made = job.changed(defaults)
    ways = {way: tensor_codecs.with_version(getattr(made, way)) for way in ("push", "pull")}
    return made.changed(ways)


def _plain(deployed: DeployedJob) -> Job:
    job = deployed.job
    computing = {} if job.plan is None else {"compute_ms": planned_jobs.computing_ms(job)}
    return job.changed(
        {
            **computing,
            "plan": None,
            "push": {"name": "float32"},
            "pull": None,
            "by_tensor": None,
            "pull_feedback": False,
            "pull_deltas": False,
            "device": tensor_codecs.plain_device(deployed.job),
            "aggregation": deployed.scheme.baseline,
            "marked": False,
            "bound": None,
            "reliability": "retransmit",
            "error_feedback": False,
            "local_steps": 1,
            "sync": False,
            "quorum": deployed.job.size,
            "quorums": None,
            "roots": None,
            "code_bits": None,
            "between": None,
        }
    )


def baseline(deployment: Deployment) -> Deployment:
    """Return the same training without compression, losses, stragglers and background traffic."""
    jobs = tuple(_plain(deployed) for deployed in deployment.jobs)
    output = Output(baseline=False, target_accuracy=deployment.experiment.output.target_accuracy)
    plain: dict[str, Any] = {"job": jobs, "impairment": (), "traffic": (), "output": output}
    full = len(deployment.topology.hosts) == deployment.experiment.topology.workers
    return deploy(resolve(deployment.experiment.model_copy(update=plain)), beside=full)


def deploy(experiment: Experiment, advise: bool = True, beside: bool = False) -> Deployment:
    """Deploy a resolved experiment. Raises DeploymentError with everything that cannot work.

    advise: also for warnings about probable mistakes. beside: servers are added to the workers'
    network, which has no place for them."""
    return _Deploying(experiment, advise, beside).deployment()


class _Deploying:
    """The parts of a deployment as they are made, and the problems found on the way."""

    def __init__(self, experiment: Experiment, advise: bool, beside: bool) -> None:
        self._experiment, self._advise, self._beside = experiment, advise, beside
        self._problems: list[Problem] = []

    def deployment(self) -> Deployment:
        """Make all parts, in an order in which each can rely on the ones before."""
        experiment, section = self._experiment, self._experiment.switch
        target = targets.get("embedded")  # in place of one that is wrong
        with self._about("switch", "target"):
            target = targets.get(section.target, **section.target_keys)
        self._least_pass_ns = target.pass_ns
        network = self._topology()
        if network is not None:
            self._problems += checks.switches(experiment, target, network)
        if self._advise:
            self._problems += checks.delays(experiment)
        if not 1 <= len(experiment.job) <= MAX_JOBS:
            text = f"{len(experiment.job)} jobs: there may be 1 to {MAX_JOBS}"
            self._add(text, ("job",))
            self._stop()
        programs = self._programs(target.suffix)
        if network is not None:
            self._problems += checks.running_switch(experiment, target, network)
            self._problems += checks.cluster(experiment, target, network)
        if network is None or target.lasting:
            self._stop(of_jobs=True)
        assert network is not None, "a problem with the network has been reported"
        place = experiment.cluster

        def port(switch: str, number: int, node: str) -> int:
            given = None if place is None else place.port(switch, node)
            return target.port(number, node) if given is None else given

        with self._about("cluster", "switches"):
            network = network.with_switch_ports(port)
        jobs: list[DeployedJob] = []
        placed = [self._placed(network, n, job) for n, job in enumerate(experiment.job)]
        for one in placed:
            if job := self._job(one, placed[: one.number]):
                self._problems += checks.marked(job, jobs)
                jobs.append(job)
        self._problems += checks.impairments(experiment, network)
        if self._advise:
            self._problems += checks.listed_links(experiment, network)
        self._problems += checks.absences(experiment, jobs)
        self._problems += checks.restarts(experiment, jobs, target, network)
        self._problems += checks.traffic(experiment, network)
        self._stop()
        jobs = _with_stream_trips(jobs)
        setups = self._setups(network, jobs)
        if target.roles:
            programs |= self._programs_in_trees(programs, setups)
        self._stop()
        hosts = tuple(config for job in jobs for config in _hosts(experiment, job))
        hosts += tuple(_background(experiment, network, jobs[0]))
        return Deployment(experiment, target, network, programs, tuple(jobs), hosts, setups)

    @property
    def _sections(self) -> list[SwitchSection]:
        """The keys of each kind of switch: those of all switches, and of each with its own."""
        section = self._experiment.switch
        return [section.of(name) for name in ("", *(section.only or ()))]

    @property
    def _latency_ns(self) -> float:
        return max(section.latency_us for section in self._sections) * 1000

    @property
    def _pass_ns(self) -> float:
        """The time of a switch's work on a pass of 1514 bytes, while which others wait."""
        recirculation = 8e3 * 1514 / min(own.recirculation_mbit for own in self._sections)
        return max(recirculation, self._least_pass_ns)

    def _programs(self, suffix: str) -> dict[str, P4Program]:
        """Return the programs by switch, those of "" for all that have none of their own.

        suffix: of the target's versions of the shipped programs."""
        section, jobs = self._experiment.switch, _defines(self._experiment)
        found: dict[str, P4Program] = {}
        for name in ("", *(section.only or ())):
            own = section.of(name)
            with self._about(*section.place(name, "program")):
                path = p4_programs.find_program(p4_programs.version(own.program, suffix))
                given = {key: str(value) for key, value in (own.defines or {}).items()}
                for key in given.keys() & jobs.keys():
                    text = f"defines: {key} follows from the jobs, which need {jobs[key]}"
                    self._add(text, section.place(name, "defines"))
                one = p4_programs.P4Program(path, given | jobs)
                found[name] = next((known for known in found.values() if known == one), one)
        return found

    def _programs_in_trees(
        self, programs: Mapping[str, P4Program], setups: Mapping[str, Setup]
    ) -> dict[str, P4Program]:
        """Return the programs of the switches that sum a job with others, with their roles."""
        found: dict[str, P4Program] = {}
        for name, setup in setups.items():
            if not any(plan.level for plan in setup.jobs):
                continue
            roles = {"node" if plan.adds else "leaf" for plan in setup.jobs}
            if len(roles) > 1:
                text = (
                    f"switch {name} adds workers' codes for one job and switches' sums for another,"
                    f' and with target = "{self._experiment.switch.target}" it does one of both'
                )
                self._add(text, ("switch", "target"))
                continue
            own = programs.get(name, programs[""])
            one = replace(own, defines={"ROLE": roles.pop(), **own.defines})
            found[name] = next((known for known in found.values() if known == one), one)
        return found

    def _add(self, text: str, *keys: Key) -> None:
        self._problems.append(Problem(text, keys))

    def _stop(self, of_jobs: bool = False) -> None:
        """Raise the problems, if there are any. of_jobs: with those of jobs on any network."""
        if not self._problems:
            return
        for number, job in enumerate(self._experiment.job if of_jobs else ()):
            self._codecs(number, job)
            self._training(number, job)
        raise DeploymentError(self._problems)

    @contextmanager
    def _about(self, *key: str | int, also: Sequence[Key] = ()) -> Iterator[None]:
        """Turn an error raised inside into a problem of this key, or of the error's key below it.

        The rest of the block is skipped. also: further keys that the problem is about."""
        try:
            yield
        except (TopologyError, ConfigError) as error:
            below = _KEYS.get(error.key, error.key)
            self._add(str(error), (*key, below) if below else key, *also)
        except (CodecError, ControllerError, ExperimentError, LoadError) as error:
            self._add(str(error), key if key != ("topology",) else (*key, "kind"), *also)

    def _topology(self) -> Topology | None:
        """Build the network, without options that are wrong; None where that cannot be."""
        section = self._experiment.topology
        while True:
            with self._about("topology"):
                return self._built(section)
            wrong = self._problems[-1].keys[0][-1]
            if wrong not in section.args:
                return None
            left = {key: value for key, value in section.args.items() if key != wrong}
            section = TopologySection(kind=section.kind, workers=section.workers, **left)

    def _built(self, section: TopologySection) -> Topology:
        """Build the network, with the hosts for servers that a job or its baseline needs."""
        if "servers" in section.args:
            text = "servers is not a key: a host for servers is added where a job needs one"
            raise TopologyError(text, "servers")
        options: dict[str, Any] = {"workers": section.workers} | section.args
        nics = options.pop("nics", False)
        network = self._with_servers(section.kind, options)
        for host in _group_seats(network, self._experiment.job):
            network = network.with_host_beside(host)
        return network.with_nics(nics)

    def _with_servers(self, kind: str, options: dict[str, Any]) -> Topology:
        """Build a network of a kind with hosts for all servers but those of groups."""
        needed = wanted = 0
        for job in self._experiment.job:
            scheme = aggregations.get(job.aggregation)
            baseline = aggregations.get(scheme.baseline)
            needed = max(needed, scheme.servers(job))
            wanted = max(wanted, needed, baseline.servers(job))
        if self._beside:
            network = description.build(kind, **options)
            for _ in range(wanted):
                network = network.with_host_beside()
            return network
        try:
            return description.build(kind, servers=wanted, **options)
        except NoPlaceError:
            if needed == wanted:
                raise
        # A server that only the baseline needs takes no worker's place.
        return description.build(kind, servers=needed, **options)

    def _placed(self, network: Topology, number: int, job: Job) -> PlacedJob:
        """Return a job's place; without its groups where they are wrong."""
        scheme, members = aggregations.get(job.aggregation), _members(network, job)
        own: Group = ()
        if len(members) == job.size and scheme.takes_groups:
            with self._about("job", number):
                own = groups.groups_of(job, members, network)
        added = len(_group_seats(network, self._experiment.job))
        others = network.hosts[: len(network.hosts) - added]
        servers = others[len(others) - scheme.servers(job) :]
        served = scheme.served_groups(job, own)
        of_groups = groups.seated(network, members, served, network.hosts[len(others) :])
        servers = (*servers, *of_groups)
        return PlacedJob(number, job, members, others[-1], network, own, servers)

    def _job(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> DeployedJob | None:
        """Check a job and return it, or None where it cannot work."""
        number, found = placed.number, len(self._problems)
        job = self._experiment.job[number]
        scheme = aggregations.get(job.aggregation)
        self._problems += checks.job(self._experiment, placed)
        if len(placed.members) < job.size:
            return None
        coding = self._codecs(number, job)
        if coding is not None:
            _, pull_codec, device = coding
            if device is not None and device["policy"] and "policy" in pull_codec[1]:
                text = "policy in both pull and device: weights arrive at the pull's precision"
                self._add(text, ("job", number, "device", "policy"), ("job", number, "pull"))
            advice = scheme.advise(placed, self._latency_ns) if self._advise else ()
            for key, text in (*scheme.check(placed, others), *advice):
                self._add(text, ("job", number, key), ("job", number, "aggregation"))
        if coding is None or len(self._problems) > found:
            self._training(number, job)
            return None
        with self._about("job", number, also=[("job", number, "aggregation")]):
            absences = self._experiment.absences(placed.number)
            config = _config(job, placed, coding[:2], coding[2], absences)
            ecn = self._experiment.switch.ecn_threshold is not None
            round_trip = scheme.round_trip_ns(placed, self._latency_ns, self._pass_ns)
            config = config.changed(round_trip_ns=round(round_trip), ecn=ecn)
            scheme.check_hosts(config)
            rounds, values = self._size(config)
            for key, text in planned_jobs.problems(job, values):
                self._add(text, ("job", number, key), ("job", number, "plan"))
            return DeployedJob(
                number, job, placed.members, placed.server, placed.network, placed.groups,
                placed.servers, scheme, config, rounds, values,
            )  # fmt: skip
        return None

    def _codecs(self, number: int, job: Job) -> tuple[Named, Named, dict[str, Any] | None] | None:
        """Return the codecs of a job's pushes and pulls, and its device; None if one is wrong."""
        found = len(self._problems)
        with self._about("job", number, "push"):
            push = host_codec(job.push, job)
        with self._about("job", number, "pull"):
            pull = tensor_codecs.pull_codec(job.pull or NamedModel(name="float32"), job)
        if job.between is not None:
            with self._about("job", number, "between"):
                make_codec((job.between.name, job.between.args), "between")
        with self._about("job", number, "device"):
            device = tensor_codecs.device(job)
        return (push, pull, device) if len(self._problems) == found else None

    def _training(self, number: int, job: Job) -> tuple[Any, Any] | None:
        """Return a job's data and its parameters; None where one of them is wrong.

        What data and model refuse is a problem of their key."""
        seed, data = job.seed or 0, None
        with self._about("job", number, "data"):
            data = datasets.build(job.data.name, job.data.args, seed, read=False)
        with self._about("job", number, "model"):
            if data is not None:
                model = models.build(job.model.name, job.model.args, data.features, data.classes)
                parameters = model.parameters(seed)
                check_parameters(job.model.name, parameters)
                return data, parameters
            if not is_reference(job.model.name):  # of any data
                models.build(job.model.name, job.model.args, features=1, classes=2)
        return None

    def _size(self, job: JobConfig) -> tuple[int, int]:
        """Return how many rounds a job trains and how many values its gradient has."""
        training = job.training
        if made := self._training(job.number, self._experiment.job[job.number]):
            data, parameters = made
            with self._about("job", job.number, "batch"):
                rows = len(data.train_y)
                batches = datasets.batches(rows, job.workers, 0, training.batch, job.seed, 0)
                return training.epochs * len(batches), parameters.size
        return 0, 0

    def _setups(self, network: Topology, jobs: Sequence[DeployedJob]) -> dict[str, Setup]:
        """Return what each switch installs: routes to all hosts, the jobs that it aggregates, each
        with slots of its own, and what it compresses if any job marks packets."""
        plans: dict[str, list[JobPlan]] = {switch.name: [] for switch in network.switches}
        for job in jobs:
            ends = {name: plan[-1].slot_range.stop for name, plan in plans.items() if plan}
            with self._about("job", job.number):
                for name, plan in job.scheme.plans(job, job.config, ends):
                    plans[name].append(plan)
        summing = [switch for switch in network.switches if plans[switch.name]]
        setups = {}
        for switch in network.switches:
            routes = routing.routes(network, switch.name)
            routes += [
                Route(other.ip, 32, network.port_to(switch.name, other.name), other.mac)
                for other in network.nearest_by_ip(switch.name, summing)
                if other.ip != switch.ip
            ]
            compression = _compression(network, switch.name, jobs)
            setups[switch.name] = Setup(
                switch.ip, switch.mac, routes, plans[switch.name], compression,
                self._own_entries(switch.name),
            )  # fmt: skip
        return setups

    def _own_entries(self, switch: str) -> Sequence[Entity]:
        entries = self._experiment.switch.of(switch).entries
        assert not isinstance(entries, str), "the experiment is not resolved"
        return () if entries is None else tuple(own_entries.entities(entries))


def _with_stream_trips(jobs: Sequence[DeployedJob]) -> list[DeployedJob]:
    """Return the jobs with the round trips of their streams, which may share links."""
    streams = [
        job.scheme.streams(job, job.config, job.values) if job.values else () for job in jobs
    ]
    found = []
    for n, job in enumerate(jobs):
        hosts = [host.name for host in job.network.hosts]
        for name in (end for message in streams[n] for end in message[:2]):
            if name not in hosts:
                raise LoadError(
                    f'aggregation {job.scheme.name}: streams has the host "{name}":'
                    f" {nearest(name, hosts)}"
                )
        others = [message for some in (*streams[:n], *streams[n + 1 :]) for message in some]
        trip = job.scheme.stream_trip_ns(job, streams[n], others)
        config = job.config.changed(stream_trip_ns=round(trip))
        found.append(replace(job, config=config))
    return found


def _members(network: Topology, job: Job) -> tuple[HostNode, ...]:
    return network.hosts[job.first_host - 1 : job.first_host - 1 + job.size]


def _group_seats(network: Topology, jobs: Sequence[Job]) -> list[str]:
    """Return the hosts beside which servers of groups are added; those of wrong groups are not."""
    found = []
    for job in jobs:
        scheme, members = aggregations.get(job.aggregation), _members(network, job)
        if scheme.group_servers and len(members) == job.size:
            with suppress(TopologyError):
                own = groups.groups_of(job, members, network)
                found.append((members, scheme.served_groups(job, own)))
    return groups.seats(network, found)


def _config(
    job: Job,
    placed: PlacedJob,
    codecs: tuple[Named, Named],
    device: dict[str, Any] | None,
    absences: tuple[Absence, ...],
) -> JobConfig:
    """Return what the hosts of a job share. codecs: of pushes and of pulls."""
    assert job.quorum is not None and job.seed is not None, "the experiment is not resolved"
    scheme = aggregations.get(job.aggregation)
    return JobConfig(
        number=placed.number,
        name=job.name,
        workers=job.size,
        quorum=job.quorum,
        aggregation=job.aggregation,
        seed=job.seed,
        training=_training(job, device),
        coding=_coding(job, *codecs),
        transport=Transport(
            reliability=job.reliability,
            slots=job.slots,
            sum_bits=job.sum_bits,
            code_bits=job.code_bits or CODE_BITS,
            timeout_ns=round(job.timeout_ms * 1e6),
            retries=job.retries,
            observed=job.observed,
            nonzero_blocks=job.nonzero_blocks,
        ),
        addresses=scheme.addresses(placed),
        absences=absences,
        leaves=scheme.racks(placed),
        groups=placed.groups,
        quorums=job.quorums or () if placed.groups else (),
        rings=job.rings,
        sum_order=job.sum_order or "rotated",
    )


def _training(job: Job, device: dict[str, Any] | None) -> Training:
    return Training(
        model=job.model.name,
        model_args=job.model.args,
        data=job.data.name,
        data_args=job.data.args,
        epochs=job.epochs,
        batch=job.batch,
        lr=job.lr,
        momentum=job.momentum,
        compute_ns=compute_times.to_ns(job.compute_ms),
        sync=job.sync,
        sync_threshold=job.sync_threshold,
        weight_decay=job.weight_decay,
        device=device,
        schedule=job.schedule,
    )


def _coding(job: Job, push: Named, pull: Named) -> Coding:
    between = None if job.between is None else (job.between.name, job.between.args)
    return Coding(
        codec=push,
        pull_codec=pull,
        error_feedback=job.error_feedback,
        marked=job.marked,
        bound=job.bound if job.marked else None,
        codec_ns=job.codec_ns_per_value,
        reduce_ns=job.reduce_ns_per_value,
        local_steps=job.local_steps,
        plan=None if job.plan is None else json.loads(job.plan),
        pull_feedback=job.pull_feedback,
        pull_deltas=job.pull_deltas,
        between=between,
    )


def _hosts(experiment: Experiment, deployed: DeployedJob) -> Iterator[HostConfig]:
    """Yield a configuration for each worker of the job, and for its server if it has one."""
    scheme = deployed.scheme
    roles: list[tuple[HostNode, str, int | None]]
    roles = [(host, scheme.worker_role, worker) for worker, host in enumerate(deployed.members)]
    for host in deployed.servers:
        assert scheme.server_role is not None, "servers without a role"
        roles.append((host, scheme.server_role, None))
    for host, role, worker in roles:
        yield HostConfig(
            name=host.name,
            ip=host.ip,
            role=role,
            worker=worker,
            job=deployed.config,
            impairments=tuple(
                spec.model_dump(mode="json", exclude_none=True) | {"number": number}
                for number, spec in enumerate(experiment.impairment)
                if isinstance(spec, ImpairmentSection)
            ),
            log="",
            start_at=None,
            joins=next(
                (a.back for a in deployed.config.absences if a.worker == worker and a.first == 0), 0
            ),
        )


def _background(
    experiment: Experiment, network: Topology, first: DeployedJob
) -> Iterator[HostConfig]:
    """Yield a configuration for each host with background traffic."""
    flows = [section.flow(n, network) for n, section in enumerate(experiment.traffic)]
    for host in network.hosts:
        own = tuple(flow for flow in flows if host.ip in (flow.source_ip, flow.destination_ip))
        if own:
            role = "gradplane.hosts.drivers.background:BackgroundTraffic"
            yield HostConfig(host.name, host.ip, role, None, first.config, (), "", None, own)


def _compression(network: Topology, switch: str, jobs: Sequence[DeployedJob]) -> Compression | None:
    """Return what an edge switch does with marked packets; another switch only forwards.

    None where no job marks packets."""
    marked = [job for job in jobs if job.job.marked]
    if not marked:
        return None
    ports = network.edge_ports(switch)
    if not ports:
        return Compression()
    bounds = [
        Bound(ip, 32, job.job.bound)
        for job in marked
        for ip in sorted(job.marked_receivers)
        if job.job.bound is not None
    ]
    formats = [Format(STREAM_PORT + job.number, VALUES_HEADER_SIZE) for job in marked]
    return Compression(ports, tuple(dict.fromkeys(bounds)), tuple(formats))


def _defines(experiment: Experiment) -> dict[str, str]:
    """Return the macros that the program is compiled with for these jobs."""
    by_scheme: dict[str, list[Job]] = {}
    for job in experiment.job:
        by_scheme.setdefault(job.aggregation, []).append(job)
    found: dict[str, str] = {}
    for name, jobs in by_scheme.items():
        found |= aggregations.get(name).defines(jobs)
    if experiment.switch.ecn_threshold is not None:
        found["ECN_THRESHOLD"] = str(experiment.switch.ecn_threshold)
    if (routes := _routes(experiment.topology.workers)) > _ROUTES:
        found["ROUTES"] = str(routes)
    return found


_ROUTES = 1024
"""The routes that a program has room for where the macro ROUTES is not defined."""


def _routes(workers: int) -> int:
    """Return a power of two with room for routes to so many workers, to servers and switches."""
    return 1 << (workers + workers // 8).bit_length()
