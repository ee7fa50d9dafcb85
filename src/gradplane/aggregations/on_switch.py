"""A job whose codes a switch sums, as the controller installs it there."""

from __future__ import annotations

from gradplane.aggregations.aggregation import PlacedJob
from gradplane.controller.plan import JobPlan, Member
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.job_codec import summed_codec


def job_plan(config: JobConfig, placed: PlacedJob, switch: str, slot_base: int) -> JobPlan:
    """Return the plan of a job of `placed` on a switch. config: its members are some of placed's.

    slot_base: the first slot that no other job of the switch has.
    """
    ports = placed.network.routes(switch)
    host_of = {host.ip: host for host in placed.members}
    members = []
    for worker, (ip, udp_port) in enumerate(config.addresses.worker_addresses):
        host = host_of[ip]
        members.append(Member(worker, ports[host.name], host.mac, ip, udp_port))
    table = tuple(summed_codec(config).table)
    return JobPlan(
        number=config.number,
        workers=tuple(members),
        quorum=config.quorum,
        slots=config.transport.slots,
        slot_base=slot_base,
        sum_bits=config.transport.sum_bits,
        table=table,
        granularity=table[-1],
    )


def program_limits(sum_bits: int, slots: int) -> dict[str, str]:
    """Return the macros of a program with sums of this width and room for so many slots."""
    room = max(256, 1 << (slots - 1).bit_length())
    return {"SUM_BITS": str(sum_bits), "SLOTS": str(room)}
