"""Commands on experiments and run folders: run, replay, sweep, compare, report."""

import sys
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import gradplane
from gradplane.cli.options import (
    OUT,
    Accuracy,
    AsJson,
    Out,
    Quiet,
    Seed,
    Settings,
    Verbose,
    argument,
    check_network,
    completed,
    emulated,
    fail,
    make_console,
    only_errors,
    option,
    progress,
    say,
    stoppable,
)

if TYPE_CHECKING:
    from gradplane.pages.viewer.live_run_server import WebPage
    from gradplane.runs.records.summary import Summary

commands = typer.Typer()
_LINE = 200  # characters of a line that is not to be folded


def _experiments() -> list[str]:
    from gradplane.experiment import shipped

    return shipped.names()


def _networks() -> tuple[str, ...]:
    from gradplane.topologies.network import NETWORKS

    return NETWORKS


_completed = completed(_experiments, "*.toml")


@commands.command()
def run(
    experiment: Annotated[
        Path | None,
        argument("EXPERIMENT.toml", "A file, or a shipped one's name", autocompletion=_completed),
    ] = None,
    net: Annotated[
        str | None,
        option(
            "mininet|sim|cluster",
            "Default: mininet where possible",
            autocompletion=completed(_networks),
        ),
    ] = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006  (typer copies it)
    target_accuracy: Accuracy = None,
    cli: Annotated[bool, typer.Option("--cli", help="Open Mininet's prompt first")] = False,
    resume: Annotated[Path | None, option("RUN_DIR", "Finish a run that was stopped")] = None,
    web: Annotated[
        bool, typer.Option("--web", help="Show the run on a page, with buttons to impair links")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run an experiment, or a study, and write its run folder; or finish a stopped run."""
    from gradplane.experiment import shipped

    check_network(net, machines=True)
    shown = progress(as_json, quiet, verbose)
    if resume is not None:
        if experiment or out or settings or cli or web or (seed, target_accuracy) != (None, None):
            raise typer.BadParameter("the folder has the whole experiment", param_hint="--resume")
        with stoppable(), only_errors(quiet):
            summary = gradplane.resume(resume, net=net, console=shown)
        _show(summary, as_json, quiet)
    elif experiment is None:
        raise typer.BadParameter("give EXPERIMENT.toml, or --resume RUN_DIR")
    elif shipped.is_study(experiment):
        if target_accuracy is not None:
            hint = "--target-accuracy"
            raise typer.BadParameter("a study has its own result: omit it", param_hint=hint)
        if web:
            raise typer.BadParameter("a study has no network: omit it", param_hint="--web")
        if as_json or quiet or verbose:
            hint = "--json" if as_json else "--quiet" if quiet else "--verbose"
            raise typer.BadParameter("a study prints its table: study.json has it", param_hint=hint)
        _run_study(experiment, out, net, seed, settings, cli)
        return
    else:
        if target_accuracy is not None:
            settings = [*settings, f"output.target_accuracy={target_accuracy}"]
        with _page() if web else nullcontext() as page:
            with stoppable(), only_errors(quiet):
                summary = gradplane.run(
                    experiment,
                    out,
                    net=net,
                    settings=settings,
                    seed=seed,
                    cli=cli,
                    console=shown,
                    watch=page.around if page else None,
                )
            _show(summary, as_json, quiet)
            if page is not None:
                _until_enter()


def _show(summary: "Summary", as_json: bool, quiet: bool) -> None:
    from gradplane.cli import output_tables
    from gradplane.runs.records.run_folder import SUMMARY
    from gradplane.runs.records.summary import unmet

    if as_json:
        print((summary.folder / SUMMARY).read_text("utf-8"), end="")
    if as_json or quiet:
        if text := unmet(summary.values):  # else a run without losses would pass for one with them
            typer.echo(text, err=True)
        return
    console = make_console()
    console.print(output_tables.results(summary))
    say(console, _where(summary))


def _page() -> "WebPage":
    """Return the page of a run; its address is printed when the run starts."""
    from gradplane.pages.viewer.live_run_server import WebPage
    from gradplane.pages.viewer.local_server import ServerError

    def say_address(url: str) -> None:
        print(f"{url}\nfor browsers on this machine", flush=True)

    try:
        return WebPage(say_address)
    except ServerError as error:
        fail(str(error))


def _until_enter() -> None:
    """Keep the page of a finished run until the user has seen it, where there is one."""
    if sys.stdin.isatty():
        with suppress(EOFError, KeyboardInterrupt):
            input("Enter ends the run's page ")


def _where(run: "Summary") -> str:
    return f"report: {run.report}" if run.report.exists() else f"records: {run.folder}"


def _run_study(
    path: Path, out: Path | None, net: str | None, seed: int | None, settings: list[str], cli: bool
) -> None:
    from gradplane.cli import output_tables
    from gradplane.studies import launch

    if net or cli:
        hint = "--net" if net else "--cli"
        raise typer.BadParameter("a study has no network: omit it", param_hint=hint)
    console = make_console()
    announce = partial(say, console)
    with console.status("computing"):
        done = launch.run(path, out, settings=settings, seed=seed, announce=announce)
    console.print(output_tables.study(done.outcome))
    say(console, f"report: {done.report}")


@commands.command()
def experiments(
    copy: Annotated[str | None, option("NAME", "Write a copy of one, to edit it")] = None,
    destination: Annotated[
        Path | None, typer.Argument(metavar="DEST", help="With --copy: a file or a folder")
    ] = None,
) -> None:
    """List the shipped experiments; `gradplane run NAME` runs one."""
    from gradplane.cli import output_tables
    from gradplane.experiment import shipped

    if copy is not None:
        say(make_console(), str(shipped.copy(copy, destination)))
        return
    if destination is not None:
        raise typer.BadParameter("only with --copy NAME", param_hint="DEST")
    make_console().print(output_tables.experiments())


@commands.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", show_default=False)],
    settings: Settings = [],  # noqa: B006
    out: Out = None,
    net: Annotated[
        str | None,
        option("mininet|sim", "With --set: the network; default sim", autocompletion=emulated),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Re-enact a run bit for bit; with --set, its losses under a changed experiment."""
    from gradplane.cli import output_tables
    from gradplane.runs.progress import left
    from gradplane.runs.records.summary import Summary
    from gradplane.runs.torchrun import Finished

    if net is not None and not settings:
        raise typer.BadParameter("only with --set", param_hint="--net")
    check_network(net)
    console = make_console()
    if settings:
        with only_errors(quiet):
            result = gradplane.replay(folder, settings, out=out, net=net, console=not quiet)
    elif quiet:
        with only_errors(quiet):
            result = gradplane.replay(folder)
    else:
        with console.status("replaying") as status:
            began = time.monotonic()

            def on_round(done: int, total: int) -> None:
                rest = left(time.monotonic() - began, done, total)
                status.update(f"replaying: {done} of {total} rounds{rest}")

            result = gradplane.replay(folder, on_round=on_round)
    if isinstance(result, Finished):
        if not quiet:
            console.print(output_tables.torchrun(result.values))
            say(console, f"records: {result.folder}")
        return
    if isinstance(result, Summary):
        if quiet:
            return
        console.print(output_tables.results(result))
        say(console, _where(result))
        return
    if not (quiet and result.equal):
        say(console, result.text())
    if not result.equal:
        raise typer.Exit(1)


@commands.command()
def sweep(
    experiment: Annotated[
        Path | None,
        argument("EXPERIMENT.toml", "A file, or a shipped one's name", autocompletion=_completed),
    ] = None,
    over: Annotated[
        list[str], option("KEY=V1,V2,...", "A key and the values it takes; may be repeated")
    ] = [],  # noqa: B006
    seeds: Annotated[
        int | None, option("N", "Runs of each point, under successive seeds", min=1)
    ] = None,
    out: Annotated[
        Path | None, option("DIR", "The sweep's folder; it must not exist", *OUT)
    ] = None,
    net: Annotated[
        str | None, option("mininet|sim", "Default: sim", autocompletion=emulated)
    ] = None,
    settings: Settings = [],  # noqa: B006
    target_accuracy: Accuracy = None,
    cluster: Annotated[
        str | None, option("tcp://HOST:PORT", "A Dask scheduler; default: this machine")
    ] = None,
    workers: Annotated[
        int | None, option("N", "Local processes; default: one for each core", min=1)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the sweep in the folder -o")
    ] = False,
) -> None:
    """Run an experiment at every point of a grid and under several seeds; write one table."""
    from gradplane.cli import output_tables
    from gradplane.pages.report import sweep_page
    from gradplane.runs.sweeps import sweep as sweeping

    check_network(net)
    console = make_console()
    asked = sweeping.SweepRequest(
        *(experiment, over, out, seeds, net, settings, target_accuracy, cluster, workers, resume),
        sweep_page.PAGES,
    )
    with stoppable():
        done = sweeping.carry_out(asked, console)
    console.print(output_tables.sweep(done.results))
    say(console, f"report: {done.folder.path / 'report.html'}")
    if done.failures:
        runs = len(done.folder.plan.runs)
        lines = [f"{len(done.failures)} of {runs} runs failed:"]
        lines += [f"  {name}: {text}" for name, text in done.failures.items()]
        lines.append(f"gradplane sweep --resume -o {done.folder.path} runs them again")
        fail("\n".join(lines))


@commands.command("compare-targets")
def compare_targets(
    experiment: Annotated[Path, argument("EXPERIMENT.toml", "Or its name")],
    targets: Annotated[str, option("A,B", "Files in controller/targets/")] = "embedded,bmv2",
    net: Annotated[str | None, typer.Option(metavar="mininet|sim", autocompletion=emulated)] = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Run an experiment on several switches; print the first difference, or that there is none."""
    from gradplane.pages.report import page
    from gradplane.runs.replayer import compare_targets as comparing

    check_network(net)
    with stoppable():
        result = comparing.compare(
            experiment,
            targets.split(","),
            out,
            net=net,
            settings=settings,
            seed=seed,
            console=True,
            on_end=page.write_wanted,
        )
    say(make_console(), result.text())
    if not result.equal:
        raise typer.Exit(1)


@commands.command()
def topology(
    experiment: Annotated[
        Path,
        argument("EXPERIMENT.toml", "A file, or a shipped one's name", autocompletion=_completed),
    ],
    settings: Settings = [],  # noqa: B006
) -> None:
    """Draw the tree of switches that sum each job, and what each of them gets installed."""
    from gradplane.cli import topology_text
    from gradplane.experiment.loading import load_deployment
    from gradplane.runs.run_experiment import check_programs

    deployment = load_deployment(experiment, settings)
    check_programs(deployment)
    console = make_console()
    console.width = max(console.width, _LINE)
    for tree in topology_text.trees(deployment):
        console.print(tree, highlight=False)


@commands.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", show_default=False)],
    out: Annotated[Path | None, option("FILE", "The HTML file to write", *OUT)] = None,
) -> None:
    """Write the report of a run, a study or a sweep, or the comparison of several runs."""
    from gradplane.pages.report import page as reports
    from gradplane.runs.sweeps.plan_file import is_sweep
    from gradplane.studies import launch

    studies = [folder for folder in folders if launch.is_folder(folder)]
    sweeps = [folder for folder in folders if is_sweep(folder)]
    if (studies or sweeps) and len(folders) > 1:
        kind = "study" if studies else "sweep"
        raise typer.BadParameter(
            f"{[*studies, *sweeps][0]} is a {kind}'s folder, and only runs are compared: give it"
            " alone",
            param_hint="RUN_DIR",
        )
    if sweeps:
        from gradplane.pages.report import sweep_page

        say(make_console(), f"report: {sweep_page.write_again(sweeps[0], out)}")
        return
    if studies:
        say(make_console(), f"report: {launch.write_report(studies[0], out)}")
        return
    path = reports.write(folders, out)
    if len(folders) > 1:
        from gradplane.cli import output_tables

        make_console().print(output_tables.compared(folders))
    say(make_console(), f"report: {path}")


@commands.command()
def view(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", show_default=False)],
    port: Annotated[int, option("N", "Default: a free one")] = 0,
) -> None:
    """Look into recorded runs in a browser: rounds, packets, and what the switch did with each."""
    from contextlib import ExitStack

    from gradplane.pages.viewer.local_server import ServerError
    from gradplane.pages.viewer.run_server import run_server
    from gradplane.pages.viewer.run_view import RunView
    from gradplane.runs.records.run_data import RunData

    runs = [RunData.read(folder) for folder in folders]
    with ExitStack() as stack:
        views = [stack.enter_context(RunView(run)) for run in runs]
        try:
            server = run_server(views, port)
        except ServerError as error:
            fail(str(error))
        print(f"{server.url}\nfor browsers on this machine; Ctrl-C ends it", flush=True)
        server.run()


@commands.command()
def records(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", show_default=False)],
    kind: Annotated[
        str, option("KIND", "arrival, norm, resend, timeout, stall, window, epoch or verdict")
    ] = "arrival",
) -> None:
    """Print a run's records as CSV, a line a packet."""
    from gradplane.cli import output_tables

    if kind not in output_tables.RECORD_KINDS:
        known = ", ".join(output_tables.RECORD_KINDS)
        raise typer.BadParameter(f"{kind!r}: it must be one of {known}", param_hint="--kind")
    if not output_tables.write_records(folder, kind, sys.stdout):
        print(f"gradplane: {folder} has no records of kind {kind}", file=sys.stderr)


@commands.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", show_default=False)],
    timeline: Annotated[Path | None, option("FILE.json", "For ui.perfetto.dev: all rounds")] = None,
    tensorboard: Annotated[
        Path | None, option("DIR", "Loss, accuracy, bytes and times as scalars")
    ] = None,
) -> None:
    """Write a run for other programs: its timeline for Perfetto, its metrics for TensorBoard."""
    from gradplane.pages import exports
    from gradplane.runs.records import script_run
    from gradplane.runs.records.run_data import RunData

    if timeline is None and tensorboard is None:
        raise typer.BadParameter("give one of them", param_hint="--timeline, --tensorboard")
    console = make_console()
    if timeline is None and tensorboard is not None and script_run.is_folder(folder):
        exports.write_script_scalars(folder, tensorboard)
        say(console, f"scalars: {tensorboard}")
        return
    run = RunData.read(folder)
    if timeline is not None:
        exports.write_timeline(run, timeline)
        say(console, f"timeline: {timeline}")
    if tensorboard is not None:
        exports.write_scalars(run, tensorboard)
        say(console, f"scalars: {tensorboard}")
