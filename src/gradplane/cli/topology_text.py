"""The tree of switches that sum each job of an experiment, and what each of them gets installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

import finsy
from rich.tree import Tree

from gradplane.controller import forwarding, thc
from gradplane.hosts.group_tree import levels, members_of

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
        self._plans = deployment.plans(job.number)
        self._drawn: set[str] = set()
        self._parts = dict(_parts(job))

    def summary(self) -> str:
        if not self._plans:
            names = chain(["rings"] * self._job.job.rings, repeat("groups"))
            rows = zip(levels(self._job.groups), names, strict=False)
            groups = "".join(f" in {len(row)} {name}" for row, name in rows)
            return f'aggregation = "{self._job.config.aggregation}"{groups}: no switch sums it'
        return f"summed in {len(self._plans)} switch{'es' if len(self._plans) > 1 else ''}"

    def roots(self) -> list[str]:
        """Return the switches without a parent; where none sums, all of them."""
        if not self._plans:
            return [switch.name for switch in self._network.switches]
        return [
            name
            for name, plan in self._plans.items()
            if plan.level is None or not plan.level.parents
        ]

    def add(self, above: Tree, switch: str) -> None:
        """Add a switch and what is below it."""
        plan = self._plans.get(switch)
        if plan is None:
            card = switch in self._network.nics
            branch = above.add(f"{switch}: {'a network card, ' if card else ''}forwards")
            branch.add(f"gets {self._routes(switch)}")
            self._add_forwarding(branch, switch)
            return
        if switch in self._drawn:
            above.add(f"{switch}: above")
            return
        self._drawn.add(switch)
        branch = above.add(f"{switch}: {', '.join(self._role(switch, plan))}")
        branch.add(f"gets {', '.join(self._installed(switch, plan))}")
        for child in plan.workers:
            if plan.adds:
                link = self._network.ports(switch)[child.port]
                self.add(branch, link.other_end(switch)[0])
            else:
                self._add_host(branch, switch, self._host(child.ip), child.port)

    def _add_forwarding(self, branch: Tree, switch: str) -> None:
        """Add what a switch that only forwards has at its ports: the job's hosts, and switches."""
        for port, link in self._network.ports(switch).items():
            other, _ = link.other_end(switch)
            if other in self._network.host:
                self._add_host(branch, switch, other, port)
            else:
                branch.add(f"{other}: port {port}{_limits(link)}")

    def _add_host(self, branch: Tree, switch: str, host: str, port: int) -> None:
        if host in self._parts:
            link = self._network.ports(switch)[port]
            branch.add(f"{host}: {self._parts[host]}, port {port}{_limits(link)}")

    def _host(self, ip: str) -> str:
        return next(host.name for host in self._job.members if host.ip == ip)

    def _role(self, switch: str, plan: JobPlan) -> Iterator[str]:
        """Yield what describes a switch's part in a job."""
        count, level = len(plan.workers), plan.level
        several = count > 1
        what = f"the codes of {count} worker{'s' if several else ''}"
        if plan.adds:
            what = f"the sums of {count} switch{'es' if several else ''}"
        yield f"adds {what}" if plan.quorum == count else f"adds {what}, waits for {plan.quorum}"
        alike: dict[tuple[int, str], list[tuple[str, int]]] = {}
        for parent in level.above if level is not None else ():
            link = self._network.ports(switch)[parent.port]
            same = alike.setdefault((parent.number, _limits(link)), [])
            same.append((link.other_end(switch)[0], parent.port))
        for (number, limits), ways in alike.items():
            names, ports = (_listed(map(str, ends)) for ends in zip(*ways, strict=True))
            yield f"child {number} of {names} by port{'s' if len(ways) > 1 else ''} {ports}{limits}"
        roots = self._deployment.roots(plan.number)
        own = [slot for slot in range(plan.slots) if roots[slot % len(roots)] == switch]
        if 0 < len(own) < plan.slots:
            yield f"root of slots {_some(own)}"
        if plan.server is not None:
            (server,) = (host.name for host in self._network.hosts if host.ip == plan.server.ip)
            yield f"{plan.sum_bits}-bit slots of all jobs"
            yield f"what finds none goes to {server} by port {plan.server.port}"
            return
        yield f"{plan.sum_bits}-bit slots {plan.slot_base} to {plan.slot_range.stop - 1}"

    def _routes(self, switch: str) -> str:
        """Return how many routes a switch has, and how many of them have equal ways."""
        schema, setup = self._deployment.pipelines[switch].schema, self._deployment.setups[switch]
        by_flow = sum(map(forwarding.by_flow, forwarding.entries(setup.routes, schema)))
        return f"{len(setup.routes)} routes" + (f", {by_flow} of them by flow" if by_flow else "")

    def _installed(self, switch: str, plan: JobPlan) -> Iterator[str]:
        """Yield the role that a switch's program is compiled for, its routes, and how many entries
        of each table the job has on it."""
        program = self._deployment.program(switch)
        if "ROLE" in program.defines:
            yield f"{program.path.name} with ROLE={program.defines['ROLE']}"
        yield self._routes(switch)
        schema = self._deployment.pipelines[switch].schema
        setup, counts = self._deployment.setups[switch], Counter[str]()
        for entity in thc.job_entries(plan, schema, setup.ip, setup.mac):
            if isinstance(entity, finsy.P4TableEntry):
                counts[entity.table_id] += 1
        lookups = [counts.pop(name) for name in thc.lookup_tables(schema) if name in counts]
        for table, count in counts.items():
            name = table.rpartition(".")[2]
            yield f"{count} {name if count > 1 else name.removesuffix('s')}"
        if lookups:
            yield f"{sum(lookups):,} values in {len(lookups)} lookup tables"
        ports = len(plan.workers)
        yield f"group {plan.group} of {ports} port{'s' if ports > 1 else ''}"


def _parts(job: DeployedJob) -> Iterator[tuple[str, str]]:
    """Yield the part of each of a job's hosts, by its name."""
    groups = list(chain.from_iterable(levels(job.groups)))
    number = {group: n for n, group in enumerate(groups)}
    served = job.scheme.served_groups(job.job, job.groups)
    leads: dict[int, list[str]] = {}
    for group in groups:
        if group not in served:
            leads.setdefault(members_of(group)[0], []).append(str(number[group]))
    for worker, host in enumerate(job.members):
        own = [str(n) for group, n in number.items() if worker in group]
        leader, of = (", the leader", leads[worker]) if worker in leads else ("", own)
        where = f" of group{'s' if len(of) > 1 else ''} {_listed(of)}" if of else ""
        yield host.name, f"worker {worker}{leader}{where}"
    count = len(job.servers) - len(served)
    for host in job.servers[:count]:
        yield host.name, "root server" if groups else "server"
    for host, group in zip(job.servers[count:], served, strict=True):
        below = [str(number[one]) for one in group if one in number]
        of_groups = f", of groups {_listed(below)}" if below else ""
        yield host.name, f"server of group {number[group]}{of_groups}"


def _listed(words: Iterable[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def _some(numbers: Sequence[int]) -> str:
    """Return numbers of equal distance as a text, most of many left out."""
    shown = [*numbers[:2], "...", numbers[-1]] if len(numbers) > 4 else numbers
    return ", ".join(map(str, shown))


def _limits(link: Link) -> str:
    """Describe a link's rate, and its delay where it has one."""
    rate = f", {link.rate / 1e6:g} Mbit/s" if link.rate else ", no limit"
    return rate + (f", {link.delay / 1e6:g} ms" if link.delay else "")
