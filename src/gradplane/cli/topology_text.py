"""The tree of switches that sum each job of an experiment, and what each of them gets installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import finsy
from rich.tree import Tree

from gradplane.controller import thc

if TYPE_CHECKING:
    from gradplane.controller.plan import JobPlan
    from gradplane.experiment.deployment import DeployedJob, Deployment
    from gradplane.topologies.description import Link


def trees(deployment: Deployment) -> Iterator[Tree]:
    """Yield a tree for each job: its switches, from the root on, and its workers."""
    for job in deployment.jobs:
        of_job = _JobTree(deployment, job)
        drawn = Tree(f"job {job.job.name}: {job.config.workers} workers, {of_job.summary()}")
        for root in of_job.roots():
            of_job.add(drawn, root)
        yield drawn


class _JobTree:
    """The plans of one job, by switch."""

    def __init__(self, deployment: Deployment, job: DeployedJob) -> None:
        self._deployment, self._network, self._job = deployment, deployment.topology, job
        self._plans: dict[str, JobPlan] = {
            name: plan
            for name, setup in deployment.setups.items()
            for plan in setup.jobs
            if plan.number == job.number
        }
        self._worker = {host.name: number for number, host in enumerate(job.members)}

    def summary(self) -> str:
        if not self._plans:
            return f'aggregation = "{self._job.config.aggregation}": no switch sums it'
        return f"summed in {len(self._plans)} switch{'es' if len(self._plans) > 1 else ''}"

    def roots(self) -> list[str]:
        """Return the switches without a parent; where none sums, those with workers."""
        if not self._plans:
            members = (self._network.attachment(host.name)[0] for host in self._job.members)
            return list(dict.fromkeys(members))
        return [
            name
            for name, plan in self._plans.items()
            if plan.level is None or plan.level.parent is None
        ]

    def add(self, above: Tree, switch: str) -> None:
        """Add a switch and what is below it."""
        plan = self._plans.get(switch)
        if plan is None:
            branch = above.add(f"{switch}: forwards")
            hosts = self._network.host_ports(switch).items()
            for port, host in hosts:
                self._add_worker(branch, switch, host, port)
            return
        branch = above.add(f"{switch}: {_role(plan)}")
        branch.add(f"gets {', '.join(self._installed(switch, plan))}")
        for child in plan.workers:
            if plan.adds:
                link = self._network.ports(switch)[child.port]
                self.add(branch, link.other_end(switch)[0])
            else:
                self._add_worker(branch, switch, self._host(child.ip), child.port)

    def _add_worker(self, branch: Tree, switch: str, host: str, port: int) -> None:
        if host in self._worker:
            link = self._network.ports(switch)[port]
            branch.add(f"{host}: worker {self._worker[host]}, port {port}{_limits(link)}")

    def _host(self, ip: str) -> str:
        return next(host.name for host in self._job.members if host.ip == ip)

    def _installed(self, switch: str, plan: JobPlan) -> Iterator[str]:
        """Yield how many entries of each table the job has on a switch."""
        schema = self._deployment.pipelines[switch].schema
        setup, counts = self._deployment.setups[switch], Counter[str]()
        for entity in thc.job_entries(plan, schema, setup.ip, setup.mac):
            if isinstance(entity, finsy.P4TableEntry):
                counts[entity.table_id] += 1
        lookups = [counts.pop(name) for name in thc.lookup_tables(schema) if name in counts]
        for table, count in counts.items():
            yield f"{count} {table.rpartition('.')[2]}"
        if lookups:
            yield f"{sum(lookups):,} values in {len(lookups)} lookup tables"
        yield f"group {plan.group} of {len(plan.workers)} ports"


def _role(plan: JobPlan) -> str:
    """Describe a switch's part in a job."""
    count, level = len(plan.workers), plan.level
    what = f"the sums of {count} switches" if plan.adds else f"the codes of {count} workers"
    parts = ["adds " + what if plan.quorum == count else f"adds {what}, waits for {plan.quorum}"]
    if level is not None and level.parent is not None:
        parts.append(f"child {level.parent.number} of the next one, by port {level.parent.port}")
    parts.append(f"{plan.sum_bits}-bit slots {plan.slot_base} to {plan.slot_range.stop - 1}")
    return ", ".join(parts)


def _limits(link: Link) -> str:
    """Describe a link's rate and delay, where it has them."""
    rate = f", {link.rate / 1e6:g} Mbit/s" if link.rate else ""
    return rate + (f", {link.delay / 1e6:g} ms" if link.delay else "")
