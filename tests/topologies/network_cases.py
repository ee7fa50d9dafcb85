"""Helpers of the networks' tests: p4/thc.p4, a job of a few rounds, its switch's set-up."""

from functools import cache
from pathlib import Path

from gradplane import codecs
from gradplane.controller import JobPlan, Member, Pipeline, Route, Setup, configure
from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.topologies.network import SwitchConfig

P4 = Path(__file__).parents[2] / "p4"
THC = {"bits": 4, "granularity": 30, "p": 1 / 32}
FOLDERS = (P4, P4 / "include")


@cache
def pipeline(program=P4 / "thc.p4"):
    info = p4info_text(build_p4info(compile_program(program, FOLDERS, {})))
    return Pipeline(info.encode(), device_config(program, FOLDERS, {}))


ROLE = "gradplane.hosts.drivers.roles:SwitchWorkerRole"


def switch_config(**options):
    return SwitchConfig(P4 / "thc.p4", include_dirs=FOLDERS, **options)


def job(number=0, workers=2, **fields):
    values = {
        "name": f"job {number}",
        "quorum": workers,
        "aggregation": "switch",
        "reliability": "lossy",
        "codec": ("thc", THC),
        "pull_codec": ("float32", {}),
        "error_feedback": True,
        "slots": 8,
        "sum_bits": 8,
        "timeout_ns": 2 * 10**9,
        "retries": 5,
        "aggregator": ("10.0.0.254", 18256),
        "worker_addresses": tuple((f"10.0.0.{n + 1}", 20000 + number) for n in range(workers)),
        "server_address": None,
        "model": "mlp",
        "model_args": {"hidden": [16]},
        "data": "digits",
        "data_args": {},
        "epochs": 1,
        "batch": 256,
        "lr": 0.1,
        "momentum": 0.9,
        "compute_ns": 10**6,
        "seed": 1,
        "sync": False,
        "sync_threshold": 0,
    }
    return JobConfig.of({"number": number, "workers": workers} | values | fields)


def hosts(job):
    return [
        HostConfig(f"h{w + 1}", f"10.0.0.{w + 1}", ROLE, w, job, (), "", None)
        for w in range(job.workers)
    ]


def plan(job, topology, slot_base=0):
    table = tuple(int(value) for value in codecs.get("thc", **THC).table)
    members = tuple(
        Member(w, topology.attachment(f"h{w + 1}")[1], topology.host[f"h{w + 1}"].mac, ip, port)
        for w, (ip, port) in enumerate(job.addresses.worker_addresses)
    )
    return JobPlan(job.number, members, job.quorum, job.transport.slots, slot_base, 8, table, 30)


def set_up(net, *jobs, program=P4 / "thc.p4"):
    """Set up the switch of a star for the jobs."""
    topology = net.topology
    routes = [Route(h.ip, 32, topology.attachment(h.name)[1], h.mac) for h in topology.hosts]
    plans = [plan(job, topology, 8 * index) for index, job in enumerate(jobs)]
    setup = Setup("10.0.0.254", "00:00:00:00:00:fe", routes, plans)
    configure(net.switch_addresses["s1"], pipeline(program), setup)


def run(net, *jobs, deadline=300.0):
    """Return all records of the jobs' run."""
    records = []
    net.run([host for job in jobs for host in hosts(job)], records.append, deadline)
    return records


def of_kind(records, kind):
    return [record for record in records if record["kind"] == kind]


def results(records):
    """Return everything that does not depend on timing: digests of each worker's rounds, and the
    final weights."""
    digests = ("gradient", "codes", "sums", "weights")
    rounds = of_kind(records, "round")
    return (
        {(r["job"], r["worker"], r["round"]): [r[d] for d in digests] for r in rounds},
        {(r["job"], r["worker"]): r["weights"] for r in of_kind(records, "done")},
    )
