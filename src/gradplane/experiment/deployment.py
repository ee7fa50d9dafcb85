"""An experiment resolved once: network, jobs, hosts, switches and target, for all who need them.

A run, a replay, a report and the checks are handed a `Deployment`; none of them builds a part of it
again. `deploying` makes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gradplane._plugins import returned
from gradplane.aggregations.aggregation import Aggregation, PlacedJob
from gradplane.controller.blocking import Setup
from gradplane.controller.connection import Pipeline
from gradplane.controller.targets import Target
from gradplane.experiment.p4_programs import P4Program
from gradplane.experiment.schema import Experiment, Job
from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.topologies.description import Topology
from gradplane.topologies.network import SwitchConfig


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
    what the controller installs.
    """

    experiment: Experiment
    target: Target
    topology: Topology
    program: P4Program
    jobs: tuple[DeployedJob, ...]
    hosts: tuple[HostConfig, ...]
    setups: Mapping[str, Setup]

    @cached_property
    def pipeline(self) -> Pipeline:
        """The program as it is pushed. Raises CompileError."""
        found = self.target.pipeline(self.program)
        right = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], bytes)
        returned(f"target {self.target.name}", "pipeline", found, right, "(P4Info, config), bytes")
        return Pipeline(*found)

    def switch_config(self, pcap: Path | None = None, latency: int | None = None) -> SwitchConfig:
        """Return how the switches run.

        pcap: the folder for their captures, if they make any. latency: ns, instead of the
        experiment's.
        """
        section = self.experiment.switch
        return SwitchConfig(
            program=self.program.path,
            include_dirs=self.program.include_dirs,
            defines=tuple(self.program.defines.items()),
            target=self.target.name,
            target_keys=tuple(section.target_keys.items()),
            engine=section.engine,
            seed=self.experiment.seed,
            latency=round(section.latency_us * 1000) if latency is None else latency,
            recirculation_rate=round(section.recirculation_mbit * 1e6),
            pcap=pcap,
            queues=section.queues,
        )
