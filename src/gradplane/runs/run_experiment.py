"""Run an experiment: checks, network, controller, hosts, baseline, and the run folder."""

from __future__ import annotations

import dataclasses
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from gradplane.controller.blocking import check_running, configure, read_counters, restore
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.installable import lacks
from gradplane.controller.plan import Setup
from gradplane.experiment.checks import restart_problem
from gradplane.experiment.deploying import baseline
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import Experiment, ExperimentError, load_deployment
from gradplane.experiment.schema import Output
from gradplane.hosts.digest import FUNCTION
from gradplane.runs import isolation
from gradplane.runs.codec_warnings import codec_warnings
from gradplane.runs.machine import OneBlasThread, describe
from gradplane.runs.progress import Show, show
from gradplane.runs.records import manifest, own_parts, run_folder
from gradplane.runs.records.manifest import Manifest, extents, program_digest
from gradplane.runs.records.recorder import LinkLog, Recorder
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import AskedInterventions, FolderError
from gradplane.runs.records.summary import (
    Summary,
    background,
    link_counters,
    outcome,
    switch_counters,
)
from gradplane.switch.garbage_pause import collections_paused
from gradplane.topologies.description import Topology
from gradplane.topologies.network import NETWORKS, Network, Restarts
from gradplane.topologies.topology_errors import NetworkError

if TYPE_CHECKING:
    from gradplane.topologies.mininet.forks import Forks

Watch = Callable[[Deployment, Path], AbstractContextManager[None]]


def run(
    experiment: str | Path | Experiment,
    out: str | Path | None = None,
    *,
    net: str | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    cli: bool = False,
    console: bool | Literal["rounds"] = False,
    watch: Watch | None = None,
) -> Summary:
    """Run an experiment file (or an Experiment) and return its summary.

    out: the run folder, which must not exist (default: runs/NAME-N). net: "mininet" or "sim"; by
    default mininet where the machine allows it. settings: `KEY=VALUE` overrides. seed: instead of
    the experiment's. cli: open Mininet's prompt on the network before the hosts start. console:
    show progress on standard output, "rounds" a line for each round. watch: is given the deployment
    and the new run folder, and surrounds the run, which then takes interventions
    (records/run_folder.py). Several may run at once, in threads or processes. The report is written
    by `gradplane.run`.

    Raises ExperimentError or CompileError before anything is started or written, and the errors of
    network, controller and hosts; then the run folder has a failure.txt that says why, or there is
    none if nothing was recorded. Such an error, KeyboardInterrupt too, has a note that names the
    folder: what was recorded is there for `replay`, for reports and for `resume`. A folder whose
    run stopped before the end of its first round may be `out` again.
    """
    deployment = load_deployment(experiment, settings, seed)
    return run_deployed(deployment, out, net=net, cli=cli, console=console, watch=watch)


def run_deployed(
    deployment: Deployment,
    out: str | Path | None = None,
    *,
    net: str | None = None,
    cli: bool = False,
    console: bool | Literal["rounds"] = False,
    watch: Watch | None = None,
) -> Summary:
    """Run a deployed experiment, as `run` does that of a file."""
    network = choose_network(net, _console(console))
    if network == "mininet":
        isolation.prepare(load)
    check_target(deployment, network)
    if cli and network != "mininet":
        where = "real machines" if network == "cluster" else "the simulated network"
        raise ExperimentError(f"--cli is Mininet's prompt, and this run is on {where}")
    if (shown := _console(console)) is not None:
        for text in codec_warnings(deployment):
            shown.print(f"warning: {text}", soft_wrap=True, highlight=False, markup=False)
    folder = run_folder.create(out, deployment.experiment.name, replaced=True)
    task = _Task(deployment, folder.resolve(), network, cli, console, live=watch is not None)
    return _carry_out(task, folder, watch, new=True)


def resume(
    folder: str | Path, *, net: str | None = None, console: bool | Literal["rounds"] = False
) -> Summary:
    """Finish the run in a folder that was stopped, and return its summary.

    A finished training is kept and only the baseline is run; one that was stopped is run anew from
    its experiment.toml. net: for folders that do not say which network it was. Raises FolderError
    where nothing is missing, or the run is still running, and everything that `run` raises."""
    path = Path(folder)
    recorded = RunData.opened(path)
    if recorded.complete:
        raise FolderError(f"{folder}: the run is finished, there is nothing to resume")
    if recorded.finished and recorded.digests != FUNCTION:
        raise FolderError(
            f"{folder}: the digests of its training are made by {recorded.digests}, as in older"
            f" versions, and those of its baseline would be made by {FUNCTION}: run it again:"
            f" gradplane run {path / run_folder.EXPERIMENT}"
        )
    if recorded.network and net not in (None, recorded.network):
        raise ExperimentError(f'{folder}: the run is on the network "{recorded.network}"')
    network = choose_network(recorded.network or net, _console(console))
    deployment = recorded.deployment if recorded.finished else own_parts.renewed_deployment(path)
    check_target(deployment, network)
    if (shown := _console(console)) is not None:
        begins = "the training is kept, and its baseline is run"
        if recorded.stored is None:
            begins = f"{recorded.progress}; the training begins anew, with the first round"
        shown.print(f"{folder}: {begins}", soft_wrap=True, highlight=False, markup=False)
    task = _Task(deployment, path.resolve(), network, False, console)
    return _carry_out(dataclasses.replace(task, trained=recorded.stored), path)


def _carry_out(
    task: _Task, folder: Path, watch: Watch | None = None, *, new: bool = False
) -> Summary:
    """Run what the task has left to do; `folder` is the path as the user gave it. new: the folder
    is removed if the run fails before it records anything."""
    with run_folder.in_use(folder):
        run_folder.clear(folder, training=task.trained is None)
        if task.trained is None:
            jobs = extents(task.deployment)
            program = program_digest(task.deployment)
            plan = Manifest(
                network=task.network, machine=describe(), jobs=jobs, program=program,
                digests=FUNCTION,
            )  # fmt: skip
            manifest.start(folder, task.deployment.experiment, plan)
        watched = watch(task.deployment, task.folder) if watch else nullcontext()
        try:
            with watched:
                values = _isolated(task)
        except BaseException as error:
            if new and not run_folder.has_records(folder):
                shutil.rmtree(folder, ignore_errors=True)
                raise
            run_folder.write_failure(folder, run_folder.reason(error))
            with suppress(FolderError, OSError):
                error.add_note(_way_on(folder))
            raise
    return Summary(folder, values)


def _way_on(folder: Path) -> str:
    """Return how far a stopped run went, and the commands that use its records."""
    run = RunData.opened(folder)
    lines = [f"{folder}: {run.progress}"]
    if run.finished or run.metrics:
        lines.append(f"  gradplane report {folder}    what was recorded, as a page")
        lines.append(f"  gradplane replay {folder}    the same, bit for bit")
    way = "run its baseline" if run.finished else "run it anew, from the first round on"
    lines.append(f"  gradplane run --resume {folder}    {way}")
    return "\n".join(lines)


def measure(experiment: Experiment, folder: Path, net: str) -> dict[str, Any]:
    """Train a resolved experiment once, without baseline and report; return summary.json's values.

    The records go into `folder`, which exists; net: "mininet" or "sim". Raises as `run` does.
    """
    network = choose_network(net, None)
    output = Output(baseline=False, target_accuracy=experiment.output.target_accuracy)
    plain = experiment.model_copy(update={"output": output})
    deployment = load_deployment(plain)
    check_target(deployment, network)
    return _isolated(_Task(deployment, folder.resolve(), network, False, False))


def _isolated(task: _Task) -> dict[str, Any]:
    """Execute the task, on Mininet in private namespaces."""
    if task.network != "mininet":
        return _execute(task)
    keep = [task.folder, *(program.path.parent for program in task.deployment.used_programs)]
    return isolation.call(_execute, task, keep=keep, load=load)


def load() -> None:
    """Load what all runs on Mininet share, for `isolation.prepare`: this module, and more."""
    from gradplane.topologies.mininet import forks, mininet_network  # noqa: F401

    forks.load()


def choose_network(net: str | None, console: Console | None) -> str:
    """Return `net`, one of NETWORKS, or by default "mininet" where the machine allows it and "sim"
    where not.

    If it does not, the reason is printed on the console. Raises ExperimentError for another name,
    or for mininet where it cannot be used."""
    if net not in (None, *NETWORKS):
        raise ExperimentError(f'no network "{net}": use {" or ".join(NETWORKS)}')
    if net is not None and net != "mininet":
        return net
    possible, reason = mininet_possible()
    if possible:
        return "mininet"
    if net == "mininet":
        raise ExperimentError(f"Mininet cannot be used here: {reason}; or use --net sim")
    if console is not None:
        console.print(f"On the simulated network: {reason}", soft_wrap=True, highlight=False)
    return "sim"


def mininet_possible() -> tuple[bool, str]:
    """Return (True, ""), or (False, the reason and what to do)."""
    if shutil.which("mnexec") is None:
        return False, "Mininet's mnexec is missing (Debian: apt-get install mininet)"
    return isolation.can_isolate()


def check_target(deployment: Deployment, network: str) -> None:
    """Check, before anything is started or written, that the target can run the program here, and
    that Mininet can shape the links.

    Raises ExperimentError where they cannot, and CompileError where the program is wrong."""
    target = deployment.target
    if network not in target.networks:
        names = " or ".join(f"--net {name}" for name in target.networks)
        raise ExperimentError(f'target = "{target.name}" cannot run on {network}: use {names}')
    if network == "cluster":
        _check_machines(deployment)
    elif missing := target.missing():
        raise ExperimentError(f'target = "{target.name}" cannot be used here: {missing}')
    if network == "mininet":
        _check_links(deployment)
    check_programs(deployment)
    if target.lasting and network != "cluster":
        check_driver(deployment)


def check_programs(deployment: Deployment) -> None:
    """Raise ExperimentError where a program lacks what the jobs need of it, and CompileError where
    it is wrong."""
    lacking: dict[Path, dict[str, None]] = {}
    for name, setup in deployment.setups.items():
        found = lacking.setdefault(deployment.program(name).path, {})
        found |= dict.fromkeys(lacks(deployment.pipelines[name].schema, setup))
    refused = [
        "\n  ".join([f"{path}: the experiment cannot use this program:", *what])
        for path, what in lacking.items()
        if what
    ]
    if refused:
        raise ExperimentError("\n".join(refused))


def _check_machines(deployment: Deployment) -> None:
    """Raise ExperimentError unless [cluster] has all that the run needs, and nothing is asked for
    that machines which exist do not have."""
    experiment, topology = deployment.experiment, deployment.topology
    section = experiment.cluster
    if section is None:
        raise ExperimentError("--net cluster needs the table [cluster] (docs/cluster.md)")
    lines = []
    if lacking := [one.name for one in topology.switches if one.name not in section.switches]:
        lines.append(f"cluster.switches lacks {', '.join(lacking)}")
    used = _used_hosts(deployment)
    if lacking := sorted(used - section.hosts.keys()):
        lines.append(f"cluster.hosts lacks {', '.join(lacking)}")
    if experiment.output.baseline:
        more = sorted(_used_hosts(baseline(deployment)) - used - section.hosts.keys())
        if more:
            lines.append(
                f"cluster.hosts lacks {', '.join(more)}, which only the baseline needs: or set"
                " output.baseline = false"
            )
    for link in topology.links:
        if link.rate is not None or link.delay:
            key = "rate" if link.rate is not None else "delay"
            lines.append(f"link {link.name}: real links have their own {key}: leave it out")
            break
    if experiment.switch.queues is not None or experiment.output.pcap:
        key = "output.pcap" if experiment.output.pcap else "switch.queue_rate"
        lines.append(f"{key} is for switches that the run starts: give it to yours")
    if deployment.restarts:
        lines.append("impairment restart is for switches that the run starts: restart yours")
    if lines:
        raise ExperimentError("--net cluster: " + "\n".join(lines))


def _used_hosts(deployment: Deployment) -> frozenset[str]:
    return frozenset(host.name for host in deployment.hosts)


def _console(wanted: bool | str) -> Console | None:
    return Console() if wanted else None


@dataclass(frozen=True)
class _Task:
    """Everything that a training needs; picklable, as it goes into an isolated process."""

    deployment: Deployment
    folder: Path
    network: str
    cli: bool
    console: bool | Literal["rounds"]
    live: bool = False  # it takes interventions
    trained: dict[str, Any] | None = None  # the finished training's summary, if there is one

    def baseline(self) -> _Task:
        """Return the task of the baseline, which records into a folder inside this one."""
        folder = self.folder / run_folder.BASELINE
        plain = baseline(self.deployment)
        return dataclasses.replace(self, deployment=plain, folder=folder, cli=False, live=False)


def _execute(task: _Task) -> dict[str, Any]:
    """Train, then train the baseline; each is in summary.json as soon as it is finished."""
    experiment = task.deployment.experiment
    with OneBlasThread(), _forks(task) as forks:
        values = task.trained
        if values is None:
            about = {"name": experiment.name, "network": task.network, "seed": experiment.seed}
            about["digests"] = FUNCTION
            target = task.deployment.target
            there = task.network == "cluster"  # its version is not known
            about |= {"target": target.name if there else target.description()}
            values = _train(task, "run", forks) | about | describe()
            manifest.finish(task.folder, values)
        if experiment.output.baseline:
            base = task.baseline()
            base.folder.mkdir()
            # The accuracies come first in the file, as they are what one looks for.
            first = {"test_accuracy": values["test_accuracy"]}
            first["baseline"] = _train(base, "baseline", forks)
            values = first | values
            manifest.finish(task.folder, values)
    return values


def _train(task: _Task, title: str, forks: Forks | None) -> dict[str, Any]:
    """Train once, on a new network; return the values of summary.json about it."""
    deployment = task.deployment
    target, pipelines = deployment.target, deployment.pipelines
    rounds = [job.rounds for job in deployment.jobs]
    screen = show(_console(task.console), title, rounds, every=task.console == "rounds")
    with ExitStack() as stack:
        if not task.cli:
            stack.enter_context(screen)
        net = stack.enter_context(_network(task, forks))
        setups = installed_setups(deployment, net.topology)
        for name, setup in setups.items():
            with _about_switch(name), collections_paused():
                configure(net.switch_addresses[name], pipelines[name], setup, target)
        if task.cli:
            net.cli()
            stack.enter_context(screen)
        recorder = _record(task, net, screen, setups)
        switches = {
            name: switch_counters(read_counters(address, target), pipelines[name])
            for name, address in net.switch_addresses.items()
        }
        links = net.link_counters()
    found = {"switches": switches} | link_counters(links, net.topology) | net.about()
    found |= background(deployment.experiment, recorder.background)
    values = outcome(deployment.experiment, recorder.jobs, recorder.verdicts, recorder.met, found)
    for job, deployed in zip(values["jobs"], deployment.jobs, strict=True):
        job["values"] = deployed.values
    return values


@contextmanager
def _about_switch(name: str) -> Iterator[None]:
    """Name the switch in errors of its controller."""
    try:
        yield
    except ControllerError as error:
        raise type(error)(f"switch {name}: {error}") from error


def installed_setups(deployment: Deployment, running: Topology) -> dict[str, Setup]:
    """Return what the switches install for the hosts' MAC addresses in the running network."""
    hosts = zip(deployment.topology.hosts, running.hosts, strict=True)
    real = {planned.mac: host.mac for planned, host in hosts}
    return {name: setup.with_macs(real) for name, setup in deployment.setups.items()}


def _restarts(task: _Task, net: Network, setups: dict[str, Setup]) -> Restarts | None:
    """Return the switches that lose their state, and how they are restored; None without any.

    setups: as they are installed."""
    deployment = task.deployment

    def again(switch: str) -> dict[int, int]:
        place = net.switch_addresses, deployment.pipelines
        now = restore(switch, *place, setups, deployment.target)
        changed = [name for name in setups if now[name] != setups[name]]
        setups.update(now)
        return {plan.number: plan.epoch for name in changed for plan in now[name].jobs}

    there = task.network == "cluster"  # they may restart by themselves
    summed = (job for job in deployment.jobs if deployment.plans(job.number))
    goes_on = there and not any(map(restart_problem, summed))
    return Restarts(deployment.restarts, again) if deployment.restarts or goes_on else None


def _record(task: _Task, net: Network, on_round: Show, setups: dict[str, Setup]) -> Recorder:
    experiment = task.deployment.experiment
    sizes, patience = [job.size for job in experiment.job], round(experiment.patience_s * 1e9)
    absences = [experiment.absences(number) for number in range(len(sizes))]
    with LinkLog(task.folder, net) as links:

        def ended(recorder: Recorder, job: int) -> None:
            links(recorder, job)
            on_round(recorder, job)

        with Recorder(task.folder, sizes, ended, patience, absences) as recorder:
            hosts, restarts = task.deployment.hosts, _restarts(task, net, setups)
            if task.live:
                hosts = tuple(dataclasses.replace(host, live=True) for host in hosts)
                asked = AskedInterventions(task.folder)
                net.run(hosts, recorder, asked=asked, restarts=restarts)
            else:
                net.run(hosts, recorder, restarts=restarts)
    return recorder


def _forks(task: _Task) -> AbstractContextManager[Forks | None]:
    """Return what starts the processes of Mininet's networks, training and baseline."""
    if task.network != "mininet":
        return nullcontext()
    from gradplane.topologies.mininet.forks import Forks

    return Forks()


def _network(task: _Task, forks: Forks | None) -> Network:
    deployment = task.deployment
    pcap = task.folder / run_folder.PCAP if deployment.experiment.output.pcap else None
    if pcap is not None:
        pcap.mkdir()
    config, topology = deployment.switch_config(pcap), deployment.topology
    if task.network == "sim":
        from gradplane.topologies.sim.sim_network import SimNetwork

        return SimNetwork(topology, config)
    if task.network == "cluster":
        from gradplane.topologies.cluster.cluster_network import ClusterNetwork

        section = deployment.experiment.cluster
        assert section is not None, "checked"
        return ClusterNetwork(topology, section.cluster(), _used_hosts(deployment))
    from gradplane.topologies.mininet.mininet_network import MininetNetwork

    return MininetNetwork(topology, config, forks)


def _check_links(deployment: Deployment) -> None:
    """Raise ExperimentError unless Mininet's links can have their delays and rates here."""
    from gradplane.topologies.mininet.mininet_network import check_shapes

    try:
        check_shapes(deployment.topology, isolation.command)
    except NetworkError as error:
        raise ExperimentError(str(error)) from None


# Checks of a driver that the user has started: its program, its ports and the ways to them


def check_driver(deployment: Deployment) -> None:
    """Check that the experiment can use the driver as it is now; nothing is changed.

    Raises ExperimentError where it cannot.
    """
    target = deployment.target
    about = f'target = "{target.name}"'
    if not target.attachments:
        raise ExperimentError(f"{about}: [switch] lacks ports, which lead to it outside a cluster")
    if not isolation.isolated():
        raise ExperimentError(
            f"{about}: a run outside a lab has namespaces of its own, where the driver and its"
            " interfaces are not: start both from one script, gradplane lab SCRIPT.py"
            " (docs/tofino.md)"
        )
    there = {name for _, name in socket.if_nameindex()}
    for host, (_, interface) in target.attachments.items():
        if interface not in there:
            raise ExperimentError(
                f"{about}: ports: {host}: no interface {interface} here; there are"
                f" {', '.join(sorted(there))}"
            )
    try:
        (pipeline,) = deployment.pipelines.values()  # such a target is one switch
        check_running(pipeline, target)
    except ControllerError as error:
        raise ExperimentError(f"{about} cannot be used: {error}") from error
