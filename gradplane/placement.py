"""Where an experiment's jobs run: topology, configuration of each host, plans for the switch.

Addresses are those of docs/architecture.md: host N is hN, 10.0.0.N; workers first, then one server.
"""

from gradplane import codecs
from gradplane.controller.plan import JobPlan, Member, Route
from gradplane.controller.simple import Setup
from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.schema import Experiment, Job, NamedModel, Output
from gradplane.topologies import description
from gradplane.topologies.description import SWITCH_IP, Topology

AGGREGATION_PORT = 18256
WORKER_PORT = 20_000  # + the job's number
STREAM_PORT = 21_000


def topology(experiment: Experiment) -> Topology:
    """The network, with one server's host after the workers'."""
    section = experiment.topology
    return description.build(section.kind, workers=section.workers, servers=1, **section.args)


def uses_switch(experiment: Experiment) -> bool:
    """Whether any job is aggregated in the switch."""
    return any(job.aggregation == "switch" for job in experiment.job)


def baseline(experiment: Experiment) -> Experiment:
    """The same training without compression, loss or stragglers, through a parameter server."""
    plain = {
        "push": NamedModel(name="float32"),
        "pull": NamedModel(name="float32"),
        "aggregation": "ps",
        "reliability": "retransmit",
        "error_feedback": False,
        "sync": False,
    }
    jobs = tuple(job.model_copy(update=plain | {"quorum": job.size}) for job in experiment.job)
    return experiment.model_copy(
        update={"job": jobs, "impairment": (), "output": Output(baseline=False)}
    )


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
    members = hosts[job.first_host - 1 : job.first_host - 1 + job.size]
    pull = job.pull or NamedModel(name="float32")
    return JobConfig(
        number=number,
        name=job.name,
        workers=job.size,
        quorum=_known(job.quorum),
        aggregation=job.aggregation,
        reliability=job.reliability,
        codec=(job.push.name, job.push.args),
        pull_codec=(pull.name, pull.args),
        error_feedback=job.error_feedback,
        slots=job.slots,
        sum_bits=job.sum_bits,
        timeout_ns=round(job.timeout_ms * 1e6),
        retries=job.retries,
        aggregator=(SWITCH_IP, AGGREGATION_PORT),
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
    )


def setup(experiment: Experiment) -> Setup:
    """What the controller tells the switch: routes to all hosts, and the jobs that it aggregates.

    Raises PlanError for what no program could do."""
    network = topology(experiment)
    switch = network.switches[0]
    routes = [
        Route(host.ip, 32, network.attachment(host.name)[1], host.mac) for host in network.hosts
    ]
    return Setup(switch.ip, switch.mac, routes, plans(experiment))


def plans(experiment: Experiment) -> list[JobPlan]:
    """The jobs that the switch aggregates, each with slots of its own, one after another."""
    found: list[JobPlan] = []
    network = topology(experiment)
    for number, job in enumerate(experiment.job):
        if job.aggregation == "switch":
            base = found[-1].slot_range.stop if found else 0
            found.append(_plan(job, number, network, base))
    return found


def defines(experiment: Experiment) -> dict[str, str]:
    """How the aggregation program is compiled for these jobs."""
    jobs = [job for job in experiment.job if job.aggregation == "switch"]
    slots = max(256, 1 << (sum(job.slots for job in jobs) - 1).bit_length()) if jobs else 256
    bits = jobs[0].sum_bits if jobs else 8
    return {"SUM_BITS": str(bits), "SLOTS": str(slots)}


def _plan(job: Job, number: int, network: Topology, slot_base: int) -> JobPlan:
    table = codecs.get(job.push.name, **job.push.args).table
    members = []
    for worker in range(job.size):
        host = network.hosts[job.first_host - 1 + worker]
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
