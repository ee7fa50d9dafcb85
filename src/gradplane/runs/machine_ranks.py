"""A script's ranks on machines that exist, which PyTorch's torchrun or Slurm has started.

All ranks read the same experiment, with a table [cluster]. Each sets up its machine's interface,
rank 0 configures the switches, and each records into a folder of its own machine; at the end rank 0
gets all records. The ranks talk by one collective call, which returns what all ranks gave.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from gradplane._whole_files import write_whole
from gradplane.controller.blocking import begin_anew, read_counters
from gradplane.experiment.checks import script_problem
from gradplane.experiment.document import dumps
from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.runs.machine import describe
from gradplane.runs.records import own_parts, run_folder, script_run
from gradplane.runs.records.summary import switch_counters
from gradplane.runs.run_experiment import check_target, installed_setups
from gradplane.topologies.cluster.machine import Machine, Traffic
from gradplane.topologies.description import Topology
from gradplane.topologies.network import LinkCounters

T = TypeVar("T")
Exchange = Callable[[Any], list[Any]]

_PINGS = 10
_SETTINGS = ("job.by_tensor=false", "output.baseline=false")


class RanksError(RuntimeError):
    """Ranks that cannot take part; the message says which, and why. All ranks raise the same."""


class MachineRank:
    """This process as a rank: its machine is ready, and the switches are configured.

    experiment: path of its file. exchange: returns what each rank gave, in their order; all ranks
    make the same calls. Raises RanksError on all ranks where one fails.
    """

    def __init__(self, experiment: str | Path, rank: int, size: int, exchange: Exchange) -> None:
        self._rank, self._exchange = rank, exchange
        texts = self._agreed(lambda: self._read(experiment, size))
        if others := [n for n, text in enumerate(texts) if text != texts[0]]:
            raise RanksError(f"rank {others[0]} has another experiment than rank 0: {experiment}")
        macs = self._agreed(self._begin)
        self._topology = self._with_macs(macs)
        self._agreed(self._set_up)
        self._write_host(self._agreed(self._configure)[0])
        self._ahead = self._compare_clocks()
        self._before, self._began = self._machine.traffic(), time.monotonic()

    def _compare_clocks(self) -> int:
        """Return the ns by which time.monotonic_ns() is ahead of rank 0's.

        Rank 0 reads its clock between the start of this rank's call before and the end of this
        one."""
        least, most = -(1 << 63), 1 << 63
        before = time.monotonic_ns()
        self._exchange(None)
        for _ in range(_PINGS):
            start = time.monotonic_ns()
            there = self._exchange(start)[0]
            least, most = max(least, before - there), min(most, time.monotonic_ns() - there)
            before = start
        return (least + most) // 2 if self._rank else 0

    def _agreed(self, step: Callable[[], T]) -> list[T]:
        """Make a step on all ranks; return what it returned on each."""
        try:
            mine: tuple[bool, Any] = True, step()
        except Exception as error:
            mine = False, f"{error}"
        found = self._exchange(mine)
        failed = [f"rank {n}: {what}" for n, (well, what) in enumerate(found) if not well]
        if failed:
            raise RanksError("\n".join(failed))
        return [what for _, what in found]

    def _read(self, experiment: str | Path, size: int) -> str:
        """Read the experiment; return what must be the same on all machines."""
        self._deployment = load_deployment(experiment, _SETTINGS)
        check_target(self._deployment, "cluster")
        hosts = self._deployment.hosts
        if problem := script_problem(self._deployment):
            raise ExperimentError(problem)
        if any(host.worker is None or host.flows for host in hosts):
            raise ExperimentError(
                "a server and background traffic need hosts beside the ranks: use gradplane run"
            )
        self._hosts = sorted(hosts, key=lambda host: host.worker or 0)
        if len(hosts) != size:
            raise ExperimentError(f"{size} ranks, and the job has {len(hosts)} workers")
        values = self._deployment.experiment.values()
        values["cluster"].pop("tls", None)  # each machine's own paths
        return dumps(values)

    def _begin(self) -> str:
        """Make the folder, and look at the interface; return its MAC address."""
        experiment, host = self._deployment.experiment, self._hosts[self._rank]
        assert experiment.cluster is not None, "checked"
        self._machine = Machine(experiment.cluster.hosts[host.name].interface)
        _, mac = self._machine.about()
        self.folder = run_folder.create(None, f"{experiment.name}-torch").resolve()
        (self.folder / run_folder.HOSTS).mkdir()
        write_whole(self.folder / run_folder.EXPERIMENT, dumps(experiment.values()))
        own_parts.keep(self.folder, experiment)
        return mac

    def _write_host(self, epoch: int) -> None:
        """Write this rank's configuration, with the job's epoch on the switches."""
        output, host = self._deployment.experiment.output, self._hosts[self._rank]
        kept = round(1e6 * output.gradients_mb / len(self._hosts))
        path = self.folder / run_folder.HOSTS / f"{host.name}.json"
        log, job = str(path.with_suffix(".jsonl")), host.job.changed(epoch=epoch)
        write_whole(path, replace(host, log=log, kept_bytes=kept, job=job).to_json())

    @property
    def host(self) -> str:
        """The name of this rank's host."""
        return self._hosts[self._rank].name

    def _with_macs(self, macs: list[str]) -> Topology:
        real = {host.name: mac for host, mac in zip(self._hosts, macs, strict=True)}
        topology = self._deployment.topology
        hosts = (replace(one, mac=real.get(one.name, one.mac)) for one in topology.hosts)
        return replace(topology, hosts=tuple(hosts))

    def _set_up(self) -> None:
        own = self._topology.host[self.host].ip
        others = {ip: mac for ip, mac in self._topology.arp.items() if ip != own}
        self._machine.set_up(f"{own}/{self._topology.prefix_length}", others)

    def _configure(self) -> int:
        """Configure the switches; return the job's epoch, which ranks of before have not had."""
        deployment = self._deployment
        if self._rank:
            return 0
        setups = installed_setups(deployment, self._topology)
        return begin_anew(self._servers(), deployment.pipelines, setups, deployment.target)

    def _servers(self) -> Any:
        section = self._deployment.experiment.cluster
        assert section is not None, "checked"
        return section.cluster().switches

    def close(self) -> None:
        """Give rank 0 all records, which removes those of the others; the interface is as before.

        All ranks make this call. Raises RanksError."""
        self._agreed(self._give)
        if self._rank:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._machine.leave()

    def _give(self) -> None:
        now = zip(self._machine.traffic(), self._before, strict=True)
        traffic = Traffic(*(new - old for new, old in now))
        files = list((self.folder / run_folder.HOSTS).iterdir())
        for path in files:
            if path.suffix == ".jsonl":
                _move_times(path, -self._ahead)
        given = {path.name: path.read_bytes() for path in files} if self._rank else {}
        found = self._exchange((given, traffic))
        if self._rank == 0:
            for files_of_rank, _ in found:
                for name, data in files_of_rank.items():
                    write_whole(self.folder / run_folder.HOSTS / name, data)
            self._count([traffic for _, traffic in found])

    def _count(self, traffic: list[Traffic]) -> None:
        """Write the counters, as `gradplane torchrun` does."""
        deployment = self._deployment
        switches = {
            name: switch_counters(read_counters(server, deployment.target), pipeline)
            for (name, server), pipeline in zip(
                self._servers().items(), deployment.pipelines.values(), strict=True
            )
        }
        links = [
            LinkCounters(f"{host.name}-{self._topology.attachment(host.name)[0]}",
                         *(one.sent_packets, one.sent_bytes, one.sent_dropped),
                         *(one.received_packets, one.received_bytes, 0))
            for host, one in zip(self._hosts, traffic, strict=True)
        ]  # fmt: skip
        sums = sum(link.up_bytes + link.down_bytes for link in links)
        values: dict[str, Any] = {"name": deployment.experiment.name, "script": sys.argv[0]}
        values |= {"arguments": sys.argv[1:], "seconds": time.monotonic() - self._began}
        values |= script_run.reduces(self.folder, [host.name for host in self._hosts])
        values |= {"switches": switches, "links": [asdict(link) for link in links]}
        values |= {"link_bytes": {"hosts": sums, "fabric": 0}} | describe()
        run_folder.write_json(self.folder / script_run.COUNTERS, values)
        script_run.write_metrics(self.folder)


def _move_times(path: Path, ns: int) -> None:
    """Move the times of a log that are of the machine's clock: its origin, and those of values."""
    key = "at" if path.name.endswith(".values.jsonl") else "origin"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    moved = [line | ({key: line[key] + ns} if key in line else {}) for line in lines]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in moved)
    write_whole(path, text)
