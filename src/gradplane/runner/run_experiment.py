"""Runs an experiment: checks, network, controller, hosts, baseline, and the run folder."""

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from gradplane.controller import contract
from gradplane.controller.blocking import configure, read_counters
from gradplane.experiment.deploying import baseline
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import Experiment, ExperimentError, load_deployment
from gradplane.experiment.schema import Output
from gradplane.report import page
from gradplane.runner import isolation, run_folder, traffic_counters
from gradplane.runner.machine import OneBlasThread, describe
from gradplane.runner.progress import Show, show
from gradplane.runner.recorder import Recorder
from gradplane.runner.summary import Summary, outcome
from gradplane.topologies.network import Network

T = TypeVar("T")
NETWORKS = ("mininet", "sim")


def run(
    experiment: str | Path | Experiment,
    out: str | Path | None = None,
    *,
    net: str | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    cli: bool = False,
    console: bool = False,
) -> Summary:
    """Run an experiment file (or an Experiment) and return its summary.

    out: the run folder, which must not exist (default: runs/NAME-N). net: "mininet" or "sim"; by
    default mininet where the machine allows it. settings: `KEY=VALUE` overrides. seed: instead of
    the experiment's. cli: open Mininet's prompt on the network before the hosts start. console:
    show progress on standard output. Several may run at once, in threads or processes.

    Raises ExperimentError or CompileError before anything is started or written, and what network,
    controller and hosts raise; then the run folder has a failure.txt that says why.
    """
    deployment = load_deployment(experiment, settings, seed)
    network = choose_network(net, _console(console))
    _check_target(deployment, network)
    if cli and network != "mininet":
        raise ExperimentError("--cli is Mininet's prompt, and this run is on the simulated network")
    folder = run_folder.create(out, deployment.experiment.name)
    run_folder.write_experiment(folder, deployment.experiment)
    task = _Task(deployment, folder.resolve(), network, cli, console)
    try:
        values = _isolated(task)
    except BaseException as error:
        run_folder.write_failure(folder, f"{type(error).__name__}: {error}".removesuffix(": "))
        raise
    run_folder.write_summary(folder, values)
    page.write([folder])
    return Summary(folder, values)


def measure(experiment: Experiment, folder: Path, net: str) -> dict[str, Any]:
    """Train a resolved experiment once, without a baseline or a report: summary.json's values.

    The records go into `folder`, which exists; net: "mininet" or "sim". Raises as `run` does.
    """
    network = choose_network(net, None)
    plain = experiment.model_copy(update={"output": Output(baseline=False)})
    deployment = load_deployment(plain)
    _check_target(deployment, network)
    return _isolated(_Task(deployment, folder.resolve(), network, False, False))


def _isolated(task: "_Task") -> dict[str, Any]:
    """Execute it, on Mininet in namespaces of its own."""
    if task.network == "sim":
        return _execute(task)
    keep = [task.folder, task.deployment.program.path.parent]
    return isolation.call(_execute, task, keep=keep)


def choose_network(net: str | None, console: Console | None) -> str:
    """ "mininet" or "sim". Without a choice of the user's the simulated network is said in a line.

    Raises ExperimentError for another name, or for mininet where it cannot be had."""
    if net not in (None, *NETWORKS):
        raise ExperimentError(f"no network {net!r}: use {' or '.join(NETWORKS)}")
    if net == "sim":
        return "sim"
    possible, reason = mininet_possible()
    if possible:
        return "mininet"
    if net == "mininet":
        raise ExperimentError(f"Mininet cannot be used here: {reason}; or use --net sim")
    if console is not None:
        console.print(f"On the simulated network: {reason}", soft_wrap=True, highlight=False)
    return "sim"


def mininet_possible() -> tuple[bool, str]:
    """(True, "") or (False, why not and what to do)."""
    if shutil.which("mnexec") is None:
        return False, "Mininet's mnexec is missing (Debian: apt-get install mininet)"
    return isolation.can_isolate()


def _check_target(deployment: Deployment, network: str) -> None:
    """Check that the target can run the program here, before anything is started or written.

    Raises ExperimentError where it cannot, and CompileError where the program is wrong."""
    target = deployment.target
    if network not in target.networks:
        names = " or ".join(f"--net {name}" for name in target.networks)
        raise ExperimentError(f'target = "{target.name}" cannot run on {network}: use {names}')
    if missing := target.missing():
        raise ExperimentError(f'target = "{target.name}" cannot be used here: {missing}')
    schema, lacks = deployment.pipeline.schema, dict[str, None]()
    for setup in deployment.setups.values():
        lacks |= dict.fromkeys(contract.missing(schema, setup))
    if lacks:
        what = "\n  ".join(lacks)
        raise ExperimentError(
            f"{deployment.program.path}: the experiment cannot use this program; what it needs is"
            f" in docs/experiments.md:\n  {what}"
        )


def _console(wanted: bool) -> Console | None:
    return Console() if wanted else None


@dataclass(frozen=True)
class _Task:
    """All that a training needs to know; picklable, as it goes into an isolated process."""

    deployment: Deployment
    folder: Path
    network: str
    cli: bool
    console: bool

    def baseline(self) -> "_Task":
        """The same, without compression and losses, into a folder inside this one."""
        folder = self.folder / run_folder.BASELINE
        plain = baseline(self.deployment)
        return dataclasses.replace(self, deployment=plain, folder=folder, cli=False)


def _execute(task: _Task) -> dict[str, Any]:
    """All of the run that needs the network; returns summary.json's values."""
    experiment = task.deployment.experiment
    with OneBlasThread():
        values = _train(task, "run")
        if experiment.output.baseline:
            base = task.baseline()
            base.folder.mkdir()
            # The accuracies come first in the file, as they are what one looks for.
            first = {"test_accuracy": values["test_accuracy"], "baseline": _train(base, "baseline")}
            values = first | values
    about = {"name": experiment.name, "network": task.network, "seed": experiment.seed}
    return values | about | describe()


def _train(task: _Task, title: str) -> dict[str, Any]:
    """Train once, on a network of its own: what it came to."""
    deployment = task.deployment
    target, pipeline = deployment.target.name, deployment.pipeline
    screen = show(_console(task.console), title, [job.rounds for job in deployment.jobs])
    with ExitStack() as stack:
        if not task.cli:
            stack.enter_context(screen)
        net = stack.enter_context(_network(task))
        for name, setup in deployment.setups.items():
            aside(configure, net.switch_addresses[name], pipeline, setup, target)
        if task.cli:
            net.cli()
            stack.enter_context(screen)
        recorder = _record(task, net, screen)
        switches = {
            name: traffic_counters.of_switch(aside(read_counters, address, target), pipeline)
            for name, address in net.switch_addresses.items()
        }
        links = net.link_counters()
    found = {"switches": switches} | traffic_counters.of_links(links, net.topology)
    values = outcome(deployment.experiment, recorder, found)
    for job, deployed in zip(values["jobs"], deployment.jobs, strict=True):
        job["values"] = deployed.values
    return values


def _record(task: _Task, net: Network, on_round: Show) -> Recorder:
    experiment = task.deployment.experiment
    sizes, patience = [job.size for job in experiment.job], round(experiment.patience_s * 1e9)
    with Recorder(task.folder, sizes, on_round, patience) as recorder:
        net.run(task.deployment.hosts, recorder)
    return recorder


def _network(task: _Task) -> Network:
    deployment = task.deployment
    pcap = task.folder / "pcap" if deployment.experiment.output.pcap else None
    if pcap is not None:
        pcap.mkdir()
    config, topology = deployment.switch_config(pcap), deployment.topology
    if task.network == "sim":
        from gradplane.topologies.sim.sim_network import SimNetwork

        return SimNetwork(topology, config)
    from gradplane.topologies.mininet.mininet_network import MininetNetwork

    return MininetNetwork(topology, config)


def aside(function: Callable[..., T], *args: Any) -> T:
    """function(*args) in a thread of its own: the caller's may have an event loop, as notebooks do,
    and the controller's calls start one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()
