"""Where an experiment's jobs run: topology, configuration of each host, set-up of each switch.

Addresses are those of docs/architecture.md: host N is hN, 10.0.0.N; workers first, then one server.
"""

from gradplane import codecs
from gradplane.controller.blocking import Setup
from gradplane.controller.compression import Bound, Compression, Format
from gradplane.controller.controller_errors import PlanError
from gradplane.controller.plan import JobPlan, Member, Route
from gradplane.experiment.schema import Experiment, Job, NamedModel, Output
from gradplane.experiment.tensor_codecs import host_codec
from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.hosts.wire.aggregation import UDP_PORT
from gradplane.topologies import description
from gradplane.topologies.description import SWITCH_IP, Topology

WORKER_PORT = 20_000  # + the job's number
STREAM_PORT = 21_000
VALUES_HEADER = 16  # bytes before the values in a marked segment of a stream


def topology(experiment: Experiment) -> Topology:
    """The network, with one server's host after the workers' unless every job is a ring."""
    section = experiment.topology
    servers = int(any(job.aggregation != "ring" for job in experiment.job))
    return description.build(section.kind, workers=section.workers, servers=servers, **section.args)


def uses_switch(experiment: Experiment) -> bool:
    """Whether any job is aggregated in the switch."""
    return any(job.aggregation == "switch" for job in experiment.job)


def baseline(experiment: Experiment) -> Experiment:
    """The same training without compression, loss or stragglers: a ring through the same ring,
    others through a parameter server."""
    jobs = tuple(_plain(job) for job in experiment.job)
    return experiment.model_copy(
        update={"job": jobs, "impairment": (), "output": Output(baseline=False)}
    )


def _plain(job: Job) -> Job:
    plain = {
        "push": NamedModel(name="float32"),
        "pull": None if job.aggregation == "ring" else NamedModel(name="float32"),
        "aggregation": "ring" if job.aggregation == "ring" else "ps",
        "marked": False,
        "bound": None,
        "reliability": "retransmit",
        "error_feedback": False,
        "local_steps": 1,
        "sync": False,
        "quorum": job.size,
    }
    return job.model_copy(update=plain)


def host_configs(experiment: Experiment) -> list[HostConfig]:
    """One configuration for each worker of each job, and for each job's server if it has one."""
    hosts = topology(experiment).hosts
    configs = []
    for number, job in enumerate(experiment.job):
        config = job_config(experiment, number)
        for worker in range(job.size):
            host = hosts[job.first_host - 1 + worker]
            configs.append(_host(experiment, config, host, "worker", worker))
        if config.server_address is not None:
            configs.append(_host(experiment, config, hosts[-1], "server", None))
    return configs


def _host(
    experiment: Experiment,
    job: JobConfig,
    host: description.Host,
    role: str,
    worker: int | None,
) -> HostConfig:
    return HostConfig(
        name=host.name,
        ip=host.ip,
        role=role,
        worker=worker,
        job=job,
        impairments=experiment.impairment,
        log="",
        start_at=None,
    )


def job_config(experiment: Experiment, number: int) -> JobConfig:
    """What the hosts of job `number` share. Raises ConfigError for what hosts refuse."""
    job = experiment.job[number]
    hosts = topology(experiment).hosts
    members = _members(job, topology(experiment))
    pull = job.pull or NamedModel(name="float32")
    return JobConfig(
        number=number,
        name=job.name,
        workers=job.size,
        quorum=_known(job.quorum),
        aggregation=job.aggregation,
        reliability=job.reliability,
        codec=host_codec(job.push, job),
        pull_codec=host_codec(pull, job),
        error_feedback=job.error_feedback,
        slots=job.slots,
        sum_bits=job.sum_bits,
        timeout_ns=round(job.timeout_ms * 1e6),
        retries=job.retries,
        aggregator=(SWITCH_IP, UDP_PORT),
        worker_addresses=tuple((host.ip, WORKER_PORT + number) for host in members),
        server_address=_server(job, hosts[-1], number),
        model=job.model.name,
        model_args=job.model.args,
        data=job.data.name,
        data_args=job.data.args,
        epochs=job.epochs,
        batch=job.batch,
        lr=job.lr,
        momentum=job.momentum,
        compute_ns=round(job.compute_ms * 1e6),
        seed=_known(job.seed),
        sync=job.sync,
        sync_threshold=job.sync_threshold,
        marked=job.marked,
        bound=job.bound if job.marked else None,
        codec_ns=job.codec_ns_per_value,
        reduce_ns=job.reduce_ns_per_value,
        local_steps=job.local_steps,
    )


def setups(experiment: Experiment) -> dict[str, Setup]:
    """What the controller tells each switch: routes to all hosts, the jobs that it aggregates, and
    what it compresses if any job marks packets.

    Raises PlanError for what no program could do."""
    network = topology(experiment)
    jobs = plans(experiment)
    marked = any(job.marked for job in experiment.job)
    found = {}
    for switch in network.switches:
        routes = [
            Route(network.host[host].ip, 32, port, network.host[host].mac)
            for host, port in network.routes(switch.name).items()
        ]
        compressed = compression(experiment, network, switch.name) if marked else None
        found[switch.name] = Setup(
            switch.ip, switch.mac, routes, jobs.get(switch.name, []), compressed
        )
    return found


def plans(experiment: Experiment) -> dict[str, list[JobPlan]]:
    """By switch: the jobs that it aggregates, each with slots of its own, one after another.

    Raises PlanError where a job's workers hang on several switches."""
    found: dict[str, list[JobPlan]] = {}
    network = topology(experiment)
    for number, job in enumerate(experiment.job):
        if job.aggregation == "switch":
            on_switch = found.setdefault(_switch_of(job, network), [])
            base = on_switch[-1].slot_range.stop if on_switch else 0
            on_switch.append(_plan(job, number, network, base))
    return found


def _switch_of(job: Job, network: Topology) -> str:
    """The switch that all workers of the job hang on."""
    switches = sorted({network.attachment(host.name)[0] for host in _members(job, network)})
    if len(switches) > 1:
        raise PlanError(
            f"job {job.name}: its workers hang on switches {', '.join(switches)}, and codes are"
            " summed in one: place them on one switch (a star, or first_host and workers), or use"
            ' aggregation = "ps" or "ring"'
        )
    return switches[0]


def compression(experiment: Experiment, network: Topology, switch: str) -> Compression:
    """What an edge switch does with marked packets; one without hosts only forwards.

    Raises PlanError where marked jobs want different bounds for one host."""
    ports = tuple(network.host_ports(switch))
    if not ports:
        return Compression()
    marked = [(n, job) for n, job in enumerate(experiment.job) if job.marked]
    bounds = [
        Bound(ip, 32, _known(job.bound))
        for _, job in marked
        for ip in sorted(receivers(job, network))
    ]
    formats = tuple(Format(STREAM_PORT + number, VALUES_HEADER) for number, _ in marked)
    return Compression(ports, tuple(dict.fromkeys(bounds)), formats)


def receivers(job: Job, network: Topology) -> set[str]:
    """The addresses that a job's marked transfers go to."""
    hosts = network.hosts[-1:] if job.aggregation == "ps" else _members(job, network)
    return {host.ip for host in hosts}


def marked_path(job: Job, network: Topology) -> list[str]:
    """The hosts between which a job's marked transfers go."""
    hosts = [*_members(job, network), *(network.hosts[-1:] if job.aggregation == "ps" else ())]
    return [host.name for host in hosts]


def _members(job: Job, network: Topology) -> tuple[description.Host, ...]:
    """The job's workers' hosts, in their order."""
    return network.hosts[job.first_host - 1 : job.first_host - 1 + job.size]


def defines(experiment: Experiment) -> dict[str, str]:
    """How the aggregation program is compiled for these jobs."""
    jobs = [job for job in experiment.job if job.aggregation == "switch"]
    slots = max(256, 1 << (sum(job.slots for job in jobs) - 1).bit_length()) if jobs else 256
    bits = jobs[0].sum_bits if jobs else 8
    return {"SUM_BITS": str(bits), "SLOTS": str(slots)}


def _plan(job: Job, number: int, network: Topology, slot_base: int) -> JobPlan:
    table = codecs.get(job.push.name, **job.push.args).table
    members = []
    for worker, host in enumerate(_members(job, network)):
        port = network.attachment(host.name)[1]
        members.append(Member(worker, port, host.mac, host.ip, WORKER_PORT + number))
    return JobPlan(
        number=number,
        workers=tuple(members),
        quorum=_known(job.quorum),
        slots=job.slots,
        slot_base=slot_base,
        sum_bits=job.sum_bits,
        table=tuple(table),
        granularity=table[-1],
    )


def _server(job: Job, host: description.Host, number: int) -> tuple[str, int] | None:
    return (host.ip, STREAM_PORT + number) if job.aggregation == "ps" else None


def _known(value: int | None) -> int:
    assert value is not None, "the experiment is not resolved"
    return value
