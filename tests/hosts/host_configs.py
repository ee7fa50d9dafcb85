"""Configurations for tests: a small job, quick to train."""

from pydantic import TypeAdapter

from gradplane.experiment.impairment_sections import Impairment
from gradplane.hosts.config import HostConfig, JobConfig

ROLES = {
    "switch": "gradplane.hosts.drivers.roles:SwitchWorkerRole",
    "ps": "gradplane.hosts.drivers.roles:ServedWorkerRole",
    "ring": "gradplane.hosts.drivers.roles:RingWorkerRole",
    "optireduce": "gradplane.hosts.drivers.roles:BoundedWorkerRole",
}
SERVER = "gradplane.hosts.drivers.roles:ParameterServerRole"


def make_job(**changes):
    """Return a job of `workers` on addresses `net`.1, ...; the server is the host after the
    last."""
    net = changes.pop("net", "10.0.0")
    workers = changes.get("workers", 4)
    settings = {
        "number": 1,
        "name": "test",
        "workers": workers,
        "quorum": workers,
        "aggregation": "switch",
        "reliability": "lossy",
        "codec": ("thc", {"bits": 4, "granularity": 30, "p": 1 / 32}),
        "pull_codec": ("float32", {}),
        "error_feedback": True,
        "slots": 4,
        "sum_bits": 8,
        "timeout_ns": 1_000_000,
        "retries": 3,
        "aggregator": (f"{net}.254", 18256),
        "worker_addresses": tuple((f"{net}.{w + 1}", 20001) for w in range(workers)),
        "server_address": None,
        "model": "mlp",
        "model_args": {},
        "data": "digits",
        "data_args": {},
        "epochs": 4,
        "batch": 16,
        "lr": 0.1,
        "momentum": 0.9,
        "compute_ns": 100_000,
        "seed": 1,
        "sync": False,
        "sync_threshold": 0,
    }
    if changes.get("aggregation") == "ps":
        settings |= {"server_address": (f"{net}.{workers + 1}", 21001), "error_feedback": False}
        settings |= {"codec": ("float32", {}), "reliability": "retransmit"}
    if changes.get("aggregation") == "ring":
        settings |= {"codec": ("float32", {}), "reliability": "retransmit", "error_feedback": False}
    return JobConfig.of(settings | changes)


def complete(impairment):
    """An impairment as an experiment gives it to hosts: with all defaults."""
    section = TypeAdapter(Impairment).validate_python(impairment)
    return {"seed": 0} | section.model_dump(mode="json", exclude_none=True)


def make_hosts(job, impairments=(), log_folder=None):
    """Return the configurations of a job's hosts, the server last; `impairments` are for the
    workers."""
    hosts = []
    addresses = [ip for ip, _ in job.addresses.worker_addresses]
    if job.addresses.server_address:
        addresses.append(job.addresses.server_address[0])
    for number, ip in enumerate(addresses):
        is_worker = number < job.workers
        hosts.append(
            HostConfig(
                name=f"h{number + 1}",
                ip=ip,
                role=ROLES[job.aggregation] if is_worker else SERVER,
                worker=number if is_worker else None,
                job=job,
                impairments=tuple(map(complete, impairments)) if is_worker else (),
                log=str(log_folder / f"h{number + 1}.jsonl") if log_folder else "",
                start_at=None,
            )
        )
    return hosts
