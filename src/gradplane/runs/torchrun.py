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
from gradplane.controller.blocking import begin_anew, configure, read_counters
from gradplane.controller.plan import EPOCHS
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
    """A rank that failed; the message says which, and how. rank, how: its number, and its end."""

    def __init__(self, message: str, rank: int | None = None, how: str = "") -> None:
        super().__init__(message)
        self.rank, self.how = rank, how


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
    max_restarts: int = 0,
) -> Finished:
    """Run a script, with its arguments, on each host of an experiment's only job.

    script: None opens Mininet's prompt on the network instead, whose hosts' shells have the ranks'
    environment. out, settings and seed: as in `run`. hook: one of PyTorch's own in the place of the
    network's, see gradplane/torch/stand_ins.py. The ranks share this process's standard output and
    error. max_restarts: when a rank fails, all are ended and started again, so many times, as
    PyTorch's torchrun does; the job begins another life on the switches, under another epoch.
    Raises ExperimentError where the experiment cannot be run so, before anything starts, RankError
    when a rank fails and is not started again (the others are ended), and the errors of network and
    controller.
    """
    whole = "job.by_tensor=false"  # a script's buckets are not the model's tensors
    deployment = load_deployment(experiment, (whole, *settings), seed)
    _check(deployment, script)
    (job,) = deployment.experiment.job
    if job.sum_order is None and deployment.jobs[0].scheme.has_rings(job):
        ordered = "job.sum_order=workers"  # as a script's sums are elsewhere
        deployment = load_deployment(experiment, (whole, ordered, *settings), seed)
    folder = run_folder.create(out, f"{deployment.experiment.name}-torch", replaced=True).resolve()
    text = dumps(deployment.experiment.values())
    write_whole(folder / run_folder.EXPERIMENT, text)
    own_parts.keep(folder, deployment.experiment)
    path = None if script is None else script.resolve()
    task = _Task(deployment, path, tuple(arguments), folder, hook, max_restarts)
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
    max_restarts: int = 0
    life: int = 0  # how often the ranks were started again
    epoch: int = EPOCHS[0]  # the job's, on the switches

    @property
    def ranks(self) -> list[HostConfig]:
        """The workers' hosts, in the order of the ranks."""
        workers = [host for host in self._hosts if _is_rank(host)]
        return sorted(workers, key=lambda host: host.worker or 0)

    @property
    def others(self) -> list[HostConfig]:
        """The server's host, and those of background traffic."""
        return [host for host in self._hosts if not _is_rank(host)]

    @property
    def _hosts(self) -> list[HostConfig]:
        hosts = self.deployment.hosts
        return [replace(host, job=host.job.changed(epoch=self.epoch)) for host in hosts]


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
        started = time.monotonic()
        restarts = _live(task, net)
        seconds = time.monotonic() - started
        switches = {
            name: switch_counters(read_counters(address, target), pipelines[name])
            for name, address in net.switch_addresses.items()
        }
        links = link_counters(net.link_counters(), net.topology)
    about = {"name": deployment.experiment.name, "script": str(task.script or "")}
    values = about | {"arguments": task.arguments, "seconds": seconds}
    if restarts:
        values["restarts"] = _with_losses(task, restarts)
    values |= (
        script_run.reduces(task.folder, [host.name for host in task.ranks])
        | {"switches": switches}
        | links
        | describe()
    )
    run_folder.write_json(task.folder / COUNTERS, values)
    return values


def _live(task: _Task, net: MininetNetwork) -> list[dict[str, Any]]:
    """Run the ranks, and again where one fails, as often as the task allows; return a line for each
    of these restarts."""
    restarts: list[dict[str, Any]] = []
    while True:
        try:
            _run_life(task, net)
            return restarts
        except RankError as error:
            if task.life == task.max_restarts or error.rank is None:
                raise
            done = script_run.done(task.folder)
            _keep_life(task)
            found = task.deployment
            place = net.switch_addresses, found.pipelines, found.setups, found.target
            task = replace(task, life=task.life + 1, epoch=begin_anew(*place, kept=True))
            _write_configurations(task)
            line = {"rank": error.rank, "how": error.how, "reduces": done, "epoch": task.epoch}
            restarts.append(line)
            epoch = f", in the job's epoch {task.epoch}" if task.epoch != EPOCHS[0] else ""
            print(
                f"rank {error.rank} ended with {error.how} after {done} reduces: all ranks start"
                f" again ({task.life} of {task.max_restarts}){epoch}",
                file=sys.stderr,
                flush=True,
            )


def _run_life(task: _Task, net: MininetNetwork) -> None:
    """Run the script, or the prompt, once, with the hosts beside it. Raises RankError."""
    with (
        (task.folder / run_folder.HOSTS / "others.jsonl").open("w") as log,
        net.beside(task.others, lambda record: print(json.dumps(record), file=log)) as check,
    ):
        run = _prompt if task.script is None else _run_ranks
        run(task, net, check)


def _keep_life(task: _Task) -> None:
    """Move the records of a life that ended into a folder of its own, which can be replayed; the
    script's own records go on."""
    kept = task.folder / f"life-{task.life}"
    hosts = task.folder / run_folder.HOSTS
    kept.mkdir()
    hosts.rename(kept / run_folder.HOSTS)
    hosts.mkdir()
    for path in (kept / run_folder.HOSTS).glob("*.values.jsonl"):
        path.rename(hosts / path.name)
    write_whole(kept / run_folder.EXPERIMENT, dumps(task.deployment.experiment.values()))
    own_parts.keep(kept, task.deployment.experiment)


def _with_losses(task: _Task, restarts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the restarts with the reduces that the next life did not begin with, as no state that
    its ranks loaded has them (`lost`)."""
    folders = [task.folder / f"life-{life}" for life in range(1, len(restarts))] + [task.folder]
    for line, following in zip(restarts, folders, strict=True):
        line["lost"] = max(line["reduces"] - script_run.restored(following), 0)
    return restarts


def _write_configurations(task: _Task) -> None:
    (task.folder / run_folder.HOSTS).mkdir(exist_ok=True)
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
    master = {"MASTER_ADDR": hosts[0].ip, "MASTER_PORT": str(_PORT + task.life)}
    elastic = {"RESTART_COUNT": task.life, "MAX_RESTARTS": task.max_restarts}
    numbers |= {f"TORCHELASTIC_{key}": str(value) for key, value in elastic.items()}
    place = {
        "GLOO_SOCKET_IFNAME": f"{own.name}-eth0",
        "GRADPLANE_NETWORK": str(task.folder / run_folder.HOSTS),
        "GRADPLANE_HOST": own.name,
        "GRADPLANE_HOOK": task.hook,
    }
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return threads | numbers | master | place


def _prompt(task: _Task, net: MininetNetwork, check: Callable[[], None]) -> None:
    """Open Mininet's prompt."""
    for rank, host in enumerate(task.ranks):
        net.export(host.name, _environment(task, rank))
    net.cli()
    check()


def _run_ranks(task: _Task, net: MininetNetwork, check: Callable[[], None]) -> None:
    """Run all ranks to their end."""
    argv = [sys.executable, str(task.script), *task.arguments]
    with _ranks(task, net, argv) as ranks:
        while None in (statuses := [rank.poll() for rank in ranks]):
            _check_statuses(task, statuses)
            check()
            time.sleep(_POLL)
        _check_statuses(task, statuses)


def _check_statuses(task: _Task, statuses: Sequence[int | None]) -> None:
    """Raise RankError for the first rank that failed."""
    for number, status in enumerate(statuses):
        if status:
            how = f"status {status}" if status > 0 else f"signal {-status}"
            name = task.ranks[number].name
            hint = _ABORT_HINT if status == -signal.SIGABRT else ""
            raise RankError(
                f"rank {number} (host {name}) ended with {how}; the others are ended{hint}",
                number,
                how,
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
