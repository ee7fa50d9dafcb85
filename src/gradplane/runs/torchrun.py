"""A PyTorch script on the network of an experiment: `gradplane torchrun EXPERIMENT.toml SCRIPT.py`.

Mininet's network, the switches, their tables and the parameter server are those of a run. On each
worker's host the script runs instead of the job's own training, with the environment that PyTorch's
torchrun gives a rank, and two variables by which gradplane.torch finds the network. The folder has
the experiment, the configuration and the log of each host, and the counters.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradplane._suggestions import near_file
from gradplane._whole_files import write_whole
from gradplane.controller.blocking import configure, read_counters
from gradplane.experiment.checks import script_problem
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import dumps
from gradplane.experiment.loading import Experiment, ExperimentError, load_deployment
from gradplane.hosts.config import HostConfig
from gradplane.runs import isolation
from gradplane.runs.machine import OneBlasThread, describe
from gradplane.runs.records import own_parts, run_folder, script_run
from gradplane.runs.records.script_run import COUNTERS
from gradplane.runs.records.summary import link_counters, switch_counters
from gradplane.runs.run_experiment import check_target, load, mininet_possible
from gradplane.topologies.mininet.mininet_network import MininetNetwork

_PORT = 29500  # of rank 0's store, as torchrun's
_POLL = 0.05  # seconds
_PATIENCE = 10.0  # seconds for the other ranks to end, once one has failed
_ABORT_HINT = (
    ". PyTorch's gloo may abort a script that ends without"
    " torch.distributed.destroy_process_group()"
)


class RankError(Exception):
    """A rank that failed; the message says which, and how."""


@dataclass(frozen=True)
class Finished:
    """A script's run that ended well: its folder, and the content of torchrun.json."""

    folder: Path
    values: dict[str, Any]


def torchrun(
    experiment: str | Path | Experiment,
    script: Path | None,
    arguments: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    hook: str = "",
) -> Finished:
    """Run a script, with its arguments, on each host of an experiment's only job.

    script: None opens Mininet's prompt on the network instead, whose hosts' shells have the ranks'
    environment. out, settings and seed: as in `run`. hook: one of PyTorch's own in the place of the
    network's, see gradplane/torch/stand_ins.py. The ranks share this process's standard output and
    error.
    Raises ExperimentError where the experiment cannot be run so, before anything starts, RankError
    when a rank fails (the others are ended), and the errors of network and controller.
    """
    whole = "job.by_tensor=false"  # a script's buckets are not the model's tensors
    deployment = load_deployment(experiment, (whole, *settings), seed)
    _check(deployment, script)
    folder = run_folder.create(out, f"{deployment.experiment.name}-torch", replaced=True).resolve()
    text = dumps(deployment.experiment.values())
    write_whole(folder / run_folder.EXPERIMENT, text)
    own_parts.keep(folder, deployment.experiment)
    path = None if script is None else script.resolve()
    task = _Task(deployment, path, tuple(arguments), folder, hook)
    keep = [folder, Path.cwd() if path is None else path.parent]
    keep += [program.path.parent for program in deployment.used_programs]
    with run_folder.in_use(folder):
        try:
            values = isolation.call(_execute, task, keep=keep, load=load)
        except BaseException as error:
            run_folder.write_failure(folder, run_folder.reason(error))
            raise
        finally:
            script_run.write_metrics(folder)
    return Finished(folder, values)


def _check(deployment: Deployment, script: Path | None) -> None:
    possible, reason = mininet_possible()
    if not possible:
        raise ExperimentError(f"torchrun needs Mininet, which cannot be used here: {reason}")
    if script is not None and not script.is_file():
        raise ExperimentError(f"there is no script {script}{near_file(Path(script))}")
    check_target(deployment, "mininet")
    if problem := script_problem(deployment):
        raise ExperimentError(problem)


@dataclass(frozen=True)
class _Task:
    """Everything that goes into the isolated process; picklable."""

    deployment: Deployment
    script: Path | None
    arguments: tuple[str, ...]
    folder: Path
    hook: str

    @property
    def ranks(self) -> list[HostConfig]:
        """The workers' hosts, in the order of the ranks."""
        workers = [host for host in self.deployment.hosts if _is_rank(host)]
        return sorted(workers, key=lambda host: host.worker or 0)

    @property
    def others(self) -> list[HostConfig]:
        """The server's host, and those of background traffic."""
        return [host for host in self.deployment.hosts if not _is_rank(host)]


def _is_rank(host: HostConfig) -> bool:
    return host.worker is not None and not host.flows


def _execute(task: _Task) -> dict[str, Any]:
    deployment = task.deployment
    target, pipelines = deployment.target, deployment.pipelines
    _write_configurations(task)
    pcap = task.folder / run_folder.PCAP if deployment.experiment.output.pcap else None
    if pcap is not None:
        pcap.mkdir()
    with (
        OneBlasThread(),
        MininetNetwork(deployment.topology, deployment.switch_config(pcap)) as net,
    ):
        for name, setup in deployment.setups.items():
            configure(net.switch_addresses[name], pipelines[name], setup, target)
        with (
            (task.folder / run_folder.HOSTS / "others.jsonl").open("w") as log,
            net.beside(task.others, lambda record: print(json.dumps(record), file=log)) as check,
        ):
            run = _prompt if task.script is None else _run_ranks
            seconds = run(task, net, check)
        switches = {
            name: switch_counters(read_counters(address, target), pipelines[name])
            for name, address in net.switch_addresses.items()
        }
        links = link_counters(net.link_counters(), net.topology)
    about = {"name": deployment.experiment.name, "script": str(task.script or "")}
    values = about | {"arguments": task.arguments, "seconds": seconds}
    values |= (
        script_run.reduces(task.folder, [host.name for host in task.ranks])
        | {"switches": switches}
        | links
        | describe()
    )
    run_folder.write_json(task.folder / COUNTERS, values)
    return values


def _write_configurations(task: _Task) -> None:
    (task.folder / run_folder.HOSTS).mkdir()
    kept = round(1e6 * task.deployment.experiment.output.gradients_mb / len(task.ranks))
    for host in task.ranks:
        path = task.folder / run_folder.HOSTS / f"{host.name}.json"
        log = str(path.with_suffix(".jsonl"))
        path.write_text(replace(host, log=log, kept_bytes=kept).to_json())


def _environment(task: _Task, rank: int) -> dict[str, str]:
    """Return what a rank's environment has beside ours: torchrun's variables, and where the network
    is."""
    hosts = task.ranks
    own = hosts[rank]
    ranks = {"RANK": rank, "GROUP_RANK": rank, "ROLE_RANK": rank, "LOCAL_RANK": 0}
    sizes = {"WORLD_SIZE": len(hosts), "GROUP_WORLD_SIZE": len(hosts), "LOCAL_WORLD_SIZE": 1}
    numbers = {key: str(value) for key, value in (ranks | sizes).items()}
    master = {"MASTER_ADDR": hosts[0].ip, "MASTER_PORT": str(_PORT)}
    place = {
        "GLOO_SOCKET_IFNAME": f"{own.name}-eth0",
        "GRADPLANE_NETWORK": str(task.folder / run_folder.HOSTS),
        "GRADPLANE_HOST": own.name,
        "GRADPLANE_HOOK": task.hook,
    }
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return threads | numbers | master | place


def _prompt(task: _Task, net: MininetNetwork, check: Callable[[], None]) -> float:
    """Open Mininet's prompt; return the seconds that it was open."""
    for rank, host in enumerate(task.ranks):
        net.export(host.name, _environment(task, rank))
    started = time.monotonic()
    net.cli()
    check()
    return time.monotonic() - started


def _run_ranks(task: _Task, net: MininetNetwork, check: Callable[[], None]) -> float:
    """Run all ranks to their end; return the seconds that it took."""
    argv = [sys.executable, str(task.script), *task.arguments]
    started = time.monotonic()
    with _ranks(task, net, argv) as ranks:
        while None in (statuses := [rank.poll() for rank in ranks]):
            _check_statuses(task, statuses)
            check()
            time.sleep(_POLL)
        _check_statuses(task, statuses)
    return time.monotonic() - started


def _check_statuses(task: _Task, statuses: Sequence[int | None]) -> None:
    """Raise RankError for the first rank that failed."""
    for number, status in enumerate(statuses):
        if status:
            how = f"status {status}" if status > 0 else f"signal {-status}"
            name = task.ranks[number].name
            hint = _ABORT_HINT if status == -signal.SIGABRT else ""
            raise RankError(
                f"rank {number} (host {name}) ended with {how}; the others are ended{hint}"
            )


@contextmanager
def _ranks(
    task: _Task, net: MininetNetwork, argv: Sequence[str]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start all ranks; end those that run when the block ends."""
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for number, host in enumerate(task.ranks):
            environment = dict(os.environ) | _environment(task, number)
            pipes = {"stdin": subprocess.DEVNULL, "stdout": None, "stderr": None}
            ranks.append(net.start(host.name, argv, env=environment, **pipes))
        yield ranks
    finally:
        for rank in ranks:
            rank.terminate()
        until = time.monotonic() + _PATIENCE
        for rank in ranks:
            try:
                rank.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()
