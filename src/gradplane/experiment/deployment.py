"""An experiment resolved once: network, jobs, hosts, switches and target, for all who need them.

A run, a replay, a report and the checks are handed a `Deployment`; none of them builds a part of it
again. `deploying` makes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane.aggregations.aggregation import Aggregation, PlacedJob
from gradplane.controller.plan import JobPlan, Setup
from gradplane.controller.targets import Target
from gradplane.experiment.impairment_sections import RestartSection
from gradplane.experiment.p4_programs import P4Program
from gradplane.experiment.schema import Experiment, Job
from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.hosts.group_tree import levels
from gradplane.topologies.description import Topology
from gradplane.topologies.network import SwitchConfig, SwitchRestart

if TYPE_CHECKING:
    from gradplane.controller.connection import Pipeline


@dataclass(frozen=True)
class DeployedJob(PlacedJob):
    """A resolved job: where it runs, its scheme, and what its hosts share.

    rounds: how many it trains; values: how many its gradient has.
    """

    job: Job
    scheme: Aggregation
    config: JobConfig
    rounds: int
    values: int

    @property
    def racks(self) -> dict[str, tuple[int, ...]]:
        """The workers of each part that is summed first, by its switch's name, or a group's number
        where groups are not those of racks; nothing where all are summed at once."""
        parts = self.config.leaves or next(iter(levels(self.groups)), ())
        switches = [{self.network.rack(self.members[w].name) for w in part} for part in parts]
        names = [min(found) for found in switches]
        if len(set(names)) < len(names) or any(len(found) > 1 for found in switches):
            names = [f"group {number}" for number in range(len(parts))]
        return dict(zip(names, parts, strict=True))

    @property
    def marked_hosts(self) -> set[str]:
        """The names of the hosts between which marked transfers go."""
        receivers = self.scheme.marked_receivers(self)
        return {host.name for host in (*self.members, *receivers)}

    @property
    def marked_receivers(self) -> set[str]:
        """The addresses that marked transfers go to."""
        return {host.ip for host in self.scheme.marked_receivers(self)}


@dataclass(frozen=True)
class Deployment:
    """A resolved experiment, all of it, frozen and picklable.

    hosts: a configuration for each worker of each job and for each job's server. setups: by switch,
    what the controller installs. programs: by switch; "" is that of all others.
    """

    experiment: Experiment
    target: Target
    topology: Topology
    programs: Mapping[str, P4Program]
    jobs: tuple[DeployedJob, ...]
    hosts: tuple[HostConfig, ...]
    setups: Mapping[str, Setup]

    @property
    def restarts(self) -> tuple[SwitchRestart, ...]:
        """The switches that lose their state, and when."""
        return tuple(
            SwitchRestart(s.switch, round(s.time_ms * 1e6), round(s.down_ms * 1e6))
            for s in self.experiment.impairment
            if isinstance(s, RestartSection)
        )

    def plans(self, job: int) -> dict[str, JobPlan]:
        """Return what each switch that sums a job installs for it."""
        return {
            name: plan
            for name, setup in self.setups.items()
            for plan in setup.jobs
            if plan.number == job
        }

    def roots(self, job: int) -> list[str]:
        """Return the switches that give a job's results: slot s has root s modulo their number.

        None where no switch sums."""
        plans = self.plans(job)
        if not plans:
            return []
        leaf = next(name for name, plan in plans.items() if not plan.adds)
        level, found = plans[leaf].level, list[str]()
        for slot in range(len(level.parents) if level is not None and level.parents else 1):
            switch = leaf
            while (level := plans[switch].level) and (parent := level.parent_of(slot)) is not None:
                switch, _ = self.topology.ports(switch)[parent.port].other_end(switch)
            found.append(switch)
        return found

    def racks(self, job: int) -> list[str]:
        """Return the rack or group of each worker of a job that is summed in parts; else []."""
        of = {w: name for name, workers in self.jobs[job].racks.items() for w in workers}
        return [of[worker] for worker in sorted(of)]

    @property
    def used_programs(self) -> list[P4Program]:
        """The programs that some switch runs, each once."""
        names = [switch.name for switch in self.topology.switches]
        found = {id(one): one for one in map(self.program, names)}
        return list(found.values())

    def program(self, switch: str) -> P4Program:
        """Return the program of a switch."""
        return self.programs.get(switch, self.programs[""])

    @cached_property
    def pipelines(self) -> dict[str, Pipeline]:
        """Each switch's program as it is pushed. Raises CompileError."""
        return self.pipelines_for(self.target)

    def pipelines_for(self, target: Target) -> dict[str, Pipeline]:
        """Return each switch's program as it is pushed to a target. Raises CompileError."""
        made = {id(program): _pipeline(program, target) for program in self.used_programs}
        names = [switch.name for switch in self.topology.switches]
        return {name: made[id(self.program(name))] for name in names}

    def switch_config(self, pcap: Path | None = None, latency: int | None = None) -> SwitchConfig:
        """Return how the switches run.

        pcap: the folder for their captures, if they make any. latency: ns, instead of the
        experiment's.
        """
        only = {name: self._config(name, pcap, latency) for name in self.programs if name}
        return dataclasses.replace(self._config("", pcap, latency), only=only)

    def _config(self, switch: str, pcap: Path | None, latency: int | None) -> SwitchConfig:
        section, program = self.experiment.switch.of(switch), self.program(switch)
        return SwitchConfig(
            program=program.path,
            include_dirs=program.include_dirs,
            defines=tuple(program.defines.items()),
            target=self.target.name,
            target_keys=tuple(section.target_keys.items()),
            engine=section.engine,
            seed=self.experiment.seed,
            latency=round(section.latency_us * 1000) if latency is None else latency,
            recirculation_rate=round(section.recirculation_mbit * 1e6),
            pcap=pcap,
            queues=section.queues,
            cores=section.cores,
        )


def _pipeline(program: P4Program, target: Target) -> Pipeline:
    from gradplane.controller.connection import Pipeline

    return Pipeline(*target.pipeline(program))
